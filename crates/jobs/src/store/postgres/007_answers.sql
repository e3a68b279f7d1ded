-- What is registered under these names, and what is kept of their answers to these hashes: one row
-- for each, in their order.
CREATE FUNCTION wakeline.jobs_answers(rooms text[], categories text[], names text[], hashes text[])
RETURNS TABLE (
    id uuid, room text, category text, name text, schema text, content_type text, user_id uuid,
    worker_id uuid, created_at bigint, version bigint, ttl bigint,
    is_error boolean, etag text, body bytea, in_flight bigint
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT p.id, p.room, p.category, p.name, p.schema, p.content_type, p.user_id, p.worker_id,
        p.created_at, p.version, p.ttl, r.is_error, r.etag, r.body, m.until - moment
    FROM unnest(rooms, categories, names, hashes)
        WITH ORDINALITY AS u (room, category, name, hash, place)
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_provider p
        WHERE p.room = u.room AND p.category = u.category AND p.name = u.name LIMIT 1
    ) p ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_result r
        WHERE r.provider_id = p.id AND r.version = p.version AND r.hash = u.hash
            AND r.expires_at > moment LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_mark m
        WHERE m.provider_id = p.id AND m.version = p.version AND m.hash = u.hash
            AND m.until > moment LIMIT 1
    ) m ON true
    ORDER BY u.place;
END
$$;
