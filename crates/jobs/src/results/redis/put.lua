-- KEYS: the mark, the marks of the registration, its answers, the provider's registrations, the
-- answer
-- ARGV: hash, milliseconds, registration, how the keys of uploads begin, milliseconds that pieces are
-- left to their readers; of one in pieces also its upload, how many they are, and the answer
-- Returns whether the pieces are still there. An answer that is whole is set beside this.
if ARGV[6] then
    local upload = ARGV[4] .. ARGV[6]
    if redis.call('HLEN', upload) ~= tonumber(ARGV[7]) then
        return 0
    end
    redis.call('PEXPIRE', upload, string.format('%.0f', ARGV[2] + ARGV[5]))
end
free(KEYS[5], ARGV[4], ARGV[5], ARGV[6])
if ARGV[6] then
    redis.call('SET', KEYS[5], ARGV[8], 'PX', ARGV[2])
end
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[3])
for at = 3, 4 do
    if redis.call('PTTL', KEYS[at]) < tonumber(ARGV[2]) then
        redis.call('PEXPIRE', KEYS[at], ARGV[2])
    end
end
return 1
