-- As before, but with times that no index has (`+ 0`): after an emptied table was vacuumed, the index
-- of times is the smaller one, and the planner would look through all marks and answers for each key.
CREATE OR REPLACE FUNCTION wakeline.jobs_answers(rooms text[], categories text[], names text[], hashes text[])
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
            AND r.expires_at + 0 > moment LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_mark m
        WHERE m.provider_id = p.id AND m.version = p.version AND m.hash = u.hash
            AND m.until + 0 > moment LIMIT 1
    ) m ON true
    ORDER BY u.place;
END
$$;

CREATE OR REPLACE FUNCTION wakeline.jobs_result_look(providers uuid[], versions bigint[], hashes text[])
RETURNS TABLE (is_error boolean, etag text, body bytea, in_flight bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT r.is_error, r.etag, r.body, m.until - moment
    FROM unnest(providers, versions, hashes)
        WITH ORDINALITY AS u (provider_id, version, hash, place)
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_result r
        WHERE r.provider_id = u.provider_id AND r.version = u.version AND r.hash = u.hash
            AND r.expires_at + 0 > moment LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_mark m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.hash = u.hash
            AND m.until + 0 > moment LIMIT 1
    ) m ON true
    ORDER BY u.place;
END
$$;

CREATE OR REPLACE FUNCTION wakeline.jobs_mark_begin(
    provider uuid, registration bigint, wanted text, time_of uuid, query text, ttl bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    INSERT INTO wakeline.jobs_mark AS m
        (provider_id, version, hash, token, params, until, created_at)
    VALUES (provider, registration, wanted, time_of, query, moment + ttl, moment)
    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
        token = excluded.token, params = excluded.params, until = excluded.until,
        created_at = excluded.created_at
    WHERE m.until <= moment OR m.token = time_of;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- After the mark: an answer that took the last one off is seen now.
    IF EXISTS (
        SELECT 1 FROM wakeline.jobs_result r
        WHERE r.provider_id = provider AND r.version = registration AND r.hash = wanted
            AND r.expires_at + 0 > moment
    ) THEN
        DELETE FROM wakeline.jobs_mark m
        WHERE m.provider_id = provider AND m.version = registration AND m.hash = wanted;
        RETURN false;
    END IF;
    RETURN true;
END
$$;
