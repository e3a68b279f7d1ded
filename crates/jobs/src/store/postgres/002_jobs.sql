CREATE TABLE wakeline.jobs_worker (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES wakeline.jobs_user (id) ON DELETE CASCADE,
    beat_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX jobs_worker_beat ON wakeline.jobs_worker (beat_at);
CREATE INDEX jobs_worker_user ON wakeline.jobs_worker (user_id);

CREATE TABLE wakeline.jobs_job (
    id uuid PRIMARY KEY,
    room text NOT NULL,
    category text NOT NULL,
    name text NOT NULL,
    schema text NOT NULL,
    max_retries integer NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL,
    UNIQUE (room, category, name)
);

-- Which workers do which jobs.
CREATE TABLE wakeline.jobs_link (
    worker_id uuid NOT NULL REFERENCES wakeline.jobs_worker (id) ON DELETE CASCADE,
    job_id uuid NOT NULL REFERENCES wakeline.jobs_job (id) ON DELETE CASCADE,
    created_at bigint NOT NULL,
    PRIMARY KEY (worker_id, job_id)
);
CREATE INDEX jobs_link_job ON wakeline.jobs_link (job_id);

-- A job with the ids of its workers as text, oldest link first.
CREATE VIEW wakeline.jobs_job_view AS
SELECT j.*, (
    SELECT string_agg(CAST(l.worker_id AS text), ',' ORDER BY l.created_at, l.worker_id)
    FROM wakeline.jobs_link l WHERE l.job_id = j.id
) AS workers
FROM wakeline.jobs_job j;

-- Outcomes: 0 new, 1 existing, 2 no such worker, 3 the job has another schema. For a job of @internal
-- the last schema counts: its program is the server's own.
CREATE FUNCTION wakeline.jobs_job_register(
    new_id uuid, new_room text, new_category text, new_name text, new_schema text,
    new_retries bigint, by_user uuid, by_worker uuid, new_worker uuid,
    OUT outcome smallint, OUT worker uuid, OUT job wakeline.jobs_job_view
) LANGUAGE plpgsql AS $$
DECLARE
    known wakeline.jobs_job;
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
    LOOP
        INSERT INTO wakeline.jobs_job (id, room, category, name, schema, max_retries, created_at)
        VALUES (new_id, new_room, new_category, new_name, new_schema, new_retries, now_us)
        ON CONFLICT (room, category, name) DO NOTHING;
        SELECT j.* INTO known FROM wakeline.jobs_job j
        WHERE j.room = new_room AND j.category = new_category AND j.name = new_name FOR UPDATE;
        -- Between the two statements a sweep may remove a job that was deleted.
        EXIT WHEN FOUND;
    END LOOP;
    IF known.id = new_id OR known.is_deleted THEN
        outcome := 0;
    ELSIF known.schema <> new_schema AND new_room <> '@internal' THEN
        outcome := 3;
        RETURN;
    ELSE
        outcome := 1;
    END IF;
    UPDATE wakeline.jobs_job j
    SET is_deleted = false, schema = new_schema, max_retries = new_retries
    WHERE j.id = known.id
        AND (j.is_deleted OR j.schema <> new_schema OR j.max_retries <> new_retries);
    IF by_worker IS NULL THEN
        INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
        VALUES (new_worker, by_user, now_us, now_us);
    END IF;
    worker := coalesce(by_worker, new_worker);
    INSERT INTO wakeline.jobs_link (worker_id, job_id, created_at)
    VALUES (worker, known.id, now_us) ON CONFLICT DO NOTHING;
    SELECT * INTO job FROM wakeline.jobs_job_view s WHERE s.id = known.id;
END
$$;
