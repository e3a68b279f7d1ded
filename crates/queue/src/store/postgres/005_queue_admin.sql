-- Administration of queues and groups, and the sweep.

CREATE FUNCTION wakeline.queue_configure(
    p_name text, p_namespace text, p_task text, p_lease_ms bigint, p_retry_limit integer,
    p_retry_delay_ms bigint, p_keeps_dead_letters boolean, p_priority integer, p_delay_ms bigint,
    p_window_ms bigint, p_max_size bigint, p_max_age_ms bigint, p_age_limits_waiting boolean,
    p_completed_retention_ms bigint, p_is_sealed boolean, p_options text,
    -- The options that the new ones were made of: if the queue has others, there is no row. NULL: any.
    p_made_of text
) RETURNS TABLE (public_id uuid, namespace text, task text, may_be_ready boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_before wakeline.queue;
    v_is_other_delay boolean;
BEGIN
    INSERT INTO wakeline.queue (name, namespace, task)
    VALUES (p_name, split_part(p_name, '.', 1),
        CASE WHEN strpos(p_name, '.') > 0 THEN substr(p_name, strpos(p_name, '.') + 1) ELSE '' END)
    ON CONFLICT DO NOTHING;
    SELECT * INTO v_before FROM wakeline.queue q WHERE q.name = p_name FOR NO KEY UPDATE;
    IF v_before.options <> p_made_of::jsonb THEN
        RETURN;
    END IF;
    v_is_other_delay := v_before.delay_ms <> p_delay_ms OR v_before.window_ms <> p_window_ms;
    IF v_is_other_delay THEN
        -- Claims look again at what is held back, by the new rules. A claim by the old ones may hold
        -- a cursor back in this moment: this waits for its end.
        PERFORM FROM wakeline.queue_cursor c
        WHERE c.group_id IN (SELECT g.id FROM wakeline.queue_group g WHERE g.queue_id = v_before.id)
            AND c.lease_id IS NULL AND c.ready_at IS NOT NULL
        ORDER BY c.partition_id, c.group_id FOR NO KEY UPDATE;
        UPDATE wakeline.queue_cursor c SET ready_at = clock_timestamp()
        WHERE c.group_id IN (SELECT g.id FROM wakeline.queue_group g WHERE g.queue_id = v_before.id)
            AND c.lease_id IS NULL AND c.ready_at > clock_timestamp();
    END IF;
    RETURN QUERY
    UPDATE wakeline.queue q SET
        namespace = coalesce(p_namespace, q.namespace), task = coalesce(p_task, q.task),
        lease_ms = p_lease_ms, retry_limit = p_retry_limit, retry_delay_ms = p_retry_delay_ms,
        keeps_dead_letters = p_keeps_dead_letters, priority = p_priority, delay_ms = p_delay_ms,
        window_ms = p_window_ms, max_size = p_max_size, max_age_ms = p_max_age_ms,
        age_limits_waiting = p_age_limits_waiting, completed_retention_ms = p_completed_retention_ms, is_sealed = p_is_sealed, options = p_options::jsonb
    WHERE q.id = v_before.id
    RETURNING q.public_id, q.namespace, q.task, v_is_other_delay
        OR q.namespace <> v_before.namespace OR q.task <> v_before.task;
END $$;

-- Deletes a queue. Returns how many partitions it had; NULL: there was no such queue.
CREATE FUNCTION wakeline.queue_delete_queue(p_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
    v_partitions bigint;
BEGIN
    DELETE FROM wakeline.queue q WHERE q.name = p_name
    RETURNING q.id, q.partitions INTO v_id, v_partitions;
    IF v_id IS NOT NULL THEN
        DELETE FROM wakeline.queue_group g WHERE g.queue_id = v_id;
        INSERT INTO wakeline.queue_deleted VALUES (v_id);
    END IF;
    RETURN v_partitions;
END $$;

-- The groups of this name, in one queue or in all.
CREATE FUNCTION wakeline.queue_groups_named(p_group text, p_queue text)
RETURNS SETOF wakeline.queue_group LANGUAGE sql STABLE AS $$
    SELECT g.* FROM wakeline.queue_group g
    WHERE g.name = p_group AND (p_queue IS NULL
        OR g.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = p_queue))
    ORDER BY g.queue_id
$$;

CREATE FUNCTION wakeline.queue_delete_group(p_group text, p_queue text, p_with_start boolean)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_group wakeline.queue_group;
    v_count bigint := 0;
    v_deleted bigint;
BEGIN
    FOR v_group IN SELECT * FROM wakeline.queue_groups_named(p_group, p_queue) LOOP
        PERFORM FROM wakeline.queue q WHERE q.id = v_group.queue_id FOR NO KEY UPDATE;
        IF p_with_start THEN
            DELETE FROM wakeline.queue_group g WHERE g.id = v_group.id;
        ELSE
            UPDATE wakeline.queue_group g SET frontier = 0, frontier_end = q.partitions
            FROM wakeline.queue q WHERE q.id = g.queue_id AND g.id = v_group.id;
        END IF;
        DELETE FROM wakeline.queue_cursor c WHERE c.group_id = v_group.id
            AND c.partition_id IN (
                SELECT p.id FROM wakeline.queue_partition p WHERE p.queue_id = v_group.queue_id);
        GET DIAGNOSTICS v_deleted = ROW_COUNT;
        v_count := v_count + v_deleted;
        DELETE FROM wakeline.queue_message_flag m WHERE m.group_id = v_group.id
            AND m.partition_id IN (
                SELECT p.id FROM wakeline.queue_partition p WHERE p.queue_id = v_group.queue_id);
    END LOOP;
    IF p_queue IS NULL AND p_with_start THEN
        DELETE FROM wakeline.queue_subscription s WHERE s.group_name = p_group;
    END IF;
    RETURN v_count;
END $$;

-- Moves cursors. All of them become ready: a claim finds out whether there are messages. Returns how
-- many there were.
CREATE FUNCTION wakeline.queue_seek(
    p_group text, p_queue text, p_partition text,
    -- NULL: to the end.
    p_at_us bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_at timestamptz := to_timestamp(0) + p_at_us * interval '1 microsecond';
    v_group wakeline.queue_group;
    v_count bigint := 0;
    v_moved bigint;
BEGIN
    FOR v_group IN SELECT * FROM wakeline.queue_groups_named(p_group, p_queue) LOOP
        IF p_partition IS NULL THEN
            UPDATE wakeline.queue_group g SET begin_at = coalesce(v_at, clock_timestamp())
            WHERE g.id = v_group.id;
        END IF;
        PERFORM FROM wakeline.queue_partition p
        CROSS JOIN LATERAL (
            SELECT FROM wakeline.queue_cursor c
            WHERE c.partition_id = p.id AND c.group_id = v_group.id FOR NO KEY UPDATE OF c) c
        WHERE p.queue_id = v_group.queue_id AND (p_partition IS NULL OR p.name = p_partition);
        UPDATE wakeline.queue_cursor c
        SET position = CASE WHEN v_at IS NULL THEN p.next_position
                ELSE wakeline.queue_start_position(p.id, v_at) END,
            ready_at = clock_timestamp(), lease_id = NULL, leased_to = NULL, deliveries = NULL
        FROM wakeline.queue_partition p
        WHERE p.queue_id = v_group.queue_id AND (p_partition IS NULL OR p.name = p_partition)
            AND c.partition_id = p.id AND c.group_id = v_group.id;
        GET DIAGNOSTICS v_moved = ROW_COUNT;
        v_count := v_count + v_moved;
        DELETE FROM wakeline.queue_message_flag m USING wakeline.queue_partition p
        WHERE p.queue_id = v_group.queue_id AND (p_partition IS NULL OR p.name = p_partition)
            AND m.partition_id = p.id AND m.group_id = v_group.id AND NOT m.is_dead;
    END LOOP;
    RETURN v_count;
END $$;

CREATE FUNCTION wakeline.queue_set_subscription(p_group text, p_begin_us bigint)
RETURNS bigint LANGUAGE sql AS $$
    WITH known AS (
        UPDATE wakeline.queue_group g
        SET begin_at = to_timestamp(0) + p_begin_us * interval '1 microsecond', mode = 'timestamp'
        WHERE g.name = p_group RETURNING 1
    ), remembered AS (
        UPDATE wakeline.queue_subscription s
        SET begin_at = to_timestamp(0) + p_begin_us * interval '1 microsecond', mode = 'timestamp'
        WHERE s.group_name = p_group
    )
    SELECT count(*) FROM known
$$;

-- The hash of a transaction id, as the server computes it.
CREATE FUNCTION wakeline.queue_hash(p_transaction text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(substr(sha256(convert_to(p_transaction, 'UTF8')), 1, 16), 'hex')::uuid
$$;

-- Deletes segments and what belongs to their messages. Only the transaction id is made text: the rest
-- may have characters that PostgreSQL's texts cannot have.
CREATE FUNCTION wakeline.queue_delete_segments(p_partition bigint[], p_last bigint[])
RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM wakeline.queue_segment s
        USING unnest(p_partition, p_last) AS u(partition_id, last)
        WHERE s.partition_id = u.partition_id AND s.last = u.last
        RETURNING s.partition_id, s.first, s.last, s.body
    ), deleted_transactions AS (
        DELETE FROM wakeline.queue_transaction t
        USING (
            SELECT g.partition_id, wakeline.queue_hash((e.plain -> 't') #>> '{}') AS hash
            FROM gone g CROSS JOIN LATERAL (
                SELECT wakeline.queue_readable_json(e.value::text) AS plain
                FROM json_array_elements(g.body::json) AS e(value)) e
            WHERE e.plain -> 't' IS NOT NULL) h
        WHERE t.partition_id = h.partition_id AND t.hash = h.hash
    ), deleted_flags AS (
        DELETE FROM wakeline.queue_message_flag m USING gone g
        WHERE m.partition_id = g.partition_id AND m.position >= g.first AND m.position <= g.last
    ), moved AS (
        UPDATE wakeline.queue_partition p
        SET first_position = greatest(p.first_position, g.last + 1)
        FROM (SELECT g.partition_id, max(g.last) AS last FROM gone g GROUP BY 1) g
        WHERE p.id = g.partition_id
    )
    SELECT coalesce(sum(g.last - g.first + 1), 0)::bigint FROM gone g
$$;

-- Removes some of the messages that are too old or left over. One node at a time: the others find
-- nothing.
CREATE FUNCTION wakeline.queue_sweep(p_limit bigint)
RETURNS TABLE (
    messages bigint, is_more boolean,
    -- Of queues that are still there: how many messages were too old, were consumed by every group, or
    -- were not popped in time.
    queues text[], retained bigint[], completed bigint[], evicted bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_partitions bigint[];
    v_lasts bigint[];
    v_counts bigint[];
    v_names text[];
    v_is_aged boolean[];
    v_age_limits_waiting boolean[];
    v_deleted_queue bigint;
BEGIN
    messages := 0; is_more := false;
    queues := '{}'; retained := '{}'; completed := '{}'; evicted := '{}';
    IF NOT pg_try_advisory_xact_lock(hashtextextended('wakeline.queue_sweep', 0)) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT array_agg(s.partition_id), array_agg(s.last), array_agg(s.last - s.first + 1),
        array_agg(s.name), array_agg(s.is_aged), array_agg(s.age_limits_waiting)
    INTO v_partitions, v_lasts, v_counts, v_names, v_is_aged, v_age_limits_waiting
    FROM (
        SELECT s.partition_id, s.first, s.last, q.name, q.age_limits_waiting,
            coalesce(s.created_at < v_now - q.max_age_ms * interval '1 millisecond', false) AS is_aged
        FROM wakeline.queue q
        JOIN wakeline.queue_partition p ON p.queue_id = q.id
        CROSS JOIN LATERAL (
            SELECT min(c.position) AS position FROM wakeline.queue_cursor c
            WHERE c.partition_id = p.id AND q.completed_retention_ms IS NOT NULL) done
        CROSS JOIN LATERAL (
            SELECT s.* FROM (
                SELECT s.partition_id, s.first, s.last, s.created_at
                FROM wakeline.queue_segment s
                WHERE s.partition_id = p.id ORDER BY s.last LIMIT p_limit) s
            WHERE s.created_at < v_now - q.max_age_ms * interval '1 millisecond'
                OR (s.created_at < v_now - q.completed_retention_ms * interval '1 millisecond'
                    AND s.last < done.position)) s
        WHERE (q.max_age_ms IS NOT NULL OR q.completed_retention_ms IS NOT NULL)
            AND p.first_position < p.next_position
        LIMIT p_limit) s;
    IF v_partitions IS NOT NULL THEN
        PERFORM FROM wakeline.queue_partition p
        WHERE p.id = ANY (v_partitions) ORDER BY p.id FOR NO KEY UPDATE;
        messages := wakeline.queue_delete_segments(v_partitions, v_lasts);
        is_more := cardinality(v_lasts) >= p_limit;
        SELECT array_agg(s.name), array_agg(s.retained), array_agg(s.completed),
            array_agg(s.evicted)
        INTO queues, retained, completed, evicted
        FROM (
            SELECT u.name,
                (coalesce(sum(u.count) FILTER (WHERE u.is_aged AND NOT u.age_limits_waiting), 0))::bigint
                    AS retained,
                (coalesce(sum(u.count) FILTER (WHERE NOT u.is_aged), 0))::bigint AS completed,
                (coalesce(sum(u.count) FILTER (WHERE u.is_aged AND u.age_limits_waiting), 0))::bigint
                    AS evicted
            FROM unnest(v_names, v_counts, v_is_aged, v_age_limits_waiting)
                AS u(name, count, is_aged, age_limits_waiting)
            GROUP BY u.name) s;
    END IF;

    SELECT g.queue_id INTO v_deleted_queue FROM wakeline.queue_deleted g LIMIT 1;
    IF v_deleted_queue IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    is_more := true;
    SELECT array_agg(s.partition_id), array_agg(s.last) INTO v_partitions, v_lasts
    FROM (
        SELECT s.partition_id, s.last FROM wakeline.queue_partition p
        CROSS JOIN LATERAL (
            SELECT s.partition_id, s.last FROM wakeline.queue_segment s
            WHERE s.partition_id = p.id ORDER BY s.last LIMIT p_limit) s
        WHERE p.queue_id = v_deleted_queue LIMIT p_limit) s;
    IF v_partitions IS NOT NULL THEN
        messages := messages + wakeline.queue_delete_segments(v_partitions, v_lasts);
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT array_agg(p.id) INTO v_partitions FROM (
        SELECT p.id FROM wakeline.queue_partition p WHERE p.queue_id = v_deleted_queue
        ORDER BY p.id LIMIT p_limit FOR UPDATE) p;
    DELETE FROM wakeline.queue_cursor c WHERE c.partition_id = ANY (v_partitions);
    DELETE FROM wakeline.queue_message_flag m WHERE m.partition_id = ANY (v_partitions);
    DELETE FROM wakeline.queue_transaction t WHERE t.partition_id = ANY (v_partitions);
    DELETE FROM wakeline.queue_trace_name n USING wakeline.queue_trace t
    WHERE t.partition_id = ANY (v_partitions) AND n.trace_id = t.id AND n.created_at = t.created_at;
    DELETE FROM wakeline.queue_trace t WHERE t.partition_id = ANY (v_partitions);
    DELETE FROM wakeline.queue_stream_state s WHERE s.partition_id = ANY (v_partitions);
    DELETE FROM wakeline.queue_partition p WHERE p.id = ANY (v_partitions);
    IF v_partitions IS NULL THEN
        DELETE FROM wakeline.queue_dead_letter d WHERE d.queue_id = v_deleted_queue;
        DELETE FROM wakeline.queue_deleted g WHERE g.queue_id = v_deleted_queue;
    END IF;
    RETURN NEXT;
END $$;
