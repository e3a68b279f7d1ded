-- What a transaction of write batches loads before it decides, and writes after. The server decides
-- between the two, in the same transaction (`apply.rs`).
--
-- Locks: queues by id, then groups, then partitions by id, then cursors by partition and group.
-- Everything here follows this order, so that the batches of two nodes cannot deadlock.
--
-- Look-ups are written as lateral subqueries, because without statistics the planner may join by
-- reading a whole table. A lock and the reading under it are two statements: the second one sees
-- what was committed while the first one waited.

-- One message out of a segment's body. Unlike `->` this reads no escapes, of which PostgreSQL
-- refuses some that are JSON (NUL, half a surrogate pair).
CREATE FUNCTION wakeline.queue_entry(p_body text, p_index bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT e.value::text FROM json_array_elements(p_body::json) WITH ORDINALITY AS e(value, item)
    WHERE e.item = p_index + 1
$$;

-- A JSON text whose fields can be read. If it has such escapes, all escapes are replaced by letters:
-- the fields that are read here have none.
CREATE FUNCTION wakeline.queue_readable_json(p_text text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_text ~ '\\u(0000|[dD][89a-fA-F])'
        THEN regexp_replace(p_text, '\\u[0-9a-fA-F]{4}', '\\u0041', 'g') ELSE p_text END::json
$$;

-- The partitions of these names, created where they are missing. A new partition gets cursors of all
-- groups of its queue.
CREATE FUNCTION wakeline.queue_find_or_make_partitions(p_queue text[], p_partition text[])
RETURNS TABLE (item bigint, partition_id bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF EXISTS (
        SELECT FROM unnest(p_queue, p_partition) AS u(queue, partition)
        WHERE (
            SELECT p.id FROM wakeline.queue_partition p
            WHERE p.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = u.queue)
                AND p.name = u.partition) IS NULL)
    THEN
        INSERT INTO wakeline.queue (name, namespace, task)
        SELECT DISTINCT u.queue, split_part(u.queue, '.', 1),
            CASE WHEN strpos(u.queue, '.') > 0 THEN substr(u.queue, strpos(u.queue, '.') + 1) ELSE '' END
        FROM unnest(p_queue) AS u(queue)
        WHERE (SELECT q.id FROM wakeline.queue q WHERE q.name = u.queue) IS NULL
        ORDER BY 1
        ON CONFLICT DO NOTHING;

        -- The queue's row numbers its partitions and keeps groups from being made meanwhile.
        PERFORM FROM wakeline.queue q WHERE q.name = ANY (p_queue) ORDER BY q.id FOR NO KEY UPDATE;

        WITH missing AS (
            SELECT DISTINCT q.id AS queue_id, q.partitions, u.partition
            FROM unnest(p_queue, p_partition) AS u(queue, partition)
            CROSS JOIN LATERAL (
                SELECT * FROM wakeline.queue q WHERE q.name = u.queue LIMIT 1) q
            WHERE (
                SELECT p.id FROM wakeline.queue_partition p
                WHERE p.queue_id = q.id AND p.name = u.partition) IS NULL
        ), made AS (
            INSERT INTO wakeline.queue_partition (queue_id, name, ordinal)
            SELECT m.queue_id, m.partition,
                m.partitions + row_number() OVER (PARTITION BY m.queue_id ORDER BY m.partition)
            FROM missing m
            RETURNING id, queue_id
        ), counted AS (
            UPDATE wakeline.queue q SET partitions = q.partitions + c.count
            FROM (SELECT m.queue_id, count(*) FROM missing m GROUP BY 1) c
            WHERE q.id = c.queue_id
        )
        INSERT INTO wakeline.queue_cursor (partition_id, group_id)
        SELECT m.id, g.id FROM made m JOIN wakeline.queue_group g ON g.queue_id = m.queue_id;
    END IF;
    RETURN QUERY
    SELECT u.item, p.id
    FROM unnest(p_queue, p_partition) WITH ORDINALITY AS u(queue, partition, item)
    CROSS JOIN LATERAL (
        SELECT p.id FROM wakeline.queue_partition p
        WHERE p.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = u.queue)
            AND p.name = u.partition) p;
END $$;

-- Locks the partitions that are pushed to, and those where an acknowledgement may reach the end:
-- whether a group is at the end must not change while that is decided.
CREATE FUNCTION wakeline.queue_lock_partitions(
    p_partition bigint[],
    -- Per partition: NULL when it is pushed to, else the position acknowledged, or its hash.
    p_is_push boolean[], p_position bigint[], p_hash uuid[]
) RETURNS TABLE (
    now_us bigint, push_paused boolean, key_fingerprint bigint,
    partition_id bigint, name text, first_position bigint, next_position bigint, last_us bigint,
    queue_id bigint, queue text, namespace text, task text,
    delay_ms bigint, is_sealed boolean, max_size bigint,
    -- With a limit only: how many messages some group has still to consume.
    size bigint,
    -- Nothing can be pushed to it meanwhile.
    is_locked boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_ids bigint[];
    v_up_to bigint[];
    v_now bigint;
    v_paused boolean;
    v_key bigint;
BEGIN
    SELECT array_agg(u.id), array_agg(u.up_to) INTO v_ids, v_up_to
    FROM (
        SELECT u.id, CASE WHEN bool_or(u.is_push) THEN NULL ELSE max(coalesce(u.position, t.position, -2)) END AS up_to
        FROM unnest(p_partition, p_is_push, p_position, p_hash) AS u(id, is_push, position, hash)
        LEFT JOIN LATERAL (
            SELECT t.position FROM wakeline.queue_transaction t
            WHERE t.partition_id = u.id AND t.hash = u.hash LIMIT 1) t ON u.hash IS NOT NULL
        GROUP BY u.id ORDER BY u.id) u;
    PERFORM FROM unnest(v_ids, v_up_to) AS u(id, up_to)
    CROSS JOIN LATERAL (
        SELECT FROM wakeline.queue_partition p
        WHERE p.id = u.id AND (u.up_to IS NULL OR p.next_position <= u.up_to + 1)
        FOR NO KEY UPDATE OF p) p;
    SELECT m.push_paused, m.key_fingerprint INTO v_paused, v_key FROM wakeline.queue_mode m;
    v_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    RETURN QUERY
    SELECT v_now, v_paused, v_key, u.id, p.name, p.first_position, p.next_position,
        CASE WHEN p.last_at = '-infinity' THEN 0
            ELSE (extract(epoch FROM p.last_at) * 1000000)::bigint END,
        p.queue_id, q.name, q.namespace, q.task, q.delay_ms, q.is_sealed, q.max_size,
        CASE WHEN q.max_size > 0 AND u.up_to IS NULL THEN wakeline.queue_size(q.id) END,
        -- The condition of the lock: an end that has moved on stays beyond it.
        u.up_to IS NULL OR p.next_position <= u.up_to + 1
    FROM unnest(v_ids, v_up_to) AS u(id, up_to)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.queue_partition p WHERE p.id = u.id LIMIT 1) p
    CROSS JOIN LATERAL (SELECT * FROM wakeline.queue q WHERE q.id = p.queue_id LIMIT 1) q;
END $$;

-- How many of a queue's messages some group has still to consume.
CREATE FUNCTION wakeline.queue_size(p_queue bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(p.next_position - greatest(p.first_position, coalesce((
        SELECT min(c.position) FROM wakeline.queue_cursor c WHERE c.partition_id = p.id), 0))), 0)::bigint
    FROM wakeline.queue_partition p WHERE p.queue_id = p_queue
$$;

-- The messages that have these transaction ids already.
CREATE FUNCTION wakeline.queue_duplicates(p_partition bigint[], p_hash uuid[])
RETURNS TABLE (item bigint, at bigint, created_us bigint) LANGUAGE sql STABLE AS $$
    SELECT u.item, t.position, (extract(epoch FROM s.created_at) * 1000000)::bigint
    FROM unnest(p_partition, p_hash) WITH ORDINALITY AS u(id, hash, item)
    CROSS JOIN LATERAL (
        SELECT t.position FROM wakeline.queue_transaction t
        WHERE t.partition_id = u.id AND t.hash = u.hash LIMIT 1) t
    CROSS JOIN LATERAL (
        SELECT s.created_at FROM wakeline.queue_segment s
        WHERE s.partition_id = u.id AND s.last >= t.position ORDER BY s.last LIMIT 1) s
$$;

-- The positions of the messages with these transaction ids.
CREATE FUNCTION wakeline.queue_positions(p_partition bigint[], p_hash uuid[])
RETURNS TABLE (item bigint, at bigint) LANGUAGE sql STABLE AS $$
    SELECT u.item, t.position
    FROM unnest(p_partition, p_hash) WITH ORDINALITY AS u(id, hash, item)
    CROSS JOIN LATERAL (
        SELECT t.position FROM wakeline.queue_transaction t
        WHERE t.partition_id = u.id AND t.hash = u.hash LIMIT 1) t
$$;

-- Locks the cursors that are acknowledged.
CREATE FUNCTION wakeline.queue_lock_cursors(p_partition bigint[], p_group text[]) RETURNS TABLE (
    item bigint, group_id bigint,
    -- The partition ends here or later.
    next_position bigint,
    "position" bigint, ready_us bigint, lease_id uuid, leased_to bigint, nacked_lease uuid,
    flags_end bigint, deliveries text,
    retry_limit integer, retry_delay_ms bigint, keeps_dead_letters boolean,
    flag_positions bigint[], flag_failures integer[], flag_dead boolean[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- Flags that are read from a cursor on.
    c_flags CONSTANT integer := 10000;
    v_group bigint[];
BEGIN
    SELECT array_agg((
        SELECT g.id FROM wakeline.queue_group g
        WHERE g.name = u.grp AND g.queue_id = (
            SELECT p.queue_id FROM wakeline.queue_partition p WHERE p.id = u.id)) ORDER BY u.item)
    INTO v_group
    FROM unnest(p_partition, p_group) WITH ORDINALITY AS u(id, grp, item);
    PERFORM FROM (
        SELECT u.id, u.group_id FROM unnest(p_partition, v_group) AS u(id, group_id)
        WHERE u.group_id IS NOT NULL ORDER BY 1, 2) u
    CROSS JOIN LATERAL (
        SELECT FROM wakeline.queue_cursor c
        WHERE c.partition_id = u.id AND c.group_id = u.group_id FOR NO KEY UPDATE OF c) c;
    RETURN QUERY
    SELECT u.item, u.group_id, p.next_position,
        c.position, (extract(epoch FROM c.ready_at) * 1000000)::bigint, c.lease_id, c.leased_to,
        c.nacked_lease, c.flags_end, c.deliveries, q.retry_limit, q.retry_delay_ms, q.keeps_dead_letters,
        m.positions, m.failures, m.dead
    FROM unnest(p_partition, v_group) WITH ORDINALITY AS u(id, group_id, item)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.queue_partition p WHERE p.id = u.id LIMIT 1) p
    CROSS JOIN LATERAL (SELECT * FROM wakeline.queue q WHERE q.id = p.queue_id LIMIT 1) q
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.queue_cursor c
        WHERE c.partition_id = u.id AND c.group_id = u.group_id LIMIT 1) c
    LEFT JOIN LATERAL (
        SELECT array_agg(m.position) AS positions, array_agg(m.failures) AS failures,
            array_agg(m.is_dead) AS dead
        FROM (
            SELECT m.position, m.failures, m.is_dead FROM wakeline.queue_message_flag m
            WHERE m.partition_id = u.id AND m.group_id = u.group_id AND m.position >= c.position
            ORDER BY m.position LIMIT c_flags) m
    ) m ON c.flags_end > c.position;
END $$;

-- The leases that are valid, locked so that they stay valid until the commit.
CREATE FUNCTION wakeline.queue_lock_leases(p_lease uuid[]) RETURNS TABLE (lease_id uuid)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM wakeline.queue_cursor c WHERE c.lease_id = ANY (p_lease)
    ORDER BY c.partition_id, c.group_id FOR NO KEY UPDATE OF c;
    RETURN QUERY
    SELECT DISTINCT c.lease_id FROM wakeline.queue_cursor c
    WHERE c.lease_id = ANY (p_lease) AND c.ready_at > clock_timestamp();
END $$;

-- Stores segments. Returns a row per cursor that was at the end and is ready now.
CREATE FUNCTION wakeline.queue_append(
    p_partition bigint[], p_next bigint[], p_last_us bigint[], p_ready_us bigint[],
    s_partition bigint[], s_first bigint[], s_last bigint[], s_only bigint[], s_body text[],
    t_partition bigint[], t_hash uuid[], t_position bigint[]
) RETURNS TABLE (partition_id bigint, group_name text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO wakeline.queue_segment (partition_id, first, last, created_at, only_group, body)
    SELECT u.partition_id, u.first, u.last,
        to_timestamp(0) + p.last_us * interval '1 microsecond', u.only_group, u.body
    FROM unnest(s_partition, s_first, s_last, s_only, s_body) AS u(partition_id, first, last, only_group, body)
    JOIN unnest(p_partition, p_last_us) AS p(id, last_us) ON p.id = u.partition_id;
    IF cardinality(t_hash) > 0 THEN
        INSERT INTO wakeline.queue_transaction (partition_id, hash, position)
        SELECT * FROM unnest(t_partition, t_hash, t_position);
    END IF;
    UPDATE wakeline.queue_partition p
    SET next_position = u.next, last_at = to_timestamp(0) + u.last_us * interval '1 microsecond'
    FROM unnest(p_partition, p_next, p_last_us) AS u(id, next, last_us) WHERE p.id = u.id;
    RETURN QUERY
    WITH readied AS (
        UPDATE wakeline.queue_cursor c
        SET ready_at = to_timestamp(0) + u.ready_us * interval '1 microsecond'
        FROM unnest(p_partition, p_ready_us) AS u(id, ready_us)
        WHERE c.partition_id = u.id AND c.ready_at IS NULL
        RETURNING c.partition_id, c.group_id
    )
    SELECT r.partition_id, g.name FROM readied r
    CROSS JOIN LATERAL (SELECT g.name FROM wakeline.queue_group g WHERE g.id = r.group_id LIMIT 1) g;
END $$;

-- Writes the new state of cursors.
CREATE FUNCTION wakeline.queue_write_cursors(
    p_partition bigint[], p_group bigint[], p_position bigint[], p_ready_us bigint[],
    p_lease uuid[], p_leased_to bigint[], p_flags_end bigint[], p_consumed bigint[],
    p_deliveries text[]
) RETURNS void LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c
    SET position = u.position, lease_id = u.lease, leased_to = u.leased_to, flags_end = u.flags_end,
        ready_at = to_timestamp(0) + u.ready_us * interval '1 microsecond',
        consumed = c.consumed + u.consumed, deliveries = u.deliveries
    FROM unnest(p_partition, p_group, p_position, p_ready_us, p_lease, p_leased_to, p_flags_end,
            p_consumed, p_deliveries)
        AS u(partition_id, group_id, position, ready_us, lease, leased_to, flags_end, consumed, deliveries)
    WHERE c.partition_id = u.partition_id AND c.group_id = u.group_id
$$;

-- Writes which leases nacks have ended. Apart from the cursors, because claims write those too and
-- leave this as it is.
CREATE FUNCTION wakeline.queue_write_nacked_leases(
    p_partition bigint[], p_group bigint[], p_lease uuid[]
) RETURNS void LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c SET nacked_lease = u.lease
    FROM unnest(p_partition, p_group, p_lease) AS u(partition_id, group_id, lease)
    WHERE c.partition_id = u.partition_id AND c.group_id = u.group_id
$$;

-- Writes flags, keeps dead letters, and deletes the flags that cursors have passed.
CREATE FUNCTION wakeline.queue_write_flags(
    p_now_us bigint, p_partition bigint[], p_group bigint[], p_position bigint[],
    p_failures integer[], p_dead boolean[], p_keep boolean[], p_transaction text[], p_error text[],
    c_partition bigint[], c_group bigint[], c_position bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wakeline.queue_message_flag (partition_id, group_id, position, failures, is_dead)
    SELECT * FROM unnest(p_partition, p_group, p_position, p_failures, p_dead)
    ON CONFLICT (partition_id, group_id, position)
        DO UPDATE SET failures = excluded.failures, is_dead = excluded.is_dead;
    INSERT INTO wakeline.queue_dead_letter (queue_id, partition_id, group_name, position, failures,
        error, failed_at, created_at, transaction_id, message)
    SELECT g.queue_id, u.partition_id, g.name, u.position, u.failures, u.error,
        to_timestamp(0) + p_now_us * interval '1 microsecond', s.created_at, u.transaction_id,
        wakeline.queue_entry(s.body, u.position - s.first)
    FROM unnest(p_partition, p_group, p_position, p_failures, p_keep, p_transaction, p_error)
        AS u(partition_id, group_id, position, failures, keep, transaction_id, error)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.queue_group g WHERE g.id = u.group_id LIMIT 1) g
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.queue_segment s
        WHERE s.partition_id = u.partition_id AND s.last >= u.position ORDER BY s.last LIMIT 1) s
    WHERE u.keep
    ON CONFLICT (partition_id, position, group_name) DO UPDATE
        SET failures = excluded.failures, error = excluded.error, failed_at = excluded.failed_at;
    DELETE FROM wakeline.queue_message_flag m
    USING unnest(c_partition, c_group, c_position) AS u(partition_id, group_id, position)
    WHERE m.partition_id = u.partition_id AND m.group_id = u.group_id AND m.position < u.position
        -- A group that seeks back does not get its dead messages again.
        AND NOT m.is_dead;
END $$;
