-- What people read: how far each group is, and where each partition stands. Times are microseconds
-- since 1970, as in the views of SQLite, so that one statement fits both.

-- A position from which everything came at this time or later. Times within a partition never go
-- back, so it is found by halving.
CREATE FUNCTION wakeline.queue_bisect(p_partition bigint, p_at_us bigint)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_at timestamptz := to_timestamp(0) + p_at_us * interval '1 microsecond';
    v_low bigint;
    v_high bigint;
    v_first bigint;
    v_last bigint;
    v_created timestamptz;
BEGIN
    SELECT p.first_position, p.next_position INTO v_low, v_high
    FROM wakeline.queue_partition p WHERE p.id = p_partition;
    WHILE v_low < v_high LOOP
        SELECT s.first, s.last, s.created_at INTO v_first, v_last, v_created
        FROM wakeline.queue_segment s
        WHERE s.partition_id = p_partition AND s.last >= (v_low + v_high) / 2
        ORDER BY s.last LIMIT 1;
        IF NOT FOUND OR v_created >= v_at THEN
            v_high := least(coalesce(v_first, v_low), (v_low + v_high) / 2);
        ELSE
            v_low := v_last + 1;
        END IF;
    END LOOP;
    RETURN v_high;
END $$;

-- A group in a partition.
CREATE VIEW wakeline.queue_reader AS
SELECT c.partition_id, c.group_id, g.name AS group_name, q.name AS queue, p.name AS partition,
    p.next_position AS next, a.position, c.lease_id, c.leased_to, c.consumed,
    (extract(epoch FROM c.ready_at) * 1000000)::bigint AS ready_us,
    -- What it has still to consume.
    p.next_position - a.position - CASE WHEN greatest(c.marked_to, p.deleted_to) > a.position THEN (
        SELECT count(DISTINCT m.position) FROM wakeline.queue_mark m
        WHERE m.partition_id = c.partition_id AND m.group_id IN (0, c.group_id)
            AND m.position >= a.position AND m.is_dead) ELSE 0 END AS ahead,
    -- Of that, what is in somebody's hands while `ready_us` is in the future.
    CASE WHEN c.lease_id IS NULL THEN 0 ELSE c.leased_to - a.position
        - CASE WHEN greatest(c.marked_to, p.deleted_to) > a.position THEN (
            SELECT count(DISTINCT m.position) FROM wakeline.queue_mark m
            WHERE m.partition_id = c.partition_id AND m.group_id IN (0, c.group_id)
                AND m.position >= a.position AND m.position < c.leased_to AND m.is_dead)
        ELSE 0 END END AS leased,
    CASE WHEN p.next_position > a.position THEN (
        SELECT (extract(epoch FROM s.created_at) * 1000000)::bigint FROM wakeline.queue_segment s
        WHERE s.partition_id = c.partition_id AND s.last >= a.position
        ORDER BY s.last LIMIT 1) END AS oldest_us
FROM wakeline.queue_cursor c
JOIN wakeline.queue_group g ON g.id = c.group_id
JOIN wakeline.queue_partition p ON p.id = c.partition_id
JOIN wakeline.queue q ON q.id = p.queue_id
CROSS JOIN LATERAL (SELECT greatest(c.position, p.first_position) AS position) a;

-- A partition, as it stands for queue mode or, without it, for the group that is furthest behind.
CREATE VIEW wakeline.queue_standing AS
SELECT p.id AS partition_id, p.queue_id, q.name AS queue, q.namespace, q.task, q.priority,
    p.name AS partition, p.ordinal, p.first_position AS first, p.next_position AS next,
    CASE WHEN p.last_at = '-infinity' THEN 0
        ELSE (extract(epoch FROM p.last_at) * 1000000)::bigint END AS last_us,
    (extract(epoch FROM p.created_at) * 1000000)::bigint AS created_us,
    r.group_id, r.group_name, coalesce(r.position, p.first_position) AS position,
    r.leased_to, r.ready_us, coalesce(r.consumed, 0) AS consumed,
    t.total, coalesce(r.ahead, t.total) AS ahead, coalesce(r.leased, 0) AS leased,
    d.letters, d.all_letters,
    CASE WHEN r.group_id IS NOT NULL THEN r.oldest_us WHEN t.total > 0 THEN (
        SELECT (extract(epoch FROM s.created_at) * 1000000)::bigint FROM wakeline.queue_segment s
        WHERE s.partition_id = p.id ORDER BY s.last LIMIT 1) END AS oldest_us
FROM wakeline.queue_partition p
JOIN wakeline.queue q ON q.id = p.queue_id
LEFT JOIN LATERAL (
    SELECT * FROM wakeline.queue_reader r WHERE r.partition_id = p.id
    ORDER BY r.group_name <> '__QUEUE_MODE__', r.position LIMIT 1) r ON true
CROSS JOIN LATERAL (
    SELECT p.next_position - p.first_position - CASE WHEN p.deleted_to > p.first_position THEN (
        SELECT count(*) FROM wakeline.queue_mark m
        WHERE m.partition_id = p.id AND m.group_id = 0) ELSE 0 END AS total) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE d.group_name = r.group_name AND d.position >= p.first_position)
        AS letters, count(*) AS all_letters
    FROM wakeline.queue_dead_letter d WHERE d.partition_id = p.id) d;

CREATE VIEW wakeline.queue_named AS
SELECT q.id, q.public_id, q.name, q.namespace, q.task, q.priority, q.options::text AS options,
    q.lease_ms, (extract(epoch FROM q.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue q;

CREATE VIEW wakeline.queue_member AS
SELECT g.id, g.queue_id, g.name, g.mode,
    (extract(epoch FROM g.begin_at) * 1000000)::bigint AS begin_us,
    (extract(epoch FROM g.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue_group g;

CREATE VIEW wakeline.queue_stored AS
SELECT s.partition_id, s.first, s.last, s.only_group, s.body,
    (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue_segment s;

CREATE VIEW wakeline.queue_letter AS
SELECT d.id, d.queue_id, q.name AS queue, q.namespace, q.task, q.priority, d.partition_id,
    p.name AS partition, d.group_name, d.position, d.failures, d.error, d.transaction_id, d.message,
    d.failed_at, (extract(epoch FROM d.failed_at) * 1000000)::bigint AS failed_us,
    (extract(epoch FROM d.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue_dead_letter d
JOIN wakeline.queue q ON q.id = d.queue_id
JOIN wakeline.queue_partition p ON p.id = d.partition_id;

CREATE VIEW wakeline.queue_traced AS
SELECT t.id, t.partition_id, t.transaction_id, t.group_name, t.event, t.data, t.worker,
    (extract(epoch FROM t.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue_trace t;

CREATE VIEW wakeline.queue_trace_named AS
SELECT n.name, n.trace_id, n.created_at, (extract(epoch FROM n.created_at) * 1000000)::bigint AS created_us
FROM wakeline.queue_trace_name n;

CREATE VIEW wakeline.queue_count AS
SELECT (extract(epoch FROM t.minute) * 1000000)::bigint AS minute_us, t.*
FROM wakeline.queue_tally t;

CREATE VIEW wakeline.queue_held AS
SELECT (extract(epoch FROM p.minute) * 1000000)::bigint AS minute_us, p.*
FROM wakeline.queue_parked p;

CREATE VIEW wakeline.queue_vital AS
SELECT (extract(epoch FROM n.minute) * 1000000)::bigint AS minute_us, n.*
FROM wakeline.queue_node n;

-- Cursors that are held back at a message which is gone look at what follows it, by the rules. A
-- retry's delay was for the message alone.
CREATE FUNCTION wakeline.queue_release(p_partition bigint, p_position bigint, p_groups bigint[])
RETURNS void LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c SET ready_at = clock_timestamp()
    FROM (
        SELECT c.group_id FROM wakeline.queue_cursor c
        WHERE c.partition_id = p_partition AND c.group_id = ANY (p_groups)
            AND c.position = p_position AND c.lease_id IS NULL AND c.ready_at > clock_timestamp()
        ORDER BY c.group_id FOR NO KEY UPDATE) held
    WHERE c.partition_id = p_partition AND c.group_id = held.group_id
$$;

-- Deletes a message for everyone, and its dead letters. Whether there was one.
CREATE FUNCTION wakeline.queue_delete_message(
    p_partition bigint, p_transaction text,
    -- Where it is, if its id says so.
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
        OR EXISTS (SELECT FROM wakeline.queue_mark m WHERE m.partition_id = p_partition
            AND m.group_id = 0 AND m.position = v_position)
    THEN
        RETURN v_letters > 0;
    END IF;
    INSERT INTO wakeline.queue_mark (partition_id, group_id, position, failures, is_dead)
    VALUES (p_partition, 0, v_position, 0, true);
    UPDATE wakeline.queue_partition p SET deleted_to = greatest(p.deleted_to, v_position + 1)
    WHERE p.id = p_partition;
    DELETE FROM wakeline.queue_transaction t WHERE t.partition_id = p_partition AND t.hash = p_hash;
    PERFORM wakeline.queue_release(p_partition, v_position, array(
        SELECT c.group_id FROM wakeline.queue_cursor c WHERE c.partition_id = p_partition));
    RETURN true;
END $$;

-- Appends a dead letter again, for the group that had it. Where the new message is, and when it
-- came; no row if the letter is gone, no position if its group is.
CREATE FUNCTION wakeline.queue_retry(
    p_letter bigint, p_hash uuid,
    -- The message as it is appended: with the transaction id it had, or with its own id.
    p_kept text, p_fresh text
) RETURNS TABLE (at bigint, created_us bigint, is_kept boolean) LANGUAGE plpgsql AS $$
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
    -- Under its transaction id another group would mean the old one.
    is_kept := p_hash IS NOT NULL AND NOT EXISTS (
        SELECT FROM wakeline.queue_cursor c
        WHERE c.partition_id = v_partition.id AND c.group_id <> v_group);
    INSERT INTO wakeline.queue_segment (partition_id, first, last, created_at, only_group, body)
    VALUES (v_partition.id, at, at, v_at, v_group,
        '[' || CASE WHEN is_kept THEN p_kept ELSE p_fresh END || ']');
    IF is_kept THEN
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

-- Makes a message a dead letter of the groups that have not consumed it and do not have it in
-- their hands; of all of them or of one. How many.
CREATE FUNCTION wakeline.queue_bury(
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
    IF v_position IS NULL OR EXISTS (SELECT FROM wakeline.queue_mark m
        WHERE m.partition_id = p_partition AND m.group_id = 0 AND m.position = v_position)
    THEN
        RETURN 0;
    END IF;
    SELECT array_agg(c.group_id) INTO v_groups
    FROM wakeline.queue_cursor c
    JOIN wakeline.queue_group g ON g.id = c.group_id
    LEFT JOIN wakeline.queue_mark m
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
    INSERT INTO wakeline.queue_mark (partition_id, group_id, position, failures, is_dead)
    SELECT p_partition, u.id, v_position, 0, true FROM unnest(v_groups) AS u(id)
    ON CONFLICT (partition_id, group_id, position) DO UPDATE SET is_dead = true;
    UPDATE wakeline.queue_cursor c SET marked_to = greatest(c.marked_to, v_position + 1)
    WHERE c.partition_id = p_partition AND c.group_id = ANY (v_groups);
    PERFORM wakeline.queue_release(p_partition, v_position, v_groups);
    INSERT INTO wakeline.queue_dead_letter (queue_id, partition_id, group_name, position, failures,
        error, failed_at, created_at, transaction_id, message)
    SELECT g.queue_id, p_partition, g.name, v_position, m.failures, p_error, v_now,
        s.created_at, p_transaction, wakeline.queue_entry(s.body, v_position - s.first)
    FROM wakeline.queue_group g
    JOIN wakeline.queue_mark m
        ON m.partition_id = p_partition AND m.group_id = g.id AND m.position = v_position
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.queue_segment s
        WHERE s.partition_id = p_partition AND s.last >= v_position ORDER BY s.last LIMIT 1) s
    WHERE g.id = ANY (v_groups)
    ON CONFLICT DO NOTHING;
    v_count := coalesce(cardinality(v_groups), 0);
    RETURN v_count;
END $$;

CREATE INDEX queue_trace_name_trace ON wakeline.queue_trace_name (trace_id);

CREATE FUNCTION wakeline.queue_add_trace(
    p_id uuid, p_partition bigint, p_transaction text, p_group text, p_event text, p_data text,
    p_worker text, p_names text[]
) RETURNS void LANGUAGE sql AS $$
    WITH told AS (
        INSERT INTO wakeline.queue_trace
        VALUES (p_id, p_partition, p_transaction, p_group, p_event, p_data, p_worker, clock_timestamp())
        RETURNING created_at
    )
    INSERT INTO wakeline.queue_trace_name (name, created_at, trace_id)
    SELECT DISTINCT u.name, t.created_at, p_id FROM unnest(p_names) AS u(name) CROSS JOIN told t
$$;
