-- Views for the reads: how far each group is, and the totals of each partition. They have the same
-- columns as the views of PostgreSQL, so that one statement fits both.

-- A group in a partition.
CREATE VIEW queue_reader AS
SELECT c.partition_id, c.group_id, g.name AS group_name, q.name AS queue, p.name AS partition,
    p.next_position AS next, max(c.position, p.first_position) AS position, c.lease_id, c.leased_to,
    c.consumed, c.ready_at AS ready_us,
    -- Messages that the group has still to consume.
    p.next_position - max(c.position, p.first_position)
        - CASE WHEN max(c.flags_end, p.deletions_end) > max(c.position, p.first_position) THEN (
            SELECT count(DISTINCT m.position) FROM queue_message_flag m
            WHERE m.partition_id = c.partition_id AND m.group_id IN (0, c.group_id)
                AND m.position >= max(c.position, p.first_position) AND m.is_dead)
        ELSE 0 END AS ahead,
    -- Of these, the ones that are leased while `ready_us` is in the future.
    CASE WHEN c.lease_id IS NULL THEN 0 ELSE c.leased_to - max(c.position, p.first_position)
        - CASE WHEN max(c.flags_end, p.deletions_end) > max(c.position, p.first_position) THEN (
            SELECT count(DISTINCT m.position) FROM queue_message_flag m
            WHERE m.partition_id = c.partition_id AND m.group_id IN (0, c.group_id)
                AND m.position >= max(c.position, p.first_position)
                AND m.position < c.leased_to AND m.is_dead)
        ELSE 0 END END AS leased,
    CASE WHEN p.next_position > max(c.position, p.first_position) THEN (
        SELECT s.created_at FROM queue_segment s
        WHERE s.partition_id = c.partition_id AND s.last >= max(c.position, p.first_position)
        ORDER BY s.last LIMIT 1) END AS oldest_us
FROM queue_cursor c
JOIN queue_group g ON g.id = c.group_id
JOIN queue_partition p ON p.id = c.partition_id
JOIN queue q ON q.id = p.queue_id;

-- The totals of a partition: for queue mode or, without it, for the group that is furthest behind.
CREATE VIEW queue_partition_totals AS
SELECT p.id AS partition_id, p.queue_id, q.name AS queue, q.namespace, q.task, q.priority,
    p.name AS partition, p.ordinal, p.first_position AS first, p.next_position AS next,
    p.last_at AS last_us, p.created_at AS created_us,
    c.group_id, g.name AS group_name,
    max(coalesce(c.position, 0), p.first_position) AS position,
    c.leased_to, c.ready_at AS ready_us, coalesce(c.consumed, 0) AS consumed,
    p.next_position - p.first_position - CASE WHEN p.deletions_end > p.first_position THEN (
        SELECT count(*) FROM queue_message_flag m WHERE m.partition_id = p.id AND m.group_id = 0)
    ELSE 0 END AS total,
    p.next_position - max(coalesce(c.position, 0), p.first_position)
        - CASE WHEN max(coalesce(c.flags_end, 0), p.deletions_end)
            > max(coalesce(c.position, 0), p.first_position) THEN (
            SELECT count(DISTINCT m.position) FROM queue_message_flag m
            WHERE m.partition_id = p.id AND m.group_id IN (0, coalesce(c.group_id, 0))
                AND m.position >= max(coalesce(c.position, 0), p.first_position) AND m.is_dead)
        ELSE 0 END AS ahead,
    CASE WHEN c.lease_id IS NULL THEN 0 ELSE c.leased_to - max(c.position, p.first_position)
        - CASE WHEN max(c.flags_end, p.deletions_end) > max(c.position, p.first_position) THEN (
            SELECT count(DISTINCT m.position) FROM queue_message_flag m
            WHERE m.partition_id = p.id AND m.group_id IN (0, c.group_id)
                AND m.position >= max(c.position, p.first_position)
                AND m.position < c.leased_to AND m.is_dead)
        ELSE 0 END END AS leased,
    (SELECT count(*) FROM queue_dead_letter d WHERE d.partition_id = p.id
        AND d.group_name = g.name AND d.position >= p.first_position) AS letters,
    (SELECT count(*) FROM queue_dead_letter d WHERE d.partition_id = p.id) AS all_letters,
    CASE WHEN p.next_position > max(coalesce(c.position, 0), p.first_position) THEN (
        SELECT s.created_at FROM queue_segment s
        WHERE s.partition_id = p.id
            AND s.last >= max(coalesce(c.position, 0), p.first_position)
        ORDER BY s.last LIMIT 1) END AS oldest_us
FROM queue_partition p
JOIN queue q ON q.id = p.queue_id
LEFT JOIN queue_cursor c ON c.partition_id = p.id AND c.group_id = (
    SELECT o.group_id FROM queue_cursor o JOIN queue_group n ON n.id = o.group_id
    WHERE o.partition_id = p.id ORDER BY n.name <> '__QUEUE_MODE__', o.position LIMIT 1)
LEFT JOIN queue_group g ON g.id = c.group_id;
