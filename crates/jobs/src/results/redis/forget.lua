-- KEYS: the provider's registrations
-- ARGV: up to which registration, how many keys at most, then the prefixes of answers, of their list, of locks
-- and of their list, of uploads, and milliseconds that chunks are left to their readers
-- Returns whether there may be more.
local left = tonumber(ARGV[2])
for _, registration in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])) do
    for at = 3, 5, 2 do
        local list = ARGV[at + 1] .. registration
        for _, hash in ipairs(redis.call('ZRANGE', list, 0, left - 1)) do
            if at == 3 then
                free(ARGV[at] .. registration .. ':' .. hash, ARGV[7], ARGV[8])
            end
            redis.call('UNLINK', ARGV[at] .. registration .. ':' .. hash)
            redis.call('ZREM', list, hash)
            left = left - 1
        end
        if left == 0 then
            return 1
        end
    end
    redis.call('ZREM', KEYS[1], registration)
end
return 0
