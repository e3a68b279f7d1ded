-- As before, for a worker that says which it is. Outcome 5: another has the task, or none.
CREATE FUNCTION wakeline.jobs_task_update(
    which uuid, by_user uuid, is_superuser boolean, next smallint, why text, by_worker uuid
) RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
BEGIN
    IF by_worker IS NOT NULL THEN
        -- Locked: what is seen here is still so below.
        PERFORM 1 FROM wakeline.jobs_task t WHERE t.id = which FOR UPDATE;
        IF EXISTS (
            SELECT 1 FROM wakeline.jobs_task t
            WHERE t.id = which AND t.worker_id IS DISTINCT FROM by_worker
        ) THEN
            RETURN NEXT wakeline.jobs_tell(5, NULL, which);
            RETURN;
        END IF;
    END IF;
    RETURN QUERY
    SELECT * FROM wakeline.jobs_task_update(which, by_user, is_superuser, next, why);
END
$$;
