-- Answers that are too long for one row: when all pieces of an upload are over. Those of one that is
-- being removed are over since 0. UNLOGGED, as the answers are: all are empty after a crash, or none.
CREATE UNLOGGED TABLE wakeline.jobs_upload (
    id uuid PRIMARY KEY,
    expires_at bigint NOT NULL
);
CREATE INDEX jobs_upload_expiry ON wakeline.jobs_upload (expires_at);

CREATE UNLOGGED TABLE wakeline.jobs_piece (
    upload_id uuid NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (upload_id, number)
);
ALTER TABLE wakeline.jobs_piece ALTER COLUMN body SET STORAGE EXTERNAL;

-- Where the bytes are, and how many, of an answer that is kept in pieces. Its body is empty.
ALTER TABLE wakeline.jobs_result ADD COLUMN upload_id uuid, ADD COLUMN length bigint;

-- Whether those before it are still there.
CREATE FUNCTION wakeline.jobs_piece_add(upload uuid, place bigint, bytes bytea, ttl bigint)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    IF place = 0 THEN
        INSERT INTO wakeline.jobs_upload (id, expires_at) VALUES (upload, moment + ttl)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE wakeline.jobs_upload u SET expires_at = moment + ttl
        WHERE u.id = upload AND u.expires_at + 0 > moment;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO wakeline.jobs_piece (upload_id, number, body) VALUES (upload, place, bytes)
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- NULL when it is gone. Who reads one keeps all of them for a while.
CREATE FUNCTION wakeline.jobs_piece_get(upload uuid, place bigint, grace bigint)
RETURNS bytea LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    UPDATE wakeline.jobs_upload u SET expires_at = moment + grace
    WHERE u.id = upload AND u.expires_at + 0 > moment AND u.expires_at + 0 < moment + grace / 2;
    RETURN (
        SELECT p.body FROM wakeline.jobs_piece p WHERE p.upload_id = upload AND p.number = place
    );
END
$$;

-- Returns how many more pieces might have been removed: with 0 there may be more.
CREATE FUNCTION wakeline.jobs_upload_remove(upload uuid, slice bigint)
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    removed bigint;
BEGIN
    -- First: from now on nobody goes on with it, keeps it longer or puts it into an answer.
    UPDATE wakeline.jobs_upload u SET expires_at = 0 WHERE u.id = upload;
    DELETE FROM wakeline.jobs_piece WHERE ctid = ANY (ARRAY(
        SELECT p.ctid FROM wakeline.jobs_piece p WHERE p.upload_id = upload
        ORDER BY p.number LIMIT slice
    ));
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF removed < slice THEN
        DELETE FROM wakeline.jobs_upload u WHERE u.id = upload;
    END IF;
    RETURN slice - removed;
END
$$;

-- As before, and in pieces. Whether they are still there.
DROP FUNCTION wakeline.jobs_result_put(uuid, bigint, text, boolean, text, bytea, bigint);
CREATE FUNCTION wakeline.jobs_result_put(
    provider uuid, registration bigint, wanted text, problem boolean, tag text, bytes bytea,
    ttl bigint, upload uuid, bytes_in_all bigint, grace bigint
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
    earlier uuid;
BEGIN
    IF upload IS NOT NULL THEN
        UPDATE wakeline.jobs_upload u SET expires_at = moment + ttl + grace
        WHERE u.id = upload AND u.expires_at + 0 > moment;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END IF;
    -- Without a lock: the pieces of one that is put in this very moment stay until their own end.
    SELECT r.upload_id INTO earlier FROM wakeline.jobs_result r
    WHERE r.provider_id = provider AND r.version = registration AND r.hash = wanted;
    INSERT INTO wakeline.jobs_result
        (provider_id, version, hash, is_error, etag, body, expires_at, upload_id, length)
    VALUES (provider, registration, wanted, problem, tag, bytes, moment + ttl, upload, bytes_in_all)
    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
        is_error = excluded.is_error, etag = excluded.etag, body = excluded.body,
        expires_at = excluded.expires_at, upload_id = excluded.upload_id,
        length = excluded.length;
    IF earlier IS DISTINCT FROM upload AND earlier IS NOT NULL THEN
        UPDATE wakeline.jobs_upload u SET expires_at = least(u.expires_at, moment + grace)
        WHERE u.id = earlier;
    END IF;
    DELETE FROM wakeline.jobs_mark m
    WHERE m.provider_id = provider AND m.version = registration AND m.hash = wanted;
    RETURN true;
END
$$;

-- As before, with where the bytes are that are kept in pieces.
DROP FUNCTION wakeline.jobs_answers(text[], text[], text[], text[]);
CREATE FUNCTION wakeline.jobs_answers(rooms text[], categories text[], names text[], hashes text[])
RETURNS TABLE (
    id uuid, room text, category text, name text, schema text, content_type text, user_id uuid,
    worker_id uuid, created_at bigint, version bigint, ttl bigint,
    is_error boolean, etag text, body bytea, in_flight bigint, upload_id uuid, length bigint
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT p.id, p.room, p.category, p.name, p.schema, p.content_type, p.user_id, p.worker_id,
        p.created_at, p.version, p.ttl, r.is_error, r.etag, r.body, m.until - moment, r.upload_id,
        r.length
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

DROP FUNCTION wakeline.jobs_result_look(uuid[], bigint[], text[]);
CREATE FUNCTION wakeline.jobs_result_look(providers uuid[], versions bigint[], hashes text[])
RETURNS TABLE (
    is_error boolean, etag text, body bytea, in_flight bigint, upload_id uuid, length bigint
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT r.is_error, r.etag, r.body, m.until - moment, r.upload_id, r.length
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

-- Microseconds until more is over; NULL when there is nothing left.
DROP FUNCTION wakeline.jobs_result_sweep(bigint);
CREATE FUNCTION wakeline.jobs_result_sweep(slice bigint, pieces bigint) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
    upload uuid;
    more bigint := pieces;
BEGIN
    DELETE FROM wakeline.jobs_result WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM wakeline.jobs_result r WHERE r.expires_at <= moment
        ORDER BY r.expires_at LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    DELETE FROM wakeline.jobs_mark WHERE ctid = ANY (ARRAY(
        SELECT m.ctid FROM wakeline.jobs_mark m WHERE m.until <= moment
        ORDER BY m.until LIMIT slice FOR UPDATE SKIP LOCKED
    ));
    FOR upload IN
        SELECT u.id FROM wakeline.jobs_upload u WHERE u.expires_at <= moment
        ORDER BY u.expires_at LIMIT pieces FOR UPDATE SKIP LOCKED
    LOOP
        more := wakeline.jobs_upload_remove(upload, more);
        EXIT WHEN more = 0;
    END LOOP;
    RETURN least(
        (SELECT min(r.expires_at) FROM wakeline.jobs_result r),
        (SELECT min(m.until) FROM wakeline.jobs_mark m),
        (SELECT min(u.expires_at) FROM wakeline.jobs_upload u)
    ) - moment;
END
$$;
