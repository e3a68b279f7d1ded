-- KEYS: the mark, the marks of the registration, its answers, the provider's registrations
-- ARGV: hash, milliseconds, registration
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
