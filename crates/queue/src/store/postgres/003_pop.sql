-- Claims for many callers as one step. Per request one row that says what was claimed (or, with a
-- NULL partition, that nothing was, and when to look again), then one row per message.
--
-- Nothing here waits for a cursor or a partition: what another transaction holds is skipped, and
-- `due_ms` says to look again soon.
CREATE FUNCTION wakeline.queue_pop(
    p_queue text[], p_partition text[], p_group text[], p_batch bigint[], p_auto_ack boolean[],
    p_lease uuid[], p_lease_ms bigint[]
) RETURNS TABLE (
    request bigint,
    partition_public_id uuid, partition_name text,
    first_position bigint, end_position bigint,
    -- With autoAck: how many more the group could claim at once.
    remaining bigint,
    -- With nothing claimed: when to look again. With a lease: when it ends.
    due_ms bigint,
    message_id uuid, transaction_id text, trace_id uuid, payload text, producer_sub text,
    created_us bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- Partitions that one claim makes known to its group at most.
    c_discovery CONSTANT bigint := 500;
    -- Caught-up cursors that one claim tidies away at most.
    c_tidy CONSTANT integer := 100;
    c_soon CONSTANT interval := interval '5 milliseconds';
    r record;
    v_now timestamptz;
    v_queue wakeline.queue;
    v_group wakeline.queue_group;
    v_one bigint;
    v_cursor wakeline.queue_cursor;
    v_partition wakeline.queue_partition;
    v_end bigint;
    v_remaining bigint;
    v_due timestamptz;
BEGIN
    -- Groups, and within them partitions, in one order for everyone: two claims that make the same
    -- group or the same cursors wait for one another. Discovery comes first and makes many.
    FOR r IN
        SELECT u.*, q.id AS queue_id, (
            SELECT p.id FROM wakeline.queue_partition p
            WHERE p.queue_id = q.id AND p.name = u.partition) AS partition_id
        FROM unnest(p_queue, p_partition, p_group, p_batch, p_auto_ack, p_lease, p_lease_ms)
            WITH ORDINALITY AS u(queue, partition, grp, batch, auto_ack, lease, lease_ms, request)
        LEFT JOIN wakeline.queue q ON q.name = u.queue
        ORDER BY queue_id, u.grp, partition_id NULLS FIRST, u.request
    LOOP
        request := r.request;
        partition_public_id := NULL; partition_name := NULL; first_position := NULL;
        end_position := NULL; remaining := NULL; due_ms := NULL; message_id := NULL;
        transaction_id := NULL; trace_id := NULL; payload := NULL; producer_sub := NULL;
        created_us := NULL;
        v_due := NULL;

        SELECT * INTO v_queue FROM wakeline.queue q WHERE q.name = r.queue;
        -- Nothing is made for what is not there.
        IF NOT FOUND OR (r.partition IS NOT NULL AND r.partition_id IS NULL) THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT * INTO v_group FROM wakeline.queue_group g
        WHERE g.queue_id = v_queue.id AND g.name = r.grp;
        IF NOT FOUND THEN
            INSERT INTO wakeline.queue_group (queue_id, name) VALUES (v_queue.id, r.grp)
            ON CONFLICT DO NOTHING;
            SELECT * INTO v_group FROM wakeline.queue_group g
            WHERE g.queue_id = v_queue.id AND g.name = r.grp;
        END IF;
        v_now := clock_timestamp();

        -- A cursor begins as ready: whether there is something for it is found out by claiming.
        v_one := r.partition_id;
        IF v_one IS NOT NULL THEN
            INSERT INTO wakeline.queue_cursor (partition_id, group_id, ready_at)
            SELECT v_one, v_group.id, v_now
            WHERE NOT EXISTS (SELECT FROM wakeline.queue_cursor c
                WHERE c.partition_id = v_one AND c.group_id = v_group.id)
            ON CONFLICT DO NOTHING;
        ELSIF v_group.frontier < v_queue.partitions THEN
            SELECT * INTO v_group FROM wakeline.queue_group g
            WHERE g.id = v_group.id FOR NO KEY UPDATE;
            INSERT INTO wakeline.queue_cursor (partition_id, group_id, ready_at)
            SELECT p.id, v_group.id, v_now FROM wakeline.queue_partition p
            WHERE p.queue_id + 0 = v_queue.id AND p.ordinal > v_group.frontier
                AND p.ordinal <= v_group.frontier + c_discovery
            ORDER BY p.id
            ON CONFLICT DO NOTHING;
            -- Never back: another claim may have gone further while this one waited for the lock.
            v_group.frontier := greatest(v_group.frontier,
                least(v_group.frontier + c_discovery, v_queue.partitions));
            UPDATE wakeline.queue_group g SET frontier = v_group.frontier
            WHERE g.id = v_group.id;
            IF v_group.frontier < v_queue.partitions THEN
                v_due := v_now;
            END IF;
        END IF;

        FOR v_try IN 1..c_tidy LOOP
            IF v_one IS NULL THEN
                SELECT * INTO v_cursor FROM wakeline.queue_cursor c
                WHERE c.group_id = v_group.id AND c.ready_at <= v_now
                ORDER BY c.ready_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
            ELSE
                SELECT * INTO v_cursor FROM wakeline.queue_cursor c
                WHERE c.partition_id = v_one AND c.group_id = v_group.id
                    AND coalesce(c.ready_at, 'infinity') <= v_now
                FOR NO KEY UPDATE SKIP LOCKED;
            END IF;
            EXIT WHEN NOT FOUND;

            SELECT max(m.position) + 1 INTO v_end FROM (
                SELECT m.position FROM wakeline.queue_message m
                WHERE m.partition_id = v_cursor.partition_id AND m.position >= v_cursor.position
                    AND (v_cursor.dead_to <= m.position OR NOT EXISTS (
                        SELECT FROM wakeline.queue_dead_letter d
                        WHERE d.partition_id = m.partition_id AND d.group_id = v_group.id
                            AND d.position = m.position))
                ORDER BY m.position LIMIT r.batch) m;
            IF v_end IS NULL OR r.auto_ack THEN
                -- Locked by a push that is about to commit: how far it reaches is not known yet.
                SELECT * INTO v_partition FROM wakeline.queue_partition p
                WHERE p.id = v_cursor.partition_id FOR SHARE SKIP LOCKED;
            END IF;

            IF v_end IS NULL THEN
                IF v_partition.id IS NOT NULL AND NOT EXISTS (
                    SELECT FROM wakeline.queue_message m
                    WHERE m.partition_id = v_cursor.partition_id
                        AND m.position >= greatest(v_cursor.position, v_cursor.dead_to))
                THEN
                    UPDATE wakeline.queue_cursor c
                    SET ready_at = NULL, lease_id = NULL, leased_to = NULL,
                        position = greatest(c.position, v_partition.next_position)
                    WHERE c.partition_id = v_cursor.partition_id AND c.group_id = v_group.id;
                ELSE
                    UPDATE wakeline.queue_cursor c
                    SET ready_at = v_now + c_soon, lease_id = NULL, leased_to = NULL
                    WHERE c.partition_id = v_cursor.partition_id AND c.group_id = v_group.id;
                END IF;
                CONTINUE;
            END IF;

            IF r.auto_ack THEN
                v_remaining := v_partition.next_position - v_end;
                UPDATE wakeline.queue_cursor c
                SET position = v_end, lease_id = NULL, leased_to = NULL,
                    ready_at = CASE WHEN v_remaining = 0 THEN NULL ELSE v_now END
                WHERE c.partition_id = v_cursor.partition_id AND c.group_id = v_group.id;
                -- Not known because of a push under way: someone has to look once it is there.
                remaining := coalesce(v_remaining, 1);
            ELSE
                due_ms := coalesce(v_queue.lease_ms, r.lease_ms);
                UPDATE wakeline.queue_cursor c
                SET lease_id = r.lease, leased_to = v_end,
                    ready_at = v_now + due_ms * interval '1 millisecond'
                WHERE c.partition_id = v_cursor.partition_id AND c.group_id = v_group.id;
                remaining := 0;
            END IF;
            SELECT p.public_id, p.name INTO partition_public_id, partition_name
            FROM wakeline.queue_partition p WHERE p.id = v_cursor.partition_id;
            first_position := v_cursor.position;
            end_position := v_end;
            RETURN NEXT;
            RETURN QUERY
            SELECT r.request, NULL::uuid, NULL::text, m.position, NULL::bigint, NULL::bigint,
                NULL::bigint, m.id, m.transaction_id, m.trace_id, m.payload, m.producer_sub,
                (extract(epoch FROM m.created_at) * 1000000)::bigint
            FROM wakeline.queue_message m
            WHERE m.partition_id = v_cursor.partition_id
                AND m.position >= v_cursor.position AND m.position < v_end
                AND (v_cursor.dead_to <= m.position OR NOT EXISTS (
                    SELECT FROM wakeline.queue_dead_letter d
                    WHERE d.partition_id = m.partition_id AND d.group_id = v_group.id
                        AND d.position = m.position))
            ORDER BY m.position;
            EXIT;
        END LOOP;

        IF partition_public_id IS NULL THEN
            -- When the next lease ends or hold-back is over. What is ready and was not had is in
            -- somebody else's hands this moment: look again when they have decided.
            IF v_one IS NULL THEN
                SELECT least(v_due, min(c.ready_at)) INTO v_due FROM wakeline.queue_cursor c
                WHERE c.group_id = v_group.id AND c.ready_at IS NOT NULL;
            ELSE
                SELECT c.ready_at INTO v_due FROM wakeline.queue_cursor c
                WHERE c.partition_id = v_one AND c.group_id = v_group.id;
            END IF;
            IF v_due <= v_now THEN
                v_due := v_now + c_soon;
            END IF;
            due_ms := ceil(extract(epoch FROM v_due - v_now) * 1000);
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;
