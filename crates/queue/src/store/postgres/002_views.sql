-- Views for the reads: how far each group is, and the totals of each partition. They have the same
-- columns as the views of SQLite, so that one statement fits both; times are microseconds.

-- The first position whose message came at this time or later. It is found by halving, because times
-- within a partition never go back.
CREATE FUNCTION wakeline.queue_first_position_since(p_partition bigint, p_at_us bigint)
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
    -- Messages that the group has still to consume.
    p.next_position - a.position - CASE WHEN greatest(c.flags_end, p.deletions_end) > a.position THEN (
        SELECT count(DISTINCT m.position) FROM wakeline.queue_message_flag m
        WHERE m.partition_id = c.partition_id AND m.group_id IN (0, c.group_id)
            AND m.position >= a.position AND m.is_dead) ELSE 0 END AS ahead,
    -- Of these, the ones that are leased while `ready_us` is in the future.
    CASE WHEN c.lease_id IS NULL THEN 0 ELSE c.leased_to - a.position
        - CASE WHEN greatest(c.flags_end, p.deletions_end) > a.position THEN (
            SELECT count(DISTINCT m.position) FROM wakeline.queue_message_flag m
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

-- The totals of a partition: for queue mode or, without it, for the group that is furthest behind.
CREATE VIEW wakeline.queue_partition_totals AS
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
    SELECT p.next_position - p.first_position - CASE WHEN p.deletions_end > p.first_position THEN (
        SELECT count(*) FROM wakeline.queue_message_flag m
        WHERE m.partition_id = p.id AND m.group_id = 0) ELSE 0 END AS total) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE d.group_name = r.group_name AND d.position >= p.first_position)
        AS letters, count(*) AS all_letters
    FROM wakeline.queue_dead_letter d WHERE d.partition_id = p.id) d;
