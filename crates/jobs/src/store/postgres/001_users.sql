-- Times are microseconds since 1970, by this server's clock.
CREATE FUNCTION wakeline.jobs_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)
$$;

CREATE TABLE wakeline.jobs_user (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE,
    password text,
    is_active boolean NOT NULL DEFAULT true,
    is_superuser boolean NOT NULL DEFAULT false,
    is_verified boolean NOT NULL DEFAULT false,
    -- How often the password was changed.
    epoch integer NOT NULL DEFAULT 0,
    -- A guest can come back only with its token. Once it has a password it is no guest any more.
    is_guest boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL
);
CREATE INDEX jobs_user_guest ON wakeline.jobs_user (created_at) WHERE is_guest AND password IS NULL;

-- The key that signs tokens, made once.
CREATE TABLE wakeline.jobs_secret (
    one integer PRIMARY KEY CHECK (one = 1),
    secret bytea NOT NULL
);

-- state: 0 no such user, 1 another user has the email, 2 done.
CREATE FUNCTION wakeline.jobs_change_user(
    user_id uuid, new_email text, new_password text,
    new_is_active boolean, new_is_superuser boolean, new_is_verified boolean,
    OUT state integer, OUT changed wakeline.jobs_user
) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE wakeline.jobs_user u SET
        email = coalesce(new_email, u.email),
        password = coalesce(new_password, u.password),
        epoch = u.epoch + CASE WHEN new_password IS NULL THEN 0 ELSE 1 END,
        is_active = coalesce(new_is_active, u.is_active),
        is_superuser = coalesce(new_is_superuser, u.is_superuser),
        is_verified = coalesce(
            new_is_verified, u.is_verified AND coalesce(new_email, u.email) = u.email)
    WHERE u.id = user_id
    RETURNING u.* INTO changed;
    state := CASE WHEN FOUND THEN 2 ELSE 0 END;
EXCEPTION WHEN unique_violation THEN
    state := 1;
END
$$;

-- Returns 0 no such user, 1 the user has workers, 2 done.
CREATE FUNCTION wakeline.jobs_delete_user(deleted uuid) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    -- A statement of its own, before the workers are counted: a transaction that creates a worker
    -- holds a lock on its user, and the statement that follows the wait for it sees the worker.
    PERFORM 1 FROM wakeline.jobs_user u WHERE u.id = deleted FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = deleted) THEN
        RETURN 1;
    END IF;
    DELETE FROM wakeline.jobs_user u WHERE u.id = deleted;
    RETURN 2;
END
$$;

-- Returns how many guests were removed.
CREATE FUNCTION wakeline.jobs_sweep_guests(age bigint, slice bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    candidates uuid[];
    removed bigint;
BEGIN
    -- A statement of its own, before the workers are looked for: a transaction that creates a
    -- worker holds a lock on its user, and such a user is left for the next sweep.
    candidates := ARRAY(
        SELECT u.id FROM wakeline.jobs_user u
        WHERE u.is_guest AND u.password IS NULL AND u.created_at <= wakeline.jobs_now() - age
            AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = u.id)
        ORDER BY u.created_at LIMIT slice
        FOR UPDATE SKIP LOCKED
    );
    DELETE FROM wakeline.jobs_user u WHERE u.id = ANY (candidates)
        AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = u.id);
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;
