-- The task, pending again; no row if the worker has it no more or has begun with it.
CREATE FUNCTION wakeline.jobs_task_unclaim(which uuid, by_worker uuid)
RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
BEGIN
    UPDATE wakeline.jobs_task t SET status = 0, worker_id = NULL
    WHERE t.id = which AND t.worker_id = by_worker AND t.status = 1;
    IF FOUND THEN
        RETURN QUERY
        SELECT CAST(0 AS smallint), NULL::text, s.* FROM wakeline.jobs_task_seen s
        WHERE s.id = which;
    END IF;
END
$$;
