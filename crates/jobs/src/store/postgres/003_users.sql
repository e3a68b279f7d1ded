-- state: 0 there is no such user, 1 the email is another's, 2 done.
CREATE FUNCTION wakeline.jobs_change_user(
    user_id uuid, new_email text, new_password text,
    new_is_active boolean, new_is_superuser boolean, new_is_verified boolean
) RETURNS TABLE (
    state integer, id uuid, email text,
    is_active boolean, is_superuser boolean, is_verified boolean, epoch integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        UPDATE wakeline.jobs_user u SET
            email = coalesce(new_email, u.email),
            password = coalesce(new_password, u.password),
            epoch = u.epoch + CASE WHEN new_password IS NULL THEN 0 ELSE 1 END,
            is_active = coalesce(new_is_active, u.is_active),
            is_superuser = coalesce(new_is_superuser, u.is_superuser),
            is_verified = coalesce(
                new_is_verified, u.is_verified AND coalesce(new_email, u.email) = u.email)
        WHERE u.id = user_id
        RETURNING 2, u.id, u.email, u.is_active, u.is_superuser, u.is_verified, u.epoch;
    IF NOT FOUND THEN
        state := 0;
        RETURN NEXT;
    END IF;
EXCEPTION WHEN unique_violation THEN
    state := 1;
    RETURN NEXT;
END
$$;

-- 0 there is no such user, 1 it has workers, 2 done.
CREATE FUNCTION wakeline.jobs_delete_user(leaver uuid) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    -- A statement of its own, before the workers are counted: a worker that is being made holds a
    -- lock on its user, and is seen by the statement that follows the wait for it.
    PERFORM 1 FROM wakeline.jobs_user u WHERE u.id = leaver FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF EXISTS (SELECT 1 FROM wakeline.jobs_worker w WHERE w.user_id = leaver) THEN
        RETURN 1;
    END IF;
    DELETE FROM wakeline.jobs_user u WHERE u.id = leaver;
    RETURN 2;
END
$$;
