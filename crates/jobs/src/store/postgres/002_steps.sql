-- A task as callers see it. Its place in the line is counted on the index of pending tasks, up to
-- itself.
CREATE VIEW wakeline.jobs_task_seen AS
SELECT t.id, t.job_id, j.room || ':' || j.category || ':' || j.name AS job_name, t.room, t.status,
    t.created_at, t.started_at, t.completed_at, t.worker_id, t.error, t.payload,
    CASE WHEN t.status = 0 THEN (
        SELECT count(*) FROM wakeline.jobs_task p
        WHERE p.job_id = t.job_id AND p.status = 0 AND p.seq <= t.seq
    ) END AS queue_position
FROM wakeline.jobs_task t JOIN wakeline.jobs_job j ON j.id = t.job_id;

CREATE VIEW wakeline.jobs_job_seen AS
SELECT j.id, j.room, j.category, j.name, j.schema, j.max_retries,
    ARRAY(
        SELECT l.worker_id FROM wakeline.jobs_link l
        WHERE l.job_id = j.id ORDER BY l.created_at, l.worker_id
    ) AS workers
FROM wakeline.jobs_job j;

-- What a step tells: what came of it, a name, and a task where there is one.
CREATE TYPE wakeline.jobs_told AS (
    outcome smallint, note text, id uuid, job_id uuid, job_name text, room text, status smallint,
    created_at bigint, started_at bigint, completed_at bigint, worker_id uuid, error text,
    payload text, queue_position bigint
);

CREATE FUNCTION wakeline.jobs_tell(what integer, said text, thing uuid)
RETURNS wakeline.jobs_told LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(what AS smallint), said, thing, NULL::uuid, NULL::text, NULL::text, NULL::smallint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::uuid, NULL::text, NULL::text, NULL::bigint
$$;

-- Of these jobs, those that nobody does and nobody waits for are deleted; their names.
CREATE FUNCTION wakeline.jobs_orphan(which uuid[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    -- In a statement of its own: what is asked afterwards sees who had the lock before.
    PERFORM 1 FROM wakeline.jobs_job j WHERE j.id = ANY (which) ORDER BY j.id FOR UPDATE;
    RETURN QUERY
    UPDATE wakeline.jobs_job j SET is_deleted = true
    WHERE j.id = ANY (which) AND j.room <> '@internal' AND NOT j.is_deleted
        AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = j.id)
        AND NOT EXISTS (
            SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = j.id AND t.status = 0
        )
    RETURNING j.room || ':' || j.category || ':' || j.name;
END
$$;

-- Outcomes: 0 done, 1 not found, 2 another's; then 10 a task, 11 a job, 12 a provider of it.
CREATE FUNCTION wakeline.jobs_worker_remove(which uuid, owner uuid)
RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    owned_by uuid;
    its_tasks uuid[];
    its_jobs uuid[];
    moment bigint := wakeline.jobs_now();
BEGIN
    SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w WHERE w.id = which FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NEXT wakeline.jobs_tell(1, NULL, which);
        RETURN;
    ELSIF owner IS NOT NULL AND owner <> owned_by THEN
        RETURN NEXT wakeline.jobs_tell(2, NULL, which);
        RETURN;
    END IF;
    RETURN NEXT wakeline.jobs_tell(0, NULL, which);
    WITH lost AS (
        UPDATE wakeline.jobs_task t SET
            status = CASE WHEN t.retries < j.max_retries THEN 0 ELSE 4 END,
            retries = t.retries + 1,
            worker_id = NULL,
            started_at = CASE WHEN t.retries < j.max_retries THEN NULL ELSE t.started_at END,
            completed_at = CASE WHEN t.retries < j.max_retries THEN NULL ELSE moment END,
            error = CASE WHEN t.retries < j.max_retries THEN NULL ELSE 'Worker disconnected' END
        FROM wakeline.jobs_job j
        WHERE j.id = t.job_id AND t.worker_id = which AND t.status IN (1, 2)
        RETURNING t.id
    )
    SELECT array_agg(lost.id) INTO its_tasks FROM lost;
    its_jobs := ARRAY(
        SELECT l.job_id FROM wakeline.jobs_link l WHERE l.worker_id = which
        UNION SELECT t.job_id FROM wakeline.jobs_task t WHERE t.id = ANY (its_tasks)
    );
    RETURN QUERY
    SELECT (wakeline.jobs_tell(12, p.room || ':' || p.category || ':' || p.name, p.id)).*
    FROM wakeline.jobs_provider p WHERE p.worker_id = which;
    DELETE FROM wakeline.jobs_worker w WHERE w.id = which;
    PERFORM wakeline.jobs_orphan(its_jobs);
    RETURN QUERY
    SELECT CAST(10 AS smallint), NULL::text, s.* FROM wakeline.jobs_task_seen s
    WHERE s.id = ANY (its_tasks);
    RETURN QUERY
    SELECT (wakeline.jobs_tell(11, j.room || ':' || j.category || ':' || j.name, j.id)).*
    FROM wakeline.jobs_job j WHERE j.id = ANY (its_jobs);
END
$$;

-- Outcomes: 0 new, 1 there already, 2 no such worker, 3 another schema.
CREATE FUNCTION wakeline.jobs_job_register(
    fresh uuid, in_room text, of_category text, called text, with_schema text, retries integer,
    by_user uuid, by_worker uuid, fresh_worker uuid
) RETURNS TABLE (
    outcome smallint, worker uuid, id uuid, room text, category text, name text, schema text,
    max_retries integer, workers uuid[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    known wakeline.jobs_job;
    what smallint := 1;
    moment bigint := wakeline.jobs_now();
BEGIN
    IF by_worker IS NOT NULL THEN
        PERFORM 1 FROM wakeline.jobs_worker w
        WHERE w.id = by_worker AND w.user_id = by_user FOR KEY SHARE;
        IF NOT FOUND THEN
            outcome := 2;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    LOOP
        INSERT INTO wakeline.jobs_job (id, room, category, name, schema, max_retries, created_at)
        VALUES (fresh, in_room, of_category, called, with_schema, retries, moment)
        ON CONFLICT (room, category, name) DO NOTHING;
        SELECT j.* INTO known FROM wakeline.jobs_job j
        WHERE j.room = in_room AND j.category = of_category AND j.name = called FOR UPDATE;
        -- Between the two a sweep may remove one that was deleted.
        EXIT WHEN FOUND;
    END LOOP;
    IF known.id = fresh OR known.is_deleted THEN
        what := 0;
    ELSIF known.schema <> with_schema THEN
        outcome := 3;
        RETURN NEXT;
        RETURN;
    END IF;
    UPDATE wakeline.jobs_job j SET is_deleted = false, schema = with_schema, max_retries = retries
    WHERE j.id = known.id
        AND (j.is_deleted OR j.schema <> with_schema OR j.max_retries <> retries);
    IF by_worker IS NULL THEN
        INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
        VALUES (fresh_worker, by_user, moment, moment);
    END IF;
    INSERT INTO wakeline.jobs_link (worker_id, job_id, created_at)
    VALUES (coalesce(by_worker, fresh_worker), known.id, moment)
    ON CONFLICT (worker_id, job_id) DO NOTHING;
    RETURN QUERY
    SELECT what, coalesce(by_worker, fresh_worker), s.* FROM wakeline.jobs_job_seen s
    WHERE s.id = known.id;
END
$$;

-- Outcomes: 0 done, 1 no such job, 2 nobody does it.
CREATE FUNCTION wakeline.jobs_task_submit(
    fresh uuid, in_room text, of_category text, called text, for_room text, by_user uuid,
    with_payload text, needs_worker boolean
) RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    job uuid;
BEGIN
    -- Shared: the job cannot be deleted as nobody's before this task is seen.
    SELECT j.id INTO job FROM wakeline.jobs_job j
    WHERE j.room = in_room AND j.category = of_category AND j.name = called AND NOT j.is_deleted
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN NEXT wakeline.jobs_tell(1, NULL, NULL);
        RETURN;
    END IF;
    IF needs_worker AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = job) THEN
        RETURN NEXT wakeline.jobs_tell(2, NULL, NULL);
        RETURN;
    END IF;
    INSERT INTO wakeline.jobs_task (id, job_id, room, created_by, payload, created_at)
    VALUES (fresh, job, for_room, by_user, with_payload, wakeline.jobs_now());
    RETURN QUERY
    SELECT CAST(0 AS smallint), NULL::text, s.* FROM wakeline.jobs_task_seen s WHERE s.id = fresh;
END
$$;

-- Outcomes: 0 a task, 1 no such worker, 2 another's worker, 3 nothing to do, 4 others have just
-- now their hands on all there is; with 3 one row 11 for each of its jobs.
CREATE FUNCTION wakeline.jobs_task_claim(by_worker uuid, by_user uuid)
RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    owned_by uuid;
    found_task uuid;
BEGIN
    -- Kept from being removed: a task of a worker that is gone would be nobody's for ever.
    SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w
    WHERE w.id = by_worker FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NEXT wakeline.jobs_tell(1, NULL, NULL);
        RETURN;
    ELSIF owned_by <> by_user THEN
        RETURN NEXT wakeline.jobs_tell(2, NULL, NULL);
        RETURN;
    END IF;
    SELECT t.id INTO found_task FROM wakeline.jobs_task t
    WHERE t.status = 0 AND t.seq IN (
        SELECT head.seq FROM wakeline.jobs_link l
        CROSS JOIN LATERAL (
            SELECT p.seq FROM wakeline.jobs_task p
            WHERE p.job_id = l.job_id AND p.status = 0 ORDER BY p.seq LIMIT 32
        ) head
        WHERE l.worker_id = by_worker ORDER BY head.seq LIMIT 32
    )
    ORDER BY t.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE wakeline.jobs_task t SET status = 1, worker_id = by_worker WHERE t.id = found_task;
        RETURN QUERY
        SELECT CAST(0 AS smallint), NULL::text, s.* FROM wakeline.jobs_task_seen s
        WHERE s.id = found_task;
        RETURN;
    END IF;
    IF EXISTS (
        SELECT 1 FROM wakeline.jobs_link l
        JOIN wakeline.jobs_task p ON p.job_id = l.job_id AND p.status = 0
        WHERE l.worker_id = by_worker
    ) THEN
        RETURN NEXT wakeline.jobs_tell(4, NULL, NULL);
        RETURN;
    END IF;
    RETURN NEXT wakeline.jobs_tell(3, NULL, NULL);
    RETURN QUERY
    SELECT (wakeline.jobs_tell(11, NULL, l.job_id)).* FROM wakeline.jobs_link l
    WHERE l.worker_id = by_worker ORDER BY l.job_id;
END
$$;

-- Outcomes: 0 done (the note is a job that was left without anybody), 1 not found, 2 nobody has
-- claimed it, 3 another's, 4 its state does not lead there (the note is the state's number).
CREATE FUNCTION wakeline.jobs_task_update(
    which uuid, by_user uuid, is_superuser boolean, next smallint, why text
) RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    known wakeline.jobs_task;
    owned_by uuid;
    orphan text;
    moment bigint := wakeline.jobs_now();
BEGIN
    SELECT t.* INTO known FROM wakeline.jobs_task t WHERE t.id = which FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NEXT wakeline.jobs_tell(1, NULL, which);
        RETURN;
    END IF;
    -- Who has handed a task in may take it back while nobody has it.
    IF NOT is_superuser
        AND NOT (known.status = 0 AND next = 5 AND known.created_by IS NOT DISTINCT FROM by_user)
    THEN
        IF known.worker_id IS NULL THEN
            RETURN NEXT wakeline.jobs_tell(2, NULL, which);
            RETURN;
        END IF;
        SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w WHERE w.id = known.worker_id;
        IF owned_by IS DISTINCT FROM by_user THEN
            RETURN NEXT wakeline.jobs_tell(3, NULL, which);
            RETURN;
        END IF;
    END IF;
    IF NOT (
        (known.status = 0 AND next IN (1, 5))
        OR (known.status = 1 AND next IN (2, 4, 5))
        OR (known.status = 2 AND next IN (3, 4, 5))
    ) THEN
        RETURN NEXT wakeline.jobs_tell(4, CAST(known.status AS text), which);
        RETURN;
    END IF;
    UPDATE wakeline.jobs_task t SET
        status = next,
        started_at = CASE WHEN next = 2 THEN moment ELSE t.started_at END,
        completed_at = CASE WHEN next >= 3 THEN moment ELSE t.completed_at END,
        error = CASE WHEN next >= 3 AND why <> '' THEN why ELSE t.error END
    WHERE t.seq = known.seq;
    -- Looked at only where nobody does the job any more: locking it would make tasks wait for
    -- one another.
    IF next >= 3 AND NOT EXISTS (
        SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = known.job_id
    ) THEN
        SELECT gone INTO orphan FROM wakeline.jobs_orphan(ARRAY[known.job_id]) gone;
    END IF;
    RETURN QUERY
    SELECT CAST(0 AS smallint), orphan, s.* FROM wakeline.jobs_task_seen s WHERE s.id = which;
END
$$;

-- Rows as of jobs_worker_remove for each worker that is lost, then one row 20: what was forgotten
-- is its note, created_at is how long until something is over, status 1 says that there is more.
CREATE FUNCTION wakeline.jobs_sweep(
    worker_term bigint, internal_term bigint, kept_term bigint, most bigint
) RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
    lost uuid;
    lost_count bigint := 0;
    overdue uuid[];
    forgotten bigint;
    last wakeline.jobs_told;
BEGIN
    FOR lost IN
        SELECT w.id FROM wakeline.jobs_worker w WHERE w.beat_at <= moment - worker_term
        ORDER BY w.beat_at LIMIT most FOR UPDATE SKIP LOCKED
    LOOP
        lost_count := lost_count + 1;
        RETURN QUERY SELECT * FROM wakeline.jobs_worker_remove(lost, NULL);
    END LOOP;
    WITH late AS (
        UPDATE wakeline.jobs_task t SET status = 4, completed_at = moment,
            error = 'Internal worker timeout'
        FROM wakeline.jobs_job j
        WHERE j.id = t.job_id AND j.room = '@internal' AND t.status IN (1, 2)
            AND coalesce(t.started_at, t.created_at) <= moment - internal_term
        RETURNING t.id
    )
    SELECT array_agg(late.id) INTO overdue FROM late;
    RETURN QUERY
    SELECT CAST(10 AS smallint), NULL::text, s.* FROM wakeline.jobs_task_seen s
    WHERE s.id = ANY (overdue);
    WITH old AS (
        DELETE FROM wakeline.jobs_task t WHERE t.seq IN (
            SELECT o.seq FROM wakeline.jobs_task o
            WHERE o.status >= 3 AND o.completed_at <= moment - kept_term
            ORDER BY o.completed_at LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING 1
    )
    SELECT count(*) INTO forgotten FROM old;
    DELETE FROM wakeline.jobs_job j WHERE j.id IN (
        SELECT d.id FROM wakeline.jobs_job d
        WHERE d.is_deleted
            AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = d.id)
        LIMIT most FOR UPDATE SKIP LOCKED
    );
    last := wakeline.jobs_tell(20, CAST(forgotten AS text), NULL);
    last.created_at := least(
        (SELECT min(w.beat_at) + worker_term FROM wakeline.jobs_worker w),
        (SELECT min(t.completed_at) + kept_term FROM wakeline.jobs_task t WHERE t.status >= 3),
        (
            SELECT min(coalesce(t.started_at, t.created_at)) + internal_term
            FROM wakeline.jobs_task t JOIN wakeline.jobs_job j ON j.id = t.job_id
            WHERE j.room = '@internal' AND t.status IN (1, 2)
        )
    ) - moment;
    last.status := CASE WHEN lost_count >= most OR forgotten >= most THEN 1 ELSE 0 END;
    RETURN NEXT last;
END
$$;

-- Outcomes: 0 new, 1 there already, 2 no such worker, 3 another's.
CREATE FUNCTION wakeline.jobs_provider_register(
    fresh uuid, in_room text, of_category text, called text, with_schema text, of_type text,
    by_user uuid, is_superuser boolean, by_worker uuid, fresh_worker uuid, keeps bigint
) RETURNS TABLE (
    outcome smallint, id uuid, room text, category text, name text, schema text,
    content_type text, user_id uuid, worker_id uuid, created_at bigint, version bigint, ttl bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    known wakeline.jobs_provider;
    moment bigint := wakeline.jobs_now();
BEGIN
    IF by_worker IS NOT NULL THEN
        PERFORM 1 FROM wakeline.jobs_worker w
        WHERE w.id = by_worker AND w.user_id = by_user FOR KEY SHARE;
        IF NOT FOUND THEN
            outcome := 2;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    SELECT p.* INTO known FROM wakeline.jobs_provider p
    WHERE p.room = in_room AND p.category = of_category AND p.name = called FOR UPDATE;
    IF FOUND AND NOT is_superuser AND known.user_id <> by_user THEN
        outcome := 3;
        RETURN NEXT;
        RETURN;
    END IF;
    -- What the server runs itself has no worker.
    IF in_room = '@internal' THEN
        fresh_worker := NULL;
    ELSIF by_worker IS NULL THEN
        INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
        VALUES (fresh_worker, by_user, moment, moment);
    END IF;
    RETURN QUERY
    INSERT INTO wakeline.jobs_provider AS p (
        id, room, category, name, schema, content_type, user_id, worker_id, ttl, created_at
    )
    VALUES (
        fresh, in_room, of_category, called, with_schema, of_type, by_user,
        coalesce(by_worker, fresh_worker), keeps, moment
    )
    ON CONFLICT (room, category, name) DO UPDATE SET
        schema = excluded.schema, content_type = excluded.content_type,
        user_id = excluded.user_id, worker_id = excluded.worker_id, ttl = excluded.ttl,
        version = p.version + 1
        WHERE is_superuser OR p.user_id = excluded.user_id
    RETURNING CAST(CASE WHEN p.id = fresh THEN 0 ELSE 1 END AS smallint), p.id, p.room, p.category,
        p.name, p.schema, p.content_type, p.user_id, p.worker_id, p.created_at, p.version, p.ttl;
    -- Somebody else was faster with the name.
    IF NOT FOUND THEN
        outcome := 3;
        RETURN NEXT;
    END IF;
END
$$;
