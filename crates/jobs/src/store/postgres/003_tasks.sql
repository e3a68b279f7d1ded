-- seq is the order of tasks; status is the number of a task::Status.
CREATE TABLE wakeline.jobs_task (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    job_id uuid NOT NULL REFERENCES wakeline.jobs_job (id) ON DELETE CASCADE,
    room text NOT NULL,
    created_by uuid,
    payload text NOT NULL,
    status smallint NOT NULL DEFAULT 0,
    worker_id uuid,
    retries integer NOT NULL DEFAULT 0,
    error text,
    created_at bigint NOT NULL,
    started_at bigint,
    completed_at bigint
);
CREATE INDEX jobs_task_pending ON wakeline.jobs_task (job_id, seq) WHERE status = 0;
CREATE INDEX jobs_task_held ON wakeline.jobs_task (worker_id) WHERE status IN (1, 2);
CREATE INDEX jobs_task_room ON wakeline.jobs_task (room, seq);
CREATE INDEX jobs_task_job ON wakeline.jobs_task (job_id, seq);
CREATE INDEX jobs_task_ended ON wakeline.jobs_task (completed_at) WHERE status >= 3;

-- A task as callers see it. Its queue_position is counted on the index of pending tasks, up to the
-- task itself.
CREATE VIEW wakeline.jobs_task_view AS
SELECT t.*, j.room || ':' || j.category || ':' || j.name AS job_name,
    CASE WHEN t.status = 0 THEN (
        SELECT count(*) FROM wakeline.jobs_task p
        WHERE p.job_id = t.job_id AND p.status = 0 AND p.seq <= t.seq
    ) END AS queue_position
FROM wakeline.jobs_task t JOIN wakeline.jobs_job j ON j.id = t.job_id;

-- Deletes those of these jobs that have no workers and no pending tasks. Returns their names.
CREATE FUNCTION wakeline.jobs_delete_orphans(candidates uuid[])
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    -- A statement of its own: the next one sees what earlier holders of the locks have committed.
    PERFORM 1 FROM wakeline.jobs_job j WHERE j.id = ANY (candidates) ORDER BY j.id FOR UPDATE;
    RETURN QUERY
    UPDATE wakeline.jobs_job j SET is_deleted = true
    WHERE j.id = ANY (candidates) AND j.room <> '@internal' AND NOT j.is_deleted
        AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = j.id)
        AND NOT EXISTS (
            SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = j.id AND t.status = 0
        )
    RETURNING j.room || ':' || j.category || ':' || j.name;
END
$$;

-- Outcomes: 0 done, 1 no such job, 2 the job has no workers.
CREATE FUNCTION wakeline.jobs_task_submit(
    new_id uuid, job_room text, job_category text, short_name text, task_room text, by_user uuid,
    new_payload text, needs_worker boolean,
    OUT outcome smallint, OUT task wakeline.jobs_task_view
) LANGUAGE plpgsql AS $$
DECLARE
    job uuid;
BEGIN
    -- A shared lock: the job cannot be deleted as an orphan before this task is visible.
    SELECT j.id INTO job FROM wakeline.jobs_job j
    WHERE j.room = job_room AND j.category = job_category AND j.name = short_name
        AND NOT j.is_deleted FOR SHARE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    IF needs_worker AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = job) THEN
        outcome := 2;
        RETURN;
    END IF;
    INSERT INTO wakeline.jobs_task (id, job_id, room, created_by, payload, created_at)
    VALUES (new_id, job, task_room, by_user, new_payload, wakeline.jobs_now());
    SELECT * INTO task FROM wakeline.jobs_task_view v WHERE v.id = new_id;
    outcome := 0;
END
$$;

-- Outcomes: 0 a task, 1 no such worker, 2 another user's worker, 3 nothing to do in these jobs, 4 other
-- claims have locked all pending tasks. Each job is queried by itself: one query for all jobs is planned
-- anew as the table changes, and may read all pending tasks.
CREATE FUNCTION wakeline.jobs_task_claim(
    by_worker uuid, by_user uuid,
    OUT outcome smallint, OUT jobs uuid[], OUT task wakeline.jobs_task_view
) LANGUAGE plpgsql AS $$
DECLARE
    owned_by uuid;
    job uuid;
    heads bigint[];
    head bigint;
    taken bigint;
BEGIN
    -- The lock keeps the worker from being removed: its task would stay claimed for ever.
    SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w
    WHERE w.id = by_worker FOR KEY SHARE;
    IF NOT FOUND OR owned_by <> by_user THEN
        outcome := CASE WHEN NOT FOUND THEN 1 ELSE 2 END;
        RETURN;
    END IF;
    jobs := ARRAY(
        SELECT l.job_id FROM wakeline.jobs_link l WHERE l.worker_id = by_worker ORDER BY l.job_id
    );
    IF cardinality(jobs) = 1 THEN
        job := jobs[1];
        -- A range instead of an equality: then no other index has this order, whatever the
        -- planner believes of the table, and the first row is the oldest pending task.
        SELECT t.seq INTO taken FROM wakeline.jobs_task t
        WHERE t.job_id >= job AND t.job_id <= job AND t.status = 0
        ORDER BY t.job_id, t.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
    ELSE
        FOREACH job IN ARRAY jobs LOOP
            heads := heads || ARRAY(
                SELECT t.seq FROM wakeline.jobs_task t
                WHERE t.job_id >= job AND t.job_id <= job AND t.status = 0
                ORDER BY t.job_id, t.seq LIMIT 32
            );
        END LOOP;
        FOR head IN SELECT h FROM unnest(heads) h ORDER BY h LIMIT 32 LOOP
            SELECT t.seq INTO taken FROM wakeline.jobs_task t
            WHERE t.seq = head AND t.status = 0 FOR UPDATE SKIP LOCKED;
            EXIT WHEN FOUND;
        END LOOP;
    END IF;
    IF taken IS NOT NULL THEN
        UPDATE wakeline.jobs_task t SET status = 1, worker_id = by_worker WHERE t.seq = taken;
        SELECT * INTO task FROM wakeline.jobs_task_view v WHERE v.seq = taken;
        outcome := 0;
        RETURN;
    END IF;
    outcome := 3;
    FOREACH job IN ARRAY jobs LOOP
        IF EXISTS (
            SELECT 1 FROM wakeline.jobs_task t
            WHERE t.job_id >= job AND t.job_id <= job AND t.status = 0
            ORDER BY t.job_id, t.seq LIMIT 1
        ) THEN
            outcome := 4;
            RETURN;
        END IF;
    END LOOP;
END
$$;

-- Returns the task, pending again; no row if the worker has lost the task or has begun with it.
CREATE FUNCTION wakeline.jobs_task_unclaim(released uuid, by_worker uuid)
RETURNS SETOF wakeline.jobs_task_view LANGUAGE plpgsql AS $$
BEGIN
    UPDATE wakeline.jobs_task t SET status = 0, worker_id = NULL
    WHERE t.id = released AND t.worker_id = by_worker AND t.status = 1;
    IF FOUND THEN
        RETURN QUERY SELECT * FROM wakeline.jobs_task_view v WHERE v.id = released;
    END IF;
END
$$;

-- Outcomes: 0 done (with the name of a job that was deleted as an orphan), 1 not found, 2 no worker has
-- claimed it, 3 another user's, 4 the status of the task does not allow it, 5 the worker named does not
-- have it.
CREATE FUNCTION wakeline.jobs_task_update(
    updated uuid, by_user uuid, is_superuser boolean, next_status bigint, reason text,
    by_worker uuid,
    OUT outcome smallint, OUT orphan text, OUT task wakeline.jobs_task_view
) LANGUAGE plpgsql AS $$
DECLARE
    known wakeline.jobs_task;
    owned_by uuid;
    now_us bigint := wakeline.jobs_now();
BEGIN
    SELECT t.* INTO known FROM wakeline.jobs_task t WHERE t.id = updated FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    IF by_worker IS NOT NULL AND known.worker_id IS DISTINCT FROM by_worker THEN
        outcome := 5;
        RETURN;
    END IF;
    -- The user who has submitted a task may cancel it while it is pending.
    IF NOT is_superuser
        AND NOT (
            known.status = 0 AND next_status = 5 AND known.created_by IS NOT DISTINCT FROM by_user
        )
    THEN
        IF known.worker_id IS NULL THEN
            outcome := 2;
            RETURN;
        END IF;
        SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w WHERE w.id = known.worker_id;
        IF owned_by IS DISTINCT FROM by_user THEN
            outcome := 3;
            RETURN;
        END IF;
    END IF;
    outcome := CASE WHEN (known.status = 0 AND next_status IN (1, 5))
        OR (known.status = 1 AND next_status IN (2, 4, 5))
        OR (known.status = 2 AND next_status IN (3, 4, 5)) THEN 0 ELSE 4 END;
    IF outcome = 0 THEN
        UPDATE wakeline.jobs_task t SET
            status = next_status,
            started_at = CASE WHEN next_status = 2 THEN now_us ELSE t.started_at END,
            completed_at = CASE WHEN next_status >= 3 THEN now_us ELSE t.completed_at END,
            error = CASE WHEN next_status >= 3 AND reason <> '' THEN reason ELSE t.error END
        WHERE t.seq = known.seq;
        -- Only where the job has no workers: locking the job would make its tasks wait for each
        -- other.
        IF next_status >= 3 AND NOT EXISTS (
            SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = known.job_id
        ) THEN
            SELECT name INTO orphan FROM wakeline.jobs_delete_orphans(ARRAY[known.job_id]) name;
        END IF;
    END IF;
    SELECT * INTO task FROM wakeline.jobs_task_view v WHERE v.seq = known.seq;
END
$$;

-- The rows that were removed with workers: 0 a worker, 10 a task, 11 a job, 12 a provider, each
-- with its id and its full name where it has one. 1 and 2 refuse a removal: not found, another
-- user's. 20 ends a sweep: how many tasks were deleted, the time until the next sweep is due, and
-- whether there is more to do already.
CREATE TYPE wakeline.jobs_loss AS (
    outcome smallint, subject uuid, full_name text, task wakeline.jobs_task_view,
    deleted_tasks bigint, next_sweep bigint, is_more boolean
);

CREATE FUNCTION wakeline.jobs_loss_row(
    code integer, subject uuid DEFAULT NULL, full_name text DEFAULT NULL,
    task wakeline.jobs_task_view DEFAULT NULL
) RETURNS wakeline.jobs_loss LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(code AS smallint), subject, full_name, task, NULL::bigint, NULL::bigint, NULL::boolean
$$;

CREATE FUNCTION wakeline.jobs_worker_remove(removed uuid, only_of uuid)
RETURNS SETOF wakeline.jobs_loss LANGUAGE plpgsql AS $$
DECLARE
    owned_by uuid;
    its_tasks uuid[];
    its_jobs uuid[];
    now_us bigint := wakeline.jobs_now();
BEGIN
    SELECT w.user_id INTO owned_by FROM wakeline.jobs_worker w WHERE w.id = removed FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NEXT wakeline.jobs_loss_row(1);
        RETURN;
    ELSIF only_of IS NOT NULL AND only_of <> owned_by THEN
        RETURN NEXT wakeline.jobs_loss_row(2);
        RETURN;
    END IF;
    RETURN NEXT wakeline.jobs_loss_row(0, removed);
    WITH lost AS (
        UPDATE wakeline.jobs_task t SET
            status = CASE WHEN t.retries < j.max_retries THEN 0 ELSE 4 END,
            retries = t.retries + 1,
            worker_id = NULL,
            started_at = CASE WHEN t.retries < j.max_retries THEN NULL ELSE t.started_at END,
            completed_at = CASE WHEN t.retries < j.max_retries THEN NULL ELSE now_us END,
            error = CASE WHEN t.retries < j.max_retries THEN NULL ELSE 'Worker disconnected' END
        FROM wakeline.jobs_job j
        WHERE j.id = t.job_id AND t.worker_id = removed AND t.status IN (1, 2)
        RETURNING t.id
    )
    SELECT array_agg(lost.id) INTO its_tasks FROM lost;
    its_jobs := ARRAY(
        SELECT l.job_id FROM wakeline.jobs_link l WHERE l.worker_id = removed
        UNION SELECT t.job_id FROM wakeline.jobs_task t WHERE t.id = ANY (its_tasks)
    );
    RETURN QUERY
    SELECT l.* FROM wakeline.jobs_provider p CROSS JOIN LATERAL
        wakeline.jobs_loss_row(12, p.id, p.room || ':' || p.category || ':' || p.name) l
    WHERE p.worker_id = removed;
    DELETE FROM wakeline.jobs_worker w WHERE w.id = removed;
    PERFORM wakeline.jobs_delete_orphans(its_jobs);
    RETURN QUERY
    SELECT l.* FROM wakeline.jobs_task_view v
    CROSS JOIN LATERAL wakeline.jobs_loss_row(10, v.id, task => v) l WHERE v.id = ANY (its_tasks);
    RETURN QUERY
    SELECT l.* FROM wakeline.jobs_job j CROSS JOIN LATERAL
        wakeline.jobs_loss_row(11, j.id, j.room || ':' || j.category || ':' || j.name) l
    WHERE j.id = ANY (its_jobs);
END
$$;

CREATE FUNCTION wakeline.jobs_sweep(
    worker_age bigint, internal_age bigint, retention bigint, slice bigint
) RETURNS SETOF wakeline.jobs_loss LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := wakeline.jobs_now();
    lost uuid;
    lost_count bigint := 0;
    overdue uuid[];
    summary wakeline.jobs_loss := wakeline.jobs_loss_row(20);
BEGIN
    FOR lost IN
        SELECT w.id FROM wakeline.jobs_worker w WHERE w.beat_at <= now_us - worker_age
        ORDER BY w.beat_at LIMIT slice FOR UPDATE SKIP LOCKED
    LOOP
        lost_count := lost_count + 1;
        RETURN QUERY SELECT * FROM wakeline.jobs_worker_remove(lost, NULL);
    END LOOP;
    WITH late AS (
        UPDATE wakeline.jobs_task t SET status = 4, completed_at = now_us,
            error = 'Internal worker timeout'
        FROM wakeline.jobs_job j
        WHERE j.id = t.job_id AND j.room = '@internal' AND t.status IN (1, 2)
            AND coalesce(t.started_at, t.created_at) <= now_us - internal_age
        RETURNING t.id
    )
    SELECT array_agg(late.id) INTO overdue FROM late;
    RETURN QUERY
    SELECT l.* FROM wakeline.jobs_task_view v
    CROSS JOIN LATERAL wakeline.jobs_loss_row(10, v.id, task => v) l WHERE v.id = ANY (overdue);
    DELETE FROM wakeline.jobs_task t WHERE t.seq IN (
        SELECT o.seq FROM wakeline.jobs_task o
        WHERE o.status >= 3 AND o.completed_at <= now_us - retention
        ORDER BY o.completed_at LIMIT slice FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS summary.deleted_tasks = ROW_COUNT;
    DELETE FROM wakeline.jobs_job j WHERE j.id IN (
        SELECT d.id FROM wakeline.jobs_job d
        WHERE d.is_deleted
            AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = d.id)
        LIMIT slice FOR UPDATE SKIP LOCKED
    );
    summary.next_sweep := least(
        (SELECT min(w.beat_at) + worker_age FROM wakeline.jobs_worker w),
        (SELECT min(t.completed_at) + retention FROM wakeline.jobs_task t WHERE t.status >= 3),
        (
            SELECT min(coalesce(t.started_at, t.created_at)) + internal_age
            FROM wakeline.jobs_task t JOIN wakeline.jobs_job j ON j.id = t.job_id
            WHERE j.room = '@internal' AND t.status IN (1, 2)
        )
    ) - now_us;
    summary.is_more := lost_count >= slice OR summary.deleted_tasks >= slice;
    RETURN NEXT summary;
END
$$;
