-- Leaves the chunks of a removed answer to their readers for a while, unless it is the upload `but`.
local function free(answer, uploads, grace, but)
    local head = redis.call('GETRANGE', answer, 0, 48)
    if head == '' or string.byte(head) < 2 then
        return
    end
    local upload = string.sub(head, 18)
    if upload ~= but and redis.call('PTTL', uploads .. upload) > tonumber(grace) then
        redis.call('PEXPIRE', uploads .. upload, grace)
    end
end
