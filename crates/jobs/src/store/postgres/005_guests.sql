-- A guest has only a token to come back with. Once it has a password it is no guest any more.
ALTER TABLE wakeline.jobs_user ADD COLUMN is_guest boolean NOT NULL DEFAULT false;
UPDATE wakeline.jobs_user SET is_guest = true WHERE password IS NULL AND email LIKE '%@guest.user';
CREATE INDEX jobs_user_guest ON wakeline.jobs_user (created_at) WHERE is_guest AND password IS NULL;

-- How many were removed.
CREATE FUNCTION wakeline.jobs_sweep_guests(kept bigint, most bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    leavers uuid[];
    gone bigint;
BEGIN
    -- A statement of its own, before workers are looked for: one that is being made holds a lock
    -- on its user, which is left for the next time.
    leavers := ARRAY(
        SELECT u.id FROM wakeline.jobs_user u
        WHERE u.is_guest AND u.password IS NULL AND u.created_at <= wakeline.jobs_now() - kept
            AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = u.id)
        ORDER BY u.created_at LIMIT most
        FOR UPDATE SKIP LOCKED
    );
    DELETE FROM wakeline.jobs_user u WHERE u.id = ANY (leavers)
        AND NOT EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = u.id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;
