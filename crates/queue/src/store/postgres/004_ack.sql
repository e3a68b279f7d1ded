-- Acknowledges for many callers as one step. One row per acknowledgement, in order.
CREATE FUNCTION wakeline.queue_ack(
    p_partition uuid[], p_group text[], p_transaction text[],
    -- NULL: without a lease. A lease that cannot be one is the nil UUID.
    p_lease uuid[], p_status text[], p_error text[]
) RETURNS TABLE (
    item bigint,
    -- 'done', 'noop', 'lease', 'unknown' or 'passed'.
    outcome text,
    lease_released boolean,
    dead boolean,
    -- The group can claim from this partition (again).
    is_ready boolean,
    queue_name text, partition_name text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    r record;
    v_now timestamptz;
    v_cursor wakeline.queue_cursor;
    v_partition wakeline.queue_partition;
    v_position bigint;
    v_failures integer;
    v_leased boolean;
BEGIN
    FOR r IN
        SELECT u.*, p.id AS partition_id, q.name AS queue, p.name AS partition_name, g.id AS group_id,
            q.retry_limit, q.retry_delay_ms
        FROM unnest(p_partition, p_group, p_transaction, p_lease, p_status, p_error)
            WITH ORDINALITY AS u(public_id, grp, transaction_id, lease, status, error, item)
        LEFT JOIN wakeline.queue_partition p ON p.public_id = u.public_id
        LEFT JOIN wakeline.queue q ON q.id = p.queue_id
        LEFT JOIN wakeline.queue_group g ON g.queue_id = q.id AND g.name = u.grp
        ORDER BY p.id, g.id, u.item
    LOOP
        item := r.item; outcome := 'unknown'; lease_released := false; dead := false;
        is_ready := false; queue_name := r.queue; partition_name := r.partition_name;

        -- The share lock: whether the group has caught up must not change while it is decided.
        SELECT * INTO v_partition FROM wakeline.queue_partition p
        WHERE p.id = r.partition_id FOR SHARE;
        SELECT * INTO v_cursor FROM wakeline.queue_cursor c
        WHERE c.partition_id = r.partition_id AND c.group_id = r.group_id FOR NO KEY UPDATE;
        v_now := clock_timestamp();
        v_leased := v_cursor.lease_id IS NOT NULL AND v_cursor.ready_at > v_now;
        IF r.lease IS NOT NULL AND (v_cursor.lease_id IS DISTINCT FROM r.lease OR NOT v_leased) THEN
            outcome := 'lease';
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_cursor.partition_id IS NULL THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT m.position INTO v_position FROM wakeline.queue_message m
        WHERE m.partition_id + 0 = r.partition_id AND m.transaction_id = r.transaction_id;
        IF NOT FOUND THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        IF v_position < v_cursor.position THEN
            outcome := CASE WHEN r.status = 'completed' THEN 'noop' ELSE 'passed' END;
            RETURN NEXT;
            CONTINUE;
        END IF;

        outcome := 'done';
        IF r.status = 'failed' THEN
            INSERT INTO wakeline.queue_failure AS f (partition_id, group_id, position, failures, error)
            VALUES (r.partition_id, r.group_id, v_position, 1, r.error)
            ON CONFLICT (partition_id, group_id, position)
                DO UPDATE SET failures = f.failures + 1, error = excluded.error
            RETURNING f.failures INTO v_failures;
            dead := v_failures > r.retry_limit;
        ELSIF r.status = 'dlq' THEN
            SELECT f.failures INTO v_failures FROM wakeline.queue_failure f
            WHERE f.partition_id = r.partition_id AND f.group_id = r.group_id
                AND f.position = v_position;
            dead := true;
        END IF;

        IF dead THEN
            INSERT INTO wakeline.queue_dead_letter (partition_id, group_id, position, failures, error)
            VALUES (r.partition_id, r.group_id, v_position, coalesce(v_failures, 0), r.error)
            ON CONFLICT DO NOTHING;
            v_cursor.dead_to := greatest(v_cursor.dead_to, v_position + 1);
        END IF;
        -- A completed message completes those before it. A dead one is passed only when it is the
        -- next, because those before it have not been answered for.
        IF r.status = 'completed' OR (dead AND v_position = v_cursor.position) THEN
            v_cursor.position := v_position + 1;
            -- The dead ones that follow are answered for: a lease must not last for their sake.
            WHILE v_cursor.position < v_cursor.dead_to AND EXISTS (
                SELECT FROM wakeline.queue_dead_letter d
                WHERE d.partition_id = r.partition_id AND d.group_id = r.group_id
                    AND d.position = v_cursor.position)
            LOOP
                v_cursor.position := v_cursor.position + 1;
            END LOOP;
            DELETE FROM wakeline.queue_failure f
            WHERE f.partition_id = r.partition_id AND f.group_id = r.group_id
                AND f.position < v_cursor.position;
        END IF;

        IF (r.status IN ('failed', 'retry') AND NOT dead) OR v_cursor.position >= v_cursor.leased_to
            OR NOT v_leased
        THEN
            lease_released := v_leased;
            v_cursor.lease_id := NULL;
            v_cursor.leased_to := NULL;
            is_ready := v_partition.next_position > v_cursor.position;
            v_cursor.ready_at := CASE
                WHEN NOT is_ready THEN NULL
                WHEN r.status = 'failed' AND NOT dead
                    THEN v_now + r.retry_delay_ms * interval '1 millisecond'
                ELSE v_now
            END;
        END IF;
        UPDATE wakeline.queue_cursor c
        SET position = v_cursor.position, ready_at = v_cursor.ready_at, lease_id = v_cursor.lease_id,
            leased_to = v_cursor.leased_to, dead_to = v_cursor.dead_to
        WHERE c.partition_id = r.partition_id AND c.group_id = r.group_id;
        RETURN NEXT;
    END LOOP;
END $$;

-- Gives back what was claimed for a caller that is gone. True when it was still the caller's.
CREATE FUNCTION wakeline.queue_hand_back(
    p_partition uuid, p_group text,
    -- The lease, or NULL when the claim was acknowledged at once: then the positions fence it.
    p_lease uuid, p_first bigint, p_end bigint
) RETURNS boolean LANGUAGE sql AS $$
    WITH returned AS (
        UPDATE wakeline.queue_cursor c
        SET position = p_first, ready_at = clock_timestamp(), lease_id = NULL, leased_to = NULL
        FROM wakeline.queue_partition p JOIN wakeline.queue_group g ON g.queue_id = p.queue_id
        WHERE p.public_id = p_partition AND g.name = p_group
            AND c.partition_id = p.id AND c.group_id = g.id
            AND CASE WHEN p_lease IS NULL THEN c.lease_id IS NULL AND c.position = p_end
                ELSE c.lease_id = p_lease AND c.position = p_first END
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM returned)
$$;

-- The fallback's question: of all these places, where is something ready, or when will it be?
CREATE FUNCTION wakeline.queue_recheck(p_queue text[], p_partition text[], p_group text[])
RETURNS TABLE (place bigint, due_ms bigint) LANGUAGE sql STABLE AS $$
    SELECT w.place, greatest(0, ceil(extract(epoch FROM w.due - clock_timestamp()) * 1000))::bigint
    FROM (
        SELECT u.place, CASE
            WHEN u.partition IS NULL THEN
                CASE WHEN g.id IS NULL OR g.frontier < q.partitions
                    THEN CASE WHEN q.partitions > 0 THEN to_timestamp(0) END
                    ELSE (SELECT min(c.ready_at) FROM wakeline.queue_cursor c
                        WHERE c.group_id = g.id AND c.ready_at IS NOT NULL)
                END
            WHEN p.id IS NULL THEN NULL
            WHEN g.id IS NULL THEN to_timestamp(0)
            ELSE (SELECT coalesce(max(c.ready_at),
                        CASE WHEN count(*) = 0 THEN to_timestamp(0) END)
                FROM wakeline.queue_cursor c WHERE c.group_id = g.id AND c.partition_id = p.id)
        END AS due
        FROM unnest(p_queue, p_partition, p_group) WITH ORDINALITY AS u(queue, partition, grp, place)
        JOIN wakeline.queue q ON q.name = u.queue
        LEFT JOIN wakeline.queue_group g ON g.queue_id = q.id AND g.name = u.grp
        CROSS JOIN LATERAL (SELECT (
            SELECT p.id FROM wakeline.queue_partition p
            WHERE p.queue_id = q.id AND p.name = u.partition) AS id) p
    ) w
    WHERE w.due IS NOT NULL
$$;
