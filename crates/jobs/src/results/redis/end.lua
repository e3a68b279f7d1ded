-- KEYS: the lock, the locks of the registration
-- ARGV: hash, token or an empty text
if ARGV[2] == '' or redis.call('GETRANGE', KEYS[1], 0, 15) == ARGV[2] then
    redis.call('UNLINK', KEYS[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
end
