-- Pushes the messages of many callers as one step. One row per item, in order.
--
-- Locks: queues by id, then partitions by id, then cursors. Every function here follows this
-- order, so that batches of two nodes cannot deadlock.
CREATE FUNCTION wakeline.queue_push(
    p_queue text[], p_partition text[], p_id uuid[], p_transaction text[], p_trace uuid[],
    p_payload text[], p_sub text[]
) RETURNS TABLE (
    item bigint,
    -- The stored message: for a duplicate the one that was there before.
    message_id uuid,
    duplicate boolean,
    -- On one item per partition: the partition is new, or these groups had caught up with it.
    is_new boolean,
    woken text[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz;
    v_new bigint[] := '{}';
    v_partition bigint[];
BEGIN
    SELECT array_agg((
        SELECT p.id FROM wakeline.queue_partition p
        WHERE p.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = u.queue)
            AND p.name = u.partition) ORDER BY u.item)
    INTO v_partition
    FROM unnest(p_queue, p_partition) WITH ORDINALITY AS u(queue, partition, item);

    IF array_position(v_partition, NULL) IS NOT NULL THEN
        INSERT INTO wakeline.queue (name)
        SELECT DISTINCT u.queue FROM unnest(p_queue) AS u(queue)
        WHERE NOT EXISTS (SELECT FROM wakeline.queue q WHERE q.name = u.queue)
        ORDER BY 1
        ON CONFLICT DO NOTHING;

        -- The queue's row numbers its partitions: held to the end, so that ordinals appear in
        -- order.
        PERFORM FROM wakeline.queue q
        WHERE q.name IN (
            SELECT u.queue FROM unnest(p_queue, v_partition) AS u(queue, id) WHERE u.id IS NULL)
        ORDER BY q.id FOR NO KEY UPDATE;

        WITH missing AS (
            SELECT DISTINCT q.id AS queue_id, q.partitions, u.partition
            FROM unnest(p_queue, p_partition, v_partition) AS u(queue, partition, id)
            JOIN wakeline.queue q ON q.name = u.queue
            WHERE u.id IS NULL AND (
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
        SELECT coalesce(array_agg(m.id), '{}') INTO v_new FROM made m;

        SELECT array_agg((
            SELECT p.id FROM wakeline.queue_partition p
            WHERE p.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = u.queue)
                AND p.name = u.partition) ORDER BY u.item)
        INTO v_partition
        FROM unnest(p_queue, p_partition) WITH ORDINALITY AS u(queue, partition, item);
    END IF;

    PERFORM FROM wakeline.queue_partition p
    WHERE p.id = ANY (v_partition) ORDER BY p.id FOR NO KEY UPDATE;
    v_now := clock_timestamp();

    -- A new statement sees what was committed before the locks were had.
    RETURN QUERY
    WITH pushed AS (
        SELECT u.*, row_number() OVER (
            PARTITION BY u.partition_id, u.transaction_id ORDER BY u.item) AS nth
        FROM unnest(v_partition, p_id, p_transaction, p_trace, p_payload, p_sub)
            WITH ORDINALITY AS u(partition_id, id, transaction_id, trace_id, payload, sub, item)
    ), known AS (
        SELECT DISTINCT ON (m.partition_id, m.transaction_id)
            m.partition_id, m.transaction_id, m.id
        FROM pushed i
        JOIN wakeline.queue_message m
            ON m.partition_id + 0 = i.partition_id AND m.transaction_id = i.transaction_id
    ), accepted AS (
        SELECT i.*, row_number() OVER (PARTITION BY i.partition_id ORDER BY i.item) - 1 AS step
        FROM pushed i
        WHERE i.nth = 1 AND NOT EXISTS (
            SELECT FROM known k
            WHERE k.partition_id = i.partition_id AND k.transaction_id = i.transaction_id)
    ), advanced AS (
        UPDATE wakeline.queue_partition p SET next_position = p.next_position + c.count
        FROM (SELECT a.partition_id, count(*) FROM accepted a GROUP BY 1) c
        WHERE p.id = c.partition_id
        RETURNING p.id, p.next_position - c.count AS first
    ), stored AS (
        INSERT INTO wakeline.queue_message
            (partition_id, position, id, transaction_id, trace_id, payload, producer_sub, created_at)
        SELECT a.partition_id, d.first + a.step, a.id, a.transaction_id, a.trace_id, a.payload,
            a.sub, v_now
        FROM accepted a JOIN advanced d ON d.id = a.partition_id
    ), readied AS (
        UPDATE wakeline.queue_cursor c SET ready_at = v_now
        FROM advanced d WHERE c.partition_id = d.id AND c.ready_at IS NULL
        RETURNING c.partition_id, c.group_id
    ), woken AS (
        SELECT r.partition_id, array_agg(g.name) AS names
        FROM readied r JOIN wakeline.queue_group g ON g.id = r.group_id GROUP BY 1
    )
    SELECT i.item,
        coalesce(k.id, first_value(i.id) OVER (
            PARTITION BY i.partition_id, i.transaction_id ORDER BY i.item)),
        a.item IS NULL,
        a.step IS NOT DISTINCT FROM 0 AND i.partition_id = ANY (v_new),
        CASE WHEN a.step = 0 THEN w.names END
    FROM pushed i
    LEFT JOIN accepted a ON a.item = i.item
    LEFT JOIN known k ON k.partition_id = i.partition_id AND k.transaction_id = i.transaction_id
    LEFT JOIN woken w ON w.partition_id = i.partition_id
    ORDER BY i.item;
END $$;
