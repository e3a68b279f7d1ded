-- As before, for a worker that says which it is. Outcome 5: another has the task, or none.
DROP FUNCTION wakeline.jobs_task_update(uuid, uuid, boolean, smallint, text);
CREATE FUNCTION wakeline.jobs_task_update(
    which uuid, by_user uuid, is_superuser boolean, next smallint, why text, by_worker uuid
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
    IF by_worker IS NOT NULL AND known.worker_id IS DISTINCT FROM by_worker THEN
        RETURN NEXT wakeline.jobs_tell(5, NULL, which);
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
    WHERE t.seq = known.seq RETURNING t.* INTO known;
    -- Looked at only where nobody does the job any more: locking it would make tasks wait for
    -- one another.
    IF next >= 3 AND NOT EXISTS (
        SELECT 1 FROM wakeline.jobs_link l WHERE l.job_id = known.job_id
    ) THEN
        SELECT gone INTO orphan FROM wakeline.jobs_orphan(ARRAY[known.job_id]) gone;
    END IF;
    RETURN QUERY
    SELECT CAST(0 AS smallint), orphan, known.id, known.job_id,
        j.room || ':' || j.category || ':' || j.name, known.room, known.status, known.created_at,
        known.started_at, known.completed_at, known.worker_id, known.error, known.payload,
        NULL::bigint
    FROM wakeline.jobs_job j WHERE j.id = known.job_id;
END
$$;
