-- KEYS: the lock, the answer, the locks of the registration, the provider's registrations
-- ARGV: token, parameters, milliseconds, hash, registration
if redis.call('EXISTS', KEYS[2]) == 1 then
    return 0
end
local time = redis.call('TIME')
local micros = time[1] .. string.format('%06d', time[2])
local set = redis.call('SET', KEYS[1], ARGV[1] .. micros .. ARGV[2], 'NX', 'PX', ARGV[3])
if not set then
    -- The same token: the connection broke before the answer arrived.
    if redis.call('GETRANGE', KEYS[1], 0, 15) == ARGV[1] then
        return 1
    end
    return 0
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[3], string.format('%.0f', now + ARGV[3]), ARGV[4])
redis.call('ZADD', KEYS[4], ARGV[5], ARGV[5])
for at = 3, 4 do
    if redis.call('PTTL', KEYS[at]) < tonumber(ARGV[3]) then
        redis.call('PEXPIRE', KEYS[at], ARGV[3])
    end
end
return 1
