-- Releasing and renewing leases. None of these commits waits for the disk.

-- Releases an instance. `p_delay_us`: its fetched messages become visible after this; NULL: at once.
-- Returns when the mailbox is ready, in microseconds; no row: the lease is not held.
CREATE FUNCTION @schema@.release_instance(
    p_instance text, p_token uuid, p_delay_us bigint, p_is_attempt boolean
) RETURNS TABLE (ready_us bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_mailbox @schema@.mailbox;
    v_now timestamptz;
BEGIN
    SELECT m.* INTO v_mailbox FROM @schema@.mailbox m
    WHERE m.instance = p_instance AND m.token = p_token FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    v_now := clock_timestamp();
    IF p_is_attempt OR p_delay_us IS NOT NULL THEN
        UPDATE @schema@.message g SET
            attempts = g.attempts + p_is_attempt::integer,
            visible_at = CASE WHEN p_delay_us IS NULL THEN g.visible_at
                ELSE v_now + p_delay_us * interval '1 microsecond' END
        WHERE g.instance = p_instance AND g.number <= v_mailbox.leased_through
            AND (g.visible_at IS NULL OR g.visible_at <= v_mailbox.leased_at);
    END IF;
    PERFORM @schema@.end_leases(ARRAY[p_instance], v_now);
    RETURN QUERY SELECT (extract(epoch FROM m.ready_at - v_now) * 1e6)::bigint
    FROM @schema@.mailbox m WHERE m.instance = p_instance AND m.ready_at < 'infinity';
    IF NOT FOUND THEN
        -- The instance has no messages.
        ready_us := 9223372036854775807;
        RETURN NEXT;
    END IF;
END $$;

CREATE FUNCTION @schema@.renew_instance(p_instance text, p_token uuid, p_lease_us bigint)
RETURNS SETOF boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY UPDATE @schema@.mailbox m
    SET ready_at = clock_timestamp() + p_lease_us * interval '1 microsecond'
    WHERE m.instance = p_instance AND m.token = p_token AND m.ready_at > clock_timestamp()
    RETURNING true;
END $$;

-- Releases an activity. Returns its tag, whether it has a session, the session's owner, and for how
-- many microseconds the owner has it; no row: the lease is not held.
CREATE FUNCTION @schema@.release_activity(
    p_id bigint, p_token uuid, p_delay_us bigint, p_is_attempt boolean
) RETURNS TABLE (tag text, has_session boolean, owner text, ends_us bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY WITH released AS (
        UPDATE @schema@.activity t SET
            token = NULL,
            ready_at = clock_timestamp() + coalesce(p_delay_us, 0) * interval '1 microsecond',
            attempts = greatest(0, t.attempts - (NOT p_is_attempt)::integer)
        WHERE t.id = p_id AND t.token = p_token
        RETURNING t.tag, t.session
    )
    SELECT b.tag, b.session IS NOT NULL, s.owner,
        (extract(epoch FROM s.locked_until - clock_timestamp()) * 1e6)::bigint
    FROM released b
    LEFT JOIN @schema@.session s ON s.id = b.session AND s.locked_until > clock_timestamp();
END $$;

CREATE FUNCTION @schema@.renew_activity(p_id bigint, p_token uuid, p_lease_us bigint)
RETURNS SETOF boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY WITH renewed AS (
        UPDATE @schema@.activity t SET ready_at = clock_timestamp() + p_lease_us * interval '1 microsecond'
        WHERE t.id = p_id AND t.token = p_token AND t.ready_at > clock_timestamp()
        RETURNING t.session
    ), active AS (
        UPDATE @schema@.session s SET active_at = clock_timestamp() FROM renewed r
        WHERE s.id = r.session AND s.locked_until > clock_timestamp()
    )
    SELECT true FROM renewed;
END $$;

-- Moves an activity that cannot be read to `unreadable_activity` and sends its orchestration the
-- failure.
CREATE FUNCTION @schema@.set_aside_activity(p_id bigint, p_token uuid, p_reason text, p_failure text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_instance text;
BEGIN
    SELECT t.instance INTO v_instance FROM @schema@.activity t WHERE t.id = p_id AND t.token = p_token;
    PERFORM FROM @schema@.mailbox m WHERE m.instance = v_instance FOR NO KEY UPDATE;
    WITH deleted AS (
        DELETE FROM @schema@.activity t WHERE t.id = p_id AND t.token = p_token
        RETURNING t.id, t.instance, t.item
    )
    INSERT INTO @schema@.unreadable_activity (id, instance, item, reason)
    SELECT g.id, g.instance, g.item, p_reason FROM deleted g;
    IF FOUND THEN
        PERFORM @schema@.put_messages(ARRAY[v_instance], ARRAY[p_failure], ARRAY[NULL::timestamptz]);
    END IF;
END $$;
