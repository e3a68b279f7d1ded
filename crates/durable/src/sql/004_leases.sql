-- Leases that are given back or prolonged. None of it waits for the disk.

-- Gives an instance back. `p_delay_us`: what was handed out becomes visible after it; NULL: as it
-- was. Returns when the mailbox is ready, in microseconds; no row: the lease is not held.
CREATE FUNCTION @schema@.give_back_instance(
    p_instance text, p_token uuid, p_delay_us bigint, p_is_attempt boolean
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    v_box @schema@.mailbox;
    v_now timestamptz;
BEGIN
    SELECT m.* INTO v_box FROM @schema@.mailbox m
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
        WHERE g.instance = p_instance AND g.number <= v_box.taken_through
            AND (g.visible_at IS NULL OR g.visible_at <= v_box.taken_at);
    END IF;
    PERFORM @schema@.release(ARRAY[p_instance], v_now);
    RETURN QUERY SELECT (extract(epoch FROM m.ready_at - v_now) * 1e6)::bigint
    FROM @schema@.mailbox m WHERE m.instance = p_instance AND m.ready_at < 'infinity';
    IF NOT FOUND THEN
        -- Nothing is left in it.
        RETURN NEXT 9223372036854775807;
    END IF;
END $$;

CREATE FUNCTION @schema@.prolong_instance(p_instance text, p_token uuid, p_lease_us bigint)
RETURNS SETOF boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY UPDATE @schema@.mailbox m
    SET ready_at = clock_timestamp() + p_lease_us * interval '1 microsecond'
    WHERE m.instance = p_instance AND m.token = p_token AND m.ready_at > clock_timestamp()
    RETURNING true;
END $$;

-- Gives an activity back. Returns its tag, whether it has a session, who holds it, and for how many
-- microseconds.
CREATE FUNCTION @schema@.give_back_task(
    p_id bigint, p_token uuid, p_delay_us bigint, p_is_attempt boolean
) RETURNS TABLE (tag text, has_session boolean, owner text, ends_us bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY WITH back AS (
        UPDATE @schema@.task t SET
            token = NULL,
            ready_at = clock_timestamp() + coalesce(p_delay_us, 0) * interval '1 microsecond',
            attempts = greatest(0, t.attempts - (NOT p_is_attempt)::integer)
        WHERE t.id = p_id AND t.token = p_token
        RETURNING t.tag, t.session
    )
    SELECT b.tag, b.session IS NOT NULL, s.owner,
        (extract(epoch FROM s.locked_until - clock_timestamp()) * 1e6)::bigint
    FROM back b
    LEFT JOIN @schema@.session s ON s.id = b.session AND s.locked_until > clock_timestamp();
END $$;

CREATE FUNCTION @schema@.prolong_task(p_id bigint, p_token uuid, p_lease_us bigint)
RETURNS SETOF boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY WITH mine AS (
        UPDATE @schema@.task t SET ready_at = clock_timestamp() + p_lease_us * interval '1 microsecond'
        WHERE t.id = p_id AND t.token = p_token AND t.ready_at > clock_timestamp()
        RETURNING t.session
    ), active AS (
        UPDATE @schema@.session s SET active_at = clock_timestamp() FROM mine
        WHERE s.id = mine.session AND s.locked_until > clock_timestamp()
    )
    SELECT true FROM mine;
END $$;

-- An activity that cannot be read is set aside, and its orchestration is told that it failed.
CREATE FUNCTION @schema@.spoil(p_id bigint, p_token uuid, p_reason text, p_failure text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_instance text;
BEGIN
    SELECT t.instance INTO v_instance FROM @schema@.task t WHERE t.id = p_id AND t.token = p_token;
    PERFORM FROM @schema@.mailbox m WHERE m.instance = v_instance FOR NO KEY UPDATE;
    WITH gone AS (
        DELETE FROM @schema@.task t WHERE t.id = p_id AND t.token = p_token
        RETURNING t.id, t.instance, t.item
    )
    INSERT INTO @schema@.spoilt (id, instance, item, reason)
    SELECT g.id, g.instance, g.item, p_reason FROM gone g;
    IF FOUND THEN
        PERFORM @schema@.put(ARRAY[v_instance], ARRAY[p_failure], ARRAY[NULL::timestamptz]);
    END IF;
END $$;
