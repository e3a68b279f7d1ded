-- The answers of providers, and the requests that they have not answered yet. All of it is a cache:
-- the tables are UNLOGGED, so that no write to them waits for the disk. After a crash of this server
-- they are empty, and the next reader's request is sent to the provider again.
CREATE UNLOGGED TABLE wakeline.jobs_result (
    provider_id uuid NOT NULL,
    version bigint NOT NULL,
    hash text NOT NULL,
    is_error boolean NOT NULL,
    etag text NOT NULL,
    body bytea NOT NULL,
    expires_at bigint NOT NULL,
    -- The upload that has the bytes in chunks, and how many bytes; then the body is empty.
    upload_id uuid,
    length bigint,
    PRIMARY KEY (provider_id, version, hash)
);
CREATE INDEX jobs_result_expiry ON wakeline.jobs_result (expires_at);
-- Compressing an answer would take longer than it saves in its short life.
ALTER TABLE wakeline.jobs_result ALTER COLUMN body SET STORAGE EXTERNAL;

-- A lock on a request: until it expires, the request is not sent to the provider again.
CREATE UNLOGGED TABLE wakeline.jobs_inflight (
    provider_id uuid NOT NULL,
    version bigint NOT NULL,
    hash text NOT NULL,
    token uuid NOT NULL,
    params text NOT NULL,
    expires_at bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
);
CREATE INDEX jobs_inflight_expiry ON wakeline.jobs_inflight (expires_at);

-- Answers that are too long for one row: all chunks of an upload expire together. While an upload is
-- being removed, its expires_at is 0.
CREATE UNLOGGED TABLE wakeline.jobs_upload (
    id uuid PRIMARY KEY,
    expires_at bigint NOT NULL
);
CREATE INDEX jobs_upload_expiry ON wakeline.jobs_upload (expires_at);

CREATE UNLOGGED TABLE wakeline.jobs_chunk (
    upload_id uuid NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (upload_id, number)
);
ALTER TABLE wakeline.jobs_chunk ALTER COLUMN body SET STORAGE EXTERNAL;

-- The answers to requests, each of a provider's name and a hash, or of a provider's id, a registration
-- and a hash, in the order of the arguments. Here and below: planning anew for every array would take
-- longer than the query, and the one plan of a session may be made while the tables are empty. So it
-- is forced to use the primary keys: no sequential scans, and times that no index has (`+ 0`), because
-- after an emptied table was vacuumed the index of times is the smaller one.
CREATE FUNCTION wakeline.jobs_answers(
    rooms text[], categories text[], names text[], providers uuid[], versions bigint[], hashes text[]
) RETURNS TABLE (
    provider wakeline.jobs_provider, is_error boolean, etag text, body bytea, in_flight bigint,
    upload_id uuid, length bigint
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT p.whole, r.is_error, r.etag, r.body, m.expires_at - now_us, r.upload_id, r.length
    FROM unnest(rooms, categories, names, providers, versions, hashes)
        WITH ORDINALITY AS u (room, category, name, provider_id, version, hash, ordinal)
    LEFT JOIN LATERAL (
        SELECT q.id, q.version, q AS whole FROM wakeline.jobs_provider q
        WHERE q.room = u.room AND q.category = u.category AND q.name = u.name LIMIT 1
    ) p ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_result r
        WHERE r.provider_id = coalesce(p.id, u.provider_id)
            AND r.version = coalesce(p.version, u.version) AND r.hash = u.hash
            AND r.expires_at + 0 > now_us LIMIT 1
    ) r ON true
    LEFT JOIN LATERAL (
        SELECT * FROM wakeline.jobs_inflight m
        WHERE m.provider_id = coalesce(p.id, u.provider_id)
            AND m.version = coalesce(p.version, u.version) AND m.hash = u.hash
            AND m.expires_at + 0 > now_us LIMIT 1
    ) m ON true
    ORDER BY u.ordinal;
END
$$;

-- One row for each, in the order of the arguments. With a hash: whether there is an answer, or the
-- request has not been sent. Without one: whether the provider has requests that it has not answered.
CREATE FUNCTION wakeline.jobs_result_ready(providers uuid[], versions bigint[], hashes text[])
RETURNS SETOF boolean
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT CASE WHEN u.hash IS NULL THEN EXISTS (
        SELECT 1 FROM wakeline.jobs_inflight m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.expires_at + 0 > now_us
    ) ELSE EXISTS (
        SELECT 1 FROM wakeline.jobs_result r
        WHERE r.provider_id = u.provider_id AND r.version = u.version AND r.hash = u.hash
            AND r.expires_at + 0 > now_us
    ) OR NOT EXISTS (
        SELECT 1 FROM wakeline.jobs_inflight m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.hash = u.hash
            AND m.expires_at + 0 > now_us
    ) END
    FROM unnest(providers, versions, hashes)
        WITH ORDINALITY AS u (provider_id, version, hash, ordinal)
    ORDER BY u.ordinal;
END
$$;

-- Returns false if the upload's chunks have expired; then nothing is stored.
CREATE FUNCTION wakeline.jobs_result_put(
    provider uuid, registration bigint, request_hash text, answer_is_error boolean,
    answer_etag text, answer_body bytea, ttl bigint, upload uuid, answer_length bigint, grace bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
    earlier uuid;
BEGIN
    IF upload IS NOT NULL THEN
        UPDATE wakeline.jobs_upload u SET expires_at = now_us + ttl + grace
        WHERE u.id = upload AND u.expires_at + 0 > now_us;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    -- Without a lock: the chunks of an answer that is put at the same moment expire by themselves.
    SELECT r.upload_id INTO earlier FROM wakeline.jobs_result r
    WHERE r.provider_id = provider AND r.version = registration AND r.hash = request_hash;
    INSERT INTO wakeline.jobs_result
        (provider_id, version, hash, is_error, etag, body, expires_at, upload_id, length)
    VALUES (
        provider, registration, request_hash, answer_is_error, answer_etag, answer_body,
        now_us + ttl, upload, answer_length
    )
    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
        is_error = excluded.is_error, etag = excluded.etag, body = excluded.body,
        expires_at = excluded.expires_at, upload_id = excluded.upload_id,
        length = excluded.length;
    IF earlier IS DISTINCT FROM upload AND earlier IS NOT NULL THEN
        UPDATE wakeline.jobs_upload u SET expires_at = least(u.expires_at, now_us + grace)
        WHERE u.id = earlier;
    END IF;
    DELETE FROM wakeline.jobs_inflight m
    WHERE m.provider_id = provider AND m.version = registration AND m.hash = request_hash;
    RETURN true;
END
$$;

-- Returns whether the caller has the lock now, and is the one to send the request.
CREATE FUNCTION wakeline.jobs_inflight_lock(
    provider uuid, registration bigint, request_hash text, request_token uuid,
    request_params text, ttl bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    INSERT INTO wakeline.jobs_inflight AS m
        (provider_id, version, hash, token, params, expires_at, created_at)
    VALUES (
        provider, registration, request_hash, request_token, request_params, now_us + ttl, now_us
    )
    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
        token = excluded.token, params = excluded.params, expires_at = excluded.expires_at,
        created_at = excluded.created_at
    WHERE m.expires_at <= now_us OR m.token = request_token;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- After the lock: an answer whose put has released an earlier lock is visible now.
    IF EXISTS (
        SELECT 1 FROM wakeline.jobs_result r
        WHERE r.provider_id = provider AND r.version = registration AND r.hash = request_hash
            AND r.expires_at + 0 > now_us
    ) THEN
        DELETE FROM wakeline.jobs_inflight m
        WHERE m.provider_id = provider AND m.version = registration AND m.hash = request_hash;
        RETURN false;
    END IF;
    RETURN true;
END
$$;

-- Returns false if the earlier chunks have expired.
CREATE FUNCTION wakeline.jobs_chunk_add(upload uuid, ordinal bigint, chunk bytea, ttl bigint)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    IF ordinal = 0 THEN
        INSERT INTO wakeline.jobs_upload (id, expires_at) VALUES (upload, now_us + ttl)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE wakeline.jobs_upload u SET expires_at = now_us + ttl
        WHERE u.id = upload AND u.expires_at + 0 > now_us;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO wakeline.jobs_chunk (upload_id, number, body) VALUES (upload, ordinal, chunk)
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- NULL if the chunk is gone. Reading a chunk keeps the whole upload for a while.
CREATE FUNCTION wakeline.jobs_chunk_get(upload uuid, ordinal bigint, grace bigint)
RETURNS bytea LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    UPDATE wakeline.jobs_upload u SET expires_at = now_us + grace
    WHERE u.id = upload AND u.expires_at + 0 > now_us AND u.expires_at + 0 < now_us + grace / 2;
    RETURN (
        SELECT p.body FROM wakeline.jobs_chunk p WHERE p.upload_id = upload AND p.number = ordinal
    );
END
$$;

-- Returns how many more chunks could have been removed: with 0 there may be more.
CREATE FUNCTION wakeline.jobs_upload_remove(upload uuid, slice bigint)
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    removed bigint;
BEGIN
    -- First: from now on no chunk is added, and no reader or answer extends its time.
    UPDATE wakeline.jobs_upload u SET expires_at = 0 WHERE u.id = upload;
    DELETE FROM wakeline.jobs_chunk WHERE ctid = ANY (ARRAY(
        SELECT p.ctid FROM wakeline.jobs_chunk p WHERE p.upload_id = upload
        ORDER BY p.number LIMIT slice
    ));
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF removed < slice THEN
        DELETE FROM wakeline.jobs_upload u WHERE u.id = upload;
    END IF;
    RETURN slice - removed;
END
$$;

-- Returns the microseconds until more expires; NULL when nothing is left.
CREATE FUNCTION wakeline.jobs_result_sweep(slice bigint, chunks bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
    upload uuid;
    more bigint := chunks;
BEGIN
    DELETE FROM wakeline.jobs_result WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM wakeline.jobs_result r WHERE r.expires_at <= now_us
        ORDER BY r.expires_at LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    DELETE FROM wakeline.jobs_inflight WHERE ctid = ANY (ARRAY(
        SELECT m.ctid FROM wakeline.jobs_inflight m WHERE m.expires_at <= now_us
        ORDER BY m.expires_at LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    FOR upload IN
        SELECT u.id FROM wakeline.jobs_upload u WHERE u.expires_at <= now_us
        ORDER BY u.expires_at LIMIT chunks FOR UPDATE SKIP LOCKED
    LOOP
        more := wakeline.jobs_upload_remove(upload, more);
        EXIT WHEN more = 0;
    END LOOP;
    RETURN least(
        (SELECT min(r.expires_at) FROM wakeline.jobs_result r),
        (SELECT min(m.expires_at) FROM wakeline.jobs_inflight m),
        (SELECT min(u.expires_at) FROM wakeline.jobs_upload u)
    ) - now_us;
END
$$;
