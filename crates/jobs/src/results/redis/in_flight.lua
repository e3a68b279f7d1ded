-- KEYS: the locks of the registration
-- ARGV: the prefix of the keys of its locks, how many at most
local found = {}
for _, hash in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)) do
    local lock = redis.call('GET', ARGV[1] .. hash)
    if lock then
        found[#found + 1] = { hash, lock }
    else
        redis.call('ZREM', KEYS[1], hash)
    end
end
return found
