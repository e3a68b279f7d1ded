-- KEYS: the answer, its upload
-- ARGV: the upload
-- Returns whether the chunks are there. Without them it is no answer, and must not keep the request
-- from being sent.
if redis.call('EXISTS', KEYS[2]) == 1 then
    return 1
end
if redis.call('GETRANGE', KEYS[1], 17, 48) == ARGV[1] then
    redis.call('UNLINK', KEYS[1])
end
return 0
