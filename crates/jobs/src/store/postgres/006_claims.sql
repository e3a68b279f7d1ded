-- Outcomes as before: 0 a task, 1 no such worker, 2 another's worker, 3 nothing to do, 4 others have
-- just now their hands on all there is; with 3 one row 11 for each of its jobs. What is asked in one
-- piece for all jobs is planned anew as the table changes, and then reads all who wait.
CREATE OR REPLACE FUNCTION wakeline.jobs_task_claim(by_worker uuid, by_user uuid)
RETURNS SETOF wakeline.jobs_told LANGUAGE plpgsql AS $$
DECLARE
    owned_by uuid;
    its_jobs uuid[];
    job uuid;
    heads bigint[];
    head bigint;
    taken bigint;
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
    its_jobs := ARRAY(
        SELECT l.job_id FROM wakeline.jobs_link l WHERE l.worker_id = by_worker ORDER BY l.job_id
    );
    IF cardinality(its_jobs) = 1 THEN
        job := its_jobs[1];
        -- From here to there, and not equal: then no other index has this order, whatever the
        -- planner believes of the table, and the first row is the first in the line.
        SELECT t.seq INTO taken FROM wakeline.jobs_task t
        WHERE t.job_id >= job AND t.job_id <= job AND t.status = 0
        ORDER BY t.job_id, t.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
    ELSE
        FOREACH job IN ARRAY its_jobs LOOP
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
        RETURN QUERY
        UPDATE wakeline.jobs_task t SET status = 1, worker_id = by_worker
        FROM wakeline.jobs_job j WHERE t.seq = taken AND j.id = t.job_id
        RETURNING CAST(0 AS smallint), NULL::text, t.id, t.job_id,
            j.room || ':' || j.category || ':' || j.name, t.room, t.status, t.created_at,
            t.started_at, t.completed_at, t.worker_id, t.error, t.payload, NULL::bigint;
        RETURN;
    END IF;
    FOREACH job IN ARRAY its_jobs LOOP
        IF EXISTS (
            SELECT 1 FROM wakeline.jobs_task t
            WHERE t.job_id >= job AND t.job_id <= job AND t.status = 0
            ORDER BY t.job_id, t.seq LIMIT 1
        ) THEN
            RETURN NEXT wakeline.jobs_tell(4, NULL, NULL);
            RETURN;
        END IF;
    END LOOP;
    RETURN NEXT wakeline.jobs_tell(3, NULL, NULL);
    FOREACH job IN ARRAY its_jobs LOOP
        RETURN NEXT wakeline.jobs_tell(11, NULL, job);
    END LOOP;
END
$$;
