-- KEYS: the marks of the registration
-- ARGV: how the keys of its marks begin, how many at most
local found = {}
for _, hash in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)) do
    local mark = redis.call('GET', ARGV[1] .. hash)
    if mark then
        found[#found + 1] = { hash, mark }
    else
        redis.call('ZREM', KEYS[1], hash)
    end
end
return found
