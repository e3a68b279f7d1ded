CREATE TABLE wakeline.jobs_provider (
    id uuid PRIMARY KEY,
    room text NOT NULL,
    category text NOT NULL,
    name text NOT NULL,
    schema text NOT NULL,
    content_type text NOT NULL,
    user_id uuid NOT NULL REFERENCES wakeline.jobs_user (id) ON DELETE CASCADE,
    worker_id uuid REFERENCES wakeline.jobs_worker (id) ON DELETE CASCADE,
    -- Counts registrations: answers belong to one of them.
    version bigint NOT NULL DEFAULT 1,
    ttl bigint,
    created_at bigint NOT NULL,
    UNIQUE (room, category, name)
);
CREATE INDEX jobs_provider_worker ON wakeline.jobs_provider (worker_id);

-- Outcomes: 0 new, 1 registered anew, 2 no such worker, 3 another user's.
CREATE FUNCTION wakeline.jobs_provider_register(
    new_id uuid, new_room text, new_category text, new_name text, new_schema text,
    new_content_type text, by_user uuid, is_superuser boolean, by_worker uuid, new_worker uuid,
    new_ttl bigint, OUT outcome smallint, OUT provider wakeline.jobs_provider
) LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
BEGIN
    IF by_worker IS NOT NULL THEN
        PERFORM 1 FROM wakeline.jobs_worker w
        WHERE w.id = by_worker AND w.user_id = by_user FOR KEY SHARE;
        IF NOT FOUND THEN
            outcome := 2;
            RETURN;
        END IF;
    END IF;
    SELECT * INTO provider FROM wakeline.jobs_provider p
    WHERE p.room = new_room AND p.category = new_category AND p.name = new_name FOR UPDATE;
    IF FOUND AND NOT is_superuser AND provider.user_id <> by_user THEN
        outcome := 3;
        RETURN;
    END IF;
    -- The server's own providers have no worker.
    IF new_room = '@internal' THEN
        new_worker := NULL;
    ELSIF by_worker IS NULL THEN
        INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
        VALUES (new_worker, by_user, now_us, now_us);
    END IF;
    INSERT INTO wakeline.jobs_provider AS p (
        id, room, category, name, schema, content_type, user_id, worker_id, ttl, created_at
    )
    VALUES (
        new_id, new_room, new_category, new_name, new_schema, new_content_type, by_user,
        coalesce(by_worker, new_worker), new_ttl, now_us
    )
    ON CONFLICT (room, category, name) DO UPDATE SET
        schema = excluded.schema, content_type = excluded.content_type,
        user_id = excluded.user_id, worker_id = excluded.worker_id, ttl = excluded.ttl,
        version = p.version + 1
        WHERE is_superuser OR p.user_id = excluded.user_id
    RETURNING p.* INTO provider;
    -- No row: another user has registered the name meanwhile.
    outcome := CASE WHEN NOT FOUND THEN 3 WHEN provider.id = new_id THEN 0 ELSE 1 END;
END
$$;
