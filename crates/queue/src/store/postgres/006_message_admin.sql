-- Administration of single messages.

-- Lets groups claim what follows a message that is gone, if their cursors are held back at it: the
-- delay of a retry was for that message alone.
CREATE FUNCTION wakeline.queue_unblock_cursors(p_partition bigint, p_position bigint, p_groups bigint[])
RETURNS void LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c SET ready_at = clock_timestamp()
    FROM (
        SELECT c.group_id FROM wakeline.queue_cursor c
        WHERE c.partition_id = p_partition AND c.group_id = ANY (p_groups)
            AND c.position = p_position AND c.lease_id IS NULL AND c.ready_at > clock_timestamp()
        ORDER BY c.group_id FOR NO KEY UPDATE) held
    WHERE c.partition_id = p_partition AND c.group_id = held.group_id
$$;

-- Deletes a message for every group, and its dead letters. Whether there was one.
CREATE FUNCTION wakeline.queue_delete_message(
    p_partition bigint, p_transaction text,
    -- The message's position, if its id contains it.
    p_position bigint, p_hash uuid
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_partition wakeline.queue_partition;
    v_position bigint;
    v_letters bigint;
BEGIN
    SELECT * INTO v_partition FROM wakeline.queue_partition p
    WHERE p.id = p_partition FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT coalesce(p_position, (
        SELECT t.position FROM wakeline.queue_transaction t
        WHERE t.partition_id = p_partition AND t.hash = p_hash)) INTO v_position;
    DELETE FROM wakeline.queue_dead_letter d
    WHERE d.partition_id = p_partition
        AND (d.transaction_id = p_transaction OR d.position = v_position);
    GET DIAGNOSTICS v_letters = ROW_COUNT;
    IF v_position IS NULL OR v_position < v_partition.first_position
        OR v_position >= v_partition.next_position
        OR EXISTS (SELECT FROM wakeline.queue_message_flag m WHERE m.partition_id = p_partition
            AND m.group_id = 0 AND m.position = v_position)
    THEN
        RETURN v_letters > 0;
    END IF;
    INSERT INTO wakeline.queue_message_flag (partition_id, group_id, position, failures, is_dead)
    VALUES (p_partition, 0, v_position, 0, true);
    UPDATE wakeline.queue_partition p SET deletions_end = greatest(p.deletions_end, v_position + 1)
    WHERE p.id = p_partition;
    DELETE FROM wakeline.queue_transaction t WHERE t.partition_id = p_partition AND t.hash = p_hash;
    PERFORM wakeline.queue_unblock_cursors(p_partition, v_position, array(
        SELECT c.group_id FROM wakeline.queue_cursor c WHERE c.partition_id = p_partition));
    RETURN true;
END $$;

-- Appends a dead letter again, for the group that had it. Returns the new message's position and time;
-- no row if there is no such dead letter, no position if its group was deleted.
CREATE FUNCTION wakeline.queue_retry_dead_letter(
    p_letter bigint, p_hash uuid,
    -- The message as it is appended: with the transaction id it had, or without one.
    p_entry_with_id text, p_entry_without_id text
) RETURNS TABLE (at bigint, created_us bigint, keeps_id boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_letter wakeline.queue_dead_letter;
    v_partition wakeline.queue_partition;
    v_group bigint;
    v_at timestamptz;
BEGIN
    SELECT * INTO v_letter FROM wakeline.queue_dead_letter d WHERE d.id = p_letter;
    SELECT * INTO v_partition FROM wakeline.queue_partition p
    WHERE p.id = v_letter.partition_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT g.id INTO v_group FROM wakeline.queue_group g
    WHERE g.queue_id = v_letter.queue_id AND g.name = v_letter.group_name;
    IF v_group IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    DELETE FROM wakeline.queue_dead_letter d WHERE d.id = p_letter;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    at := v_partition.next_position;
    v_at := greatest(v_partition.last_at, clock_timestamp());
    created_us := (extract(epoch FROM v_at) * 1000000)::bigint;
    -- For another group the transaction id still names the old message.
    keeps_id := p_hash IS NOT NULL AND NOT EXISTS (
        SELECT FROM wakeline.queue_cursor c
        WHERE c.partition_id = v_partition.id AND c.group_id <> v_group);
    INSERT INTO wakeline.queue_segment (partition_id, first, last, created_at, only_group, body)
    VALUES (v_partition.id, at, at, v_at, v_group,
        '[' || CASE WHEN keeps_id THEN p_entry_with_id ELSE p_entry_without_id END || ']');
    IF keeps_id THEN
        INSERT INTO wakeline.queue_transaction (partition_id, hash, position)
        VALUES (v_partition.id, p_hash, at)
        ON CONFLICT (partition_id, hash) DO UPDATE SET position = excluded.position;
    END IF;
    UPDATE wakeline.queue_partition p SET next_position = p.next_position + 1, last_at = v_at
    WHERE p.id = v_partition.id;
    UPDATE wakeline.queue_cursor c SET ready_at = v_at + (
        SELECT q.delay_ms FROM wakeline.queue q WHERE q.id = v_partition.queue_id) * interval '1 millisecond'
    WHERE c.partition_id = v_partition.id AND c.ready_at IS NULL;
    RETURN NEXT;
END $$;

-- Makes a message a dead letter of the groups that have neither consumed nor leased it; of all of them
-- or of one. Returns how many.
CREATE FUNCTION wakeline.queue_move_to_dead_letters(
    p_partition bigint, p_transaction text, p_position bigint, p_hash uuid, p_group text, p_error text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
    v_position bigint;
    v_groups bigint[];
    v_count bigint;
BEGIN
    PERFORM FROM wakeline.queue_partition p WHERE p.id = p_partition FOR NO KEY UPDATE;
    PERFORM FROM wakeline.queue_cursor c WHERE c.partition_id = p_partition
    ORDER BY c.group_id FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    SELECT coalesce(p_position, (
        SELECT t.position FROM wakeline.queue_transaction t
        WHERE t.partition_id = p_partition AND t.hash = p_hash)) INTO v_position;
    IF v_position IS NULL OR EXISTS (SELECT FROM wakeline.queue_message_flag m
        WHERE m.partition_id = p_partition AND m.group_id = 0 AND m.position = v_position)
    THEN
        RETURN 0;
    END IF;
    SELECT array_agg(c.group_id) INTO v_groups
    FROM wakeline.queue_cursor c
    JOIN wakeline.queue_group g ON g.id = c.group_id
    LEFT JOIN wakeline.queue_message_flag m
        ON m.partition_id = c.partition_id AND m.group_id = c.group_id AND m.position = v_position
    CROSS JOIN LATERAL (
        SELECT s.only_group FROM wakeline.queue_segment s
        WHERE s.partition_id = p_partition AND s.last >= v_position AND s.first <= v_position
        ORDER BY s.last LIMIT 1) s
    WHERE c.partition_id = p_partition AND c.position <= v_position
        AND (p_group IS NULL OR g.name = p_group)
        AND (s.only_group IS NULL OR s.only_group = g.id)
        AND m.is_dead IS DISTINCT FROM true
        AND NOT (c.lease_id IS NOT NULL AND c.ready_at > v_now AND v_position < c.leased_to);
    INSERT INTO wakeline.queue_message_flag (partition_id, group_id, position, failures, is_dead)
    SELECT p_partition, u.id, v_position, 0, true FROM unnest(v_groups) AS u(id)
    ON CONFLICT (partition_id, group_id, position) DO UPDATE SET is_dead = true;
    UPDATE wakeline.queue_cursor c SET flags_end = greatest(c.flags_end, v_position + 1)
    WHERE c.partition_id = p_partition AND c.group_id = ANY (v_groups);
    PERFORM wakeline.queue_unblock_cursors(p_partition, v_position, v_groups);
    INSERT INTO wakeline.queue_dead_letter (queue_id, partition_id, group_name, position, failures,
        error, failed_at, created_at, transaction_id, message)
    SELECT g.queue_id, p_partition, g.name, v_position, m.failures, p_error, v_now,
        s.created_at, p_transaction, wakeline.queue_entry(s.body, v_position - s.first)
    FROM wakeline.queue_group g
    JOIN wakeline.queue_message_flag m
        ON m.partition_id = p_partition AND m.group_id = g.id AND m.position = v_position
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.queue_segment s
        WHERE s.partition_id = p_partition AND s.last >= v_position ORDER BY s.last LIMIT 1) s
    WHERE g.id = ANY (v_groups)
    ON CONFLICT DO NOTHING;
    v_count := coalesce(cardinality(v_groups), 0);
    RETURN v_count;
END $$;

CREATE FUNCTION wakeline.queue_add_trace(
    p_id uuid, p_partition bigint, p_transaction text, p_group text, p_event text, p_data text,
    p_worker text, p_names text[]
) RETURNS void LANGUAGE sql AS $$
    WITH added AS (
        INSERT INTO wakeline.queue_trace
        VALUES (p_id, p_partition, p_transaction, p_group, p_event, p_data, p_worker, clock_timestamp())
        RETURNING created_at
    )
    INSERT INTO wakeline.queue_trace_name (name, created_at, trace_id)
    SELECT DISTINCT u.name, t.created_at, p_id FROM unnest(p_names) AS u(name) CROSS JOIN added t
$$;
