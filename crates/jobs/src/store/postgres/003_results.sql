-- What providers have answered, and what they have been asked. A cache and hints: both tables are
-- UNLOGGED, so that nothing that is done to them waits for the disk. After a crash of this server
-- they are empty, and whoever wants an answer has it asked for again.
CREATE UNLOGGED TABLE wakeline.jobs_result (
    provider_id uuid NOT NULL,
    version bigint NOT NULL,
    hash text NOT NULL,
    is_error boolean NOT NULL,
    etag text NOT NULL,
    body bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
);
CREATE INDEX jobs_result_expiry ON wakeline.jobs_result (expires_at);
-- To compress an answer takes longer than to keep it for its short time.
ALTER TABLE wakeline.jobs_result ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE UNLOGGED TABLE wakeline.jobs_mark (
    provider_id uuid NOT NULL,
    version bigint NOT NULL,
    hash text NOT NULL,
    token uuid NOT NULL,
    params text NOT NULL,
    until bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
);
CREATE INDEX jobs_mark_until ON wakeline.jobs_mark (until);

-- One row for each key, in their order. Planning again for every array would take longer than the
-- question itself. The one plan of a session is made when the tables may be empty, and must fit when
-- they are not: here and below.
CREATE FUNCTION wakeline.jobs_result_look(providers uuid[], versions bigint[], hashes text[])
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
            AND r.expires_at > moment LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_mark m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.hash = u.hash
            AND m.until > moment LIMIT 1
    ) m ON true
    ORDER BY u.place;
END
$$;

CREATE FUNCTION wakeline.jobs_result_put(
    provider uuid, registration bigint, wanted text, problem boolean, tag text, bytes bytea,
    ttl bigint
) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO wakeline.jobs_result (provider_id, version, hash, is_error, etag, body, expires_at)
    VALUES (provider, registration, wanted, problem, tag, bytes, wakeline.jobs_now() + ttl)
    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
        is_error = excluded.is_error, etag = excluded.etag, body = excluded.body,
        expires_at = excluded.expires_at;
    DELETE FROM wakeline.jobs_mark m
    WHERE m.provider_id = provider AND m.version = registration AND m.hash = wanted;
END
$$;

CREATE FUNCTION wakeline.jobs_mark_begin(
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
            AND r.expires_at > moment
    ) THEN
        DELETE FROM wakeline.jobs_mark m
        WHERE m.provider_id = provider AND m.version = registration AND m.hash = wanted;
        RETURN false;
    END IF;
    RETURN true;
END
$$;

-- Microseconds until more is over; NULL when there is nothing left.
CREATE FUNCTION wakeline.jobs_result_sweep(slice bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    DELETE FROM wakeline.jobs_result WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM wakeline.jobs_result r WHERE r.expires_at <= moment
        ORDER BY r.expires_at LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    DELETE FROM wakeline.jobs_mark WHERE ctid = ANY (ARRAY(
        SELECT m.ctid FROM wakeline.jobs_mark m WHERE m.until <= moment
        ORDER BY m.until LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    RETURN least(
        (SELECT min(r.expires_at) FROM wakeline.jobs_result r),
        (SELECT min(m.until) FROM wakeline.jobs_mark m)
    ) - moment;
END
$$;
