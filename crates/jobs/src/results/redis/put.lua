-- KEYS: the lock, the locks of the registration, its answers, the provider's registrations, the
-- answer
-- ARGV: hash, milliseconds, registration, the prefix of the keys of uploads, milliseconds that chunks are
-- left to their readers; for an answer in chunks also its upload, their count, and the answer
-- Returns whether the chunks are still there. A whole answer is set by a command of its own.
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
