-- As before, but what the server runs itself is what its program says it is: of a job of @internal
-- the last schema counts.
-- Outcomes: 0 new, 1 known, 2 no such worker, 3 it has another schema.
CREATE OR REPLACE FUNCTION wakeline.jobs_job_register(
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
    ELSIF known.schema <> with_schema AND in_room <> '@internal' THEN
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
