-- What pops read before they decide, and write after.
--
-- Nothing here waits for the lock of a cursor or a partition: what another transaction has locked
-- is skipped, and a pop that finds nothing checks again soon.

-- The group of this name in a queue. A new one is created and starts as the caller says.
CREATE FUNCTION wakeline.queue_find_or_make_group(p_queue bigint, p_group text, p_mode text, p_begin timestamptz)
RETURNS wakeline.queue_group LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_group wakeline.queue_group;
BEGIN
    SELECT * INTO v_group FROM wakeline.queue_group g WHERE g.queue_id = p_queue AND g.name = p_group;
    IF FOUND THEN
        RETURN v_group;
    END IF;
    -- Partitions are created under this lock too, so each one either gets a cursor of the group or has
    -- an ordinal within the frontier.
    PERFORM FROM wakeline.queue q WHERE q.id = p_queue FOR NO KEY UPDATE;
    INSERT INTO wakeline.queue_group (queue_id, name, mode, begin_at, frontier_end)
    SELECT q.id, p_group, p_mode,
        CASE WHEN p_mode = 'new' AND p_begin IS NULL THEN clock_timestamp() ELSE p_begin END,
        q.partitions
    FROM wakeline.queue q WHERE q.id = p_queue
    ON CONFLICT DO NOTHING;
    SELECT * INTO v_group FROM wakeline.queue_group g WHERE g.queue_id = p_queue AND g.name = p_group;
    RETURN v_group;
END $$;

-- The position where a group starts that wants messages of a time or later.
CREATE FUNCTION wakeline.queue_start_position(p_partition bigint, p_at timestamptz)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT s.last + 1 FROM wakeline.queue_segment s
        WHERE s.partition_id = p_partition AND s.created_at < p_at
        ORDER BY s.last DESC LIMIT 1), 0)
$$;

-- Gives a group cursors in some of the partitions where it has none yet. Whether there are more.
CREATE FUNCTION wakeline.queue_discover(p_group bigint) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- Partitions in which one claim gives its group cursors at most.
    c_discovery CONSTANT bigint := 500;
    v_group wakeline.queue_group;
    v_end bigint;
BEGIN
    SELECT * INTO v_group FROM wakeline.queue_group g WHERE g.id = p_group FOR NO KEY UPDATE;
    IF NOT FOUND OR v_group.frontier >= v_group.frontier_end THEN
        RETURN false;
    END IF;
    v_end := least(v_group.frontier + c_discovery, v_group.frontier_end);
    INSERT INTO wakeline.queue_cursor (partition_id, group_id, position, ready_at)
    SELECT p.id, p_group,
        CASE WHEN v_group.begin_at IS NULL THEN 0
            ELSE wakeline.queue_start_position(p.id, v_group.begin_at) END,
        clock_timestamp()
    FROM wakeline.queue_partition p
    WHERE p.queue_id + 0 = v_group.queue_id AND p.ordinal > v_group.frontier AND p.ordinal <= v_end
    ORDER BY p.id
    ON CONFLICT DO NOTHING;
    UPDATE wakeline.queue_group g SET frontier = v_end WHERE g.id = p_group;
    RETURN v_end < v_group.frontier_end;
END $$;

-- Locks ready cursors for claims. Per claim, one row for each cursor and segment of it, and one row
-- without a cursor that says when there may be more.
CREATE FUNCTION wakeline.queue_claim(
    p_queue text[], p_partition text[], p_group text[], p_mode text[], p_begin_us bigint[],
    -- How many cursors, and how many messages of each.
    p_count integer[], p_batch bigint[]
) RETURNS TABLE (
    item bigint, now_us bigint,
    -- Without a cursor: when the next is due.
    due_us bigint,
    partition_id bigint, group_id bigint, partition_name text,
    "position" bigint, flags_end bigint, leased_to bigint, deliveries text, first_position bigint, next_position bigint, last_us bigint,
    namespace text, task text, lease_ms bigint, delay_ms bigint, window_ms bigint, max_age_ms bigint,
    dead bigint[],
    first bigint, last bigint, created_us bigint, only_group bigint, body text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c_soon CONSTANT interval := interval '5 milliseconds';
    -- At least the messages of a segment: bounds what is read by the index alone.
    c_segment CONSTANT bigint := 1000;
    r record;
    v_now timestamptz;
    v_now_us bigint;
    v_paused boolean;
    v_queue wakeline.queue;
    v_group wakeline.queue_group;
    v_one bigint;
    v_ids bigint[];
    -- The partitions that the claim of any partition has locked already, and of which group.
    v_claimed bigint[];
    v_claimed_by bigint;
    v_more boolean;
    v_locked_count bigint;
    v_delay_ms bigint;
    v_window_ms bigint;
    v_due timestamptz;
BEGIN
    SELECT m.pop_paused INTO v_paused FROM wakeline.queue_mode m;
    v_now_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    -- In one order for all transactions: two claims that create the same group wait for one another.
    FOR r IN
        SELECT u.* FROM unnest(p_queue, p_partition, p_group, p_mode, p_begin_us, p_count, p_batch)
            WITH ORDINALITY AS u(queue, partition, grp, mode, begin_us, wanted, batch, item)
        ORDER BY u.queue, u.grp, u.partition NULLS FIRST
    LOOP
        item := r.item; now_us := v_now_us; due_us := NULL;
        SELECT * INTO v_queue FROM wakeline.queue q WHERE q.name = r.queue;
        IF NOT FOUND OR v_paused THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        SELECT * INTO v_group FROM wakeline.queue_find_or_make_group(v_queue.id, r.grp, r.mode,
            to_timestamp(0) + r.begin_us * interval '1 microsecond');
        v_more := v_group.frontier < v_group.frontier_end
            AND wakeline.queue_discover(v_group.id);
        -- Only now: the cursors that were just created are ready.
        v_now := clock_timestamp();
        v_now_us := (extract(epoch FROM v_now) * 1000000)::bigint;
        now_us := v_now_us;
        v_one := NULL;
        IF r.partition IS NOT NULL THEN
            SELECT p.id INTO v_one FROM wakeline.queue_partition p
            WHERE p.queue_id = v_queue.id AND p.name = r.partition;
            IF v_one IS NULL THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;

        IF v_one IS NULL THEN
            SELECT array_agg(c.partition_id) INTO v_ids FROM (
                SELECT c.partition_id FROM wakeline.queue_cursor c
                WHERE c.group_id = v_group.id AND c.ready_at <= v_now
                ORDER BY c.ready_at LIMIT r.wanted FOR NO KEY UPDATE SKIP LOCKED) c;
        ELSE
            SELECT array_agg(c.partition_id) INTO v_ids FROM (
                SELECT c.partition_id FROM wakeline.queue_cursor c
                WHERE c.partition_id = v_one AND c.group_id = v_group.id AND c.ready_at <= v_now
                    -- A transaction does not skip its own locks.
                    AND (v_claimed_by IS DISTINCT FROM v_group.id OR v_one <> ALL (v_claimed))
                FOR NO KEY UPDATE SKIP LOCKED) c;
        END IF;
        IF v_one IS NULL THEN
            v_claimed_by := v_group.id;
            v_claimed := coalesce(v_ids, '{}');
        END IF;
        v_locked_count := coalesce(cardinality(v_ids), 0);
        -- Other delays may have been configured before the cursors were locked; now that waits.
        IF v_locked_count > 0 THEN
            SELECT q.delay_ms, q.window_ms INTO v_delay_ms, v_window_ms
            FROM wakeline.queue q WHERE q.id = v_queue.id;
        END IF;

        RETURN QUERY
        SELECT r.item, v_now_us, NULL::bigint, c.partition_id, v_group.id, p.name,
            c.position, c.flags_end, c.leased_to, c.deliveries, p.first_position, p.next_position,
            CASE WHEN p.last_at = '-infinity' THEN 0
                ELSE (extract(epoch FROM p.last_at) * 1000000)::bigint END,
            v_queue.namespace, v_queue.task, v_queue.lease_ms, coalesce(v_delay_ms, 0), coalesce(v_window_ms, 0), v_queue.max_age_ms,
            CASE WHEN greatest(c.flags_end, p.deletions_end) > c.position THEN (
                SELECT array_agg(m.position) FROM wakeline.queue_message_flag m
                WHERE m.partition_id = c.partition_id AND m.group_id IN (0, v_group.id)
                    AND m.position >= c.position
                    AND m.position < greatest(c.position, p.first_position) + r.batch
                    AND m.is_dead) END,
            s.first, s.last, (extract(epoch FROM s.created_at) * 1000000)::bigint, s.only_group, s.body
        FROM unnest(v_ids) WITH ORDINALITY AS u(id, place)
        CROSS JOIN LATERAL (
            SELECT * FROM wakeline.queue_cursor c
            WHERE c.partition_id = u.id AND c.group_id = v_group.id LIMIT 1) c
        CROSS JOIN LATERAL (
            SELECT * FROM wakeline.queue_partition p WHERE p.id = u.id LIMIT 1) p
        LEFT JOIN LATERAL (
            SELECT * FROM wakeline.queue_segment s
            WHERE s.partition_id = u.id
                AND s.last >= greatest(c.position, p.first_position)
                AND s.last < greatest(c.position, p.first_position) + r.batch + c_segment
                AND s.first < greatest(c.position, p.first_position) + r.batch
            -- So many segments have at least so many messages.
            ORDER BY s.last LIMIT r.batch) s ON true
        ORDER BY u.place, s.last;

        -- When the next lease or delay ends. A ready cursor that was skipped is locked by another
        -- claim at this moment: check again when that one has decided.
        v_due := NULL;
        IF v_more THEN
            v_due := v_now;
        ELSIF v_one IS NOT NULL THEN
            SELECT c.ready_at INTO v_due FROM wakeline.queue_cursor c
            WHERE c.partition_id = v_one AND c.group_id = v_group.id;
            -- `greatest` ignores NULL, which must stay: there is nothing to check for.
            v_due := CASE WHEN v_due IS NOT NULL THEN greatest(v_due, v_now + c_soon) END;
        ELSIF v_locked_count < r.wanted THEN
            SELECT greatest(c.ready_at, v_now + c_soon) INTO v_due
            FROM (
                SELECT c.ready_at FROM wakeline.queue_cursor c
                WHERE c.group_id = v_group.id AND c.ready_at IS NOT NULL
                    AND (v_locked_count = 0 OR c.partition_id <> ALL (v_ids))
                ORDER BY c.ready_at LIMIT 1) c;
        ELSE
            -- For a pop that gets nothing, because the locked cursors had no messages for it.
            v_due := v_now;
        END IF;
        due_us := (extract(epoch FROM v_due) * 1000000)::bigint;
        RETURN NEXT;
    END LOOP;
END $$;

-- For cursors that seem to be at the end: whether they are. Only the partition's lock tells.
CREATE FUNCTION wakeline.queue_check_end(p_partition bigint[], p_group bigint[])
RETURNS TABLE (
    partition_id bigint, group_id bigint,
    -- How many more messages there are; NULL: not known, because a push is under way.
    remaining bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c_soon CONSTANT interval := interval '5 milliseconds';
    v_locked bigint[];
BEGIN
    SELECT array_agg(p.id) INTO v_locked FROM (
        SELECT p.id FROM wakeline.queue_partition p WHERE p.id = ANY (p_partition)
        ORDER BY p.id FOR SHARE SKIP LOCKED) p;
    RETURN QUERY
    WITH seen AS (
        SELECT u.partition_id, u.group_id, CASE WHEN u.partition_id = ANY (v_locked) THEN (
            SELECT p.next_position FROM wakeline.queue_partition p WHERE p.id = u.partition_id) END AS next
        FROM unnest(p_partition, p_group) AS u(partition_id, group_id)
    ), moved AS (
        UPDATE wakeline.queue_cursor c
        SET ready_at = CASE WHEN s.next IS NULL THEN clock_timestamp() + c_soon
            WHEN s.next > c.position THEN clock_timestamp() END
        FROM seen s WHERE c.partition_id = s.partition_id AND c.group_id = s.group_id
        RETURNING c.partition_id, c.group_id, s.next - c.position AS remaining
    )
    SELECT m.partition_id, m.group_id,
        CASE WHEN m.remaining IS NOT NULL THEN greatest(m.remaining, 0) END FROM moved m;
END $$;

-- Undoes a claim that did not reach its client. Returns the partitions where it was still valid.
CREATE FUNCTION wakeline.queue_release_claim(
    p_partition bigint[], p_group bigint,
    -- The lease, or NULL if the claim was acknowledged at once: then the positions fence it.
    p_lease uuid, p_before bigint[], p_after bigint[]
) RETURNS TABLE (partition_id bigint) LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c
    SET position = u.before, ready_at = clock_timestamp(), lease_id = NULL, leased_to = NULL
    FROM (
        SELECT u.* FROM unnest(p_partition, p_before, p_after) AS u(id, before, after) ORDER BY u.id) u
    WHERE c.partition_id = u.id AND c.group_id = p_group
        AND CASE WHEN p_lease IS NULL THEN c.lease_id IS NULL AND c.position = u.after
            ELSE c.lease_id = p_lease AND c.position = u.before END
    RETURNING c.partition_id
$$;

-- Extends a lease, never shortens it. Returns when it ends now; no row if it has expired.
CREATE FUNCTION wakeline.queue_extend_lease(p_lease uuid, p_seconds bigint)
RETURNS TABLE (until_us bigint) LANGUAGE sql AS $$
    UPDATE wakeline.queue_cursor c
    SET ready_at = greatest(c.ready_at, clock_timestamp() + p_seconds * interval '1 second')
    WHERE c.lease_id = p_lease AND c.ready_at > clock_timestamp()
    RETURNING (extract(epoch FROM c.ready_at) * 1000000)::bigint
$$;

-- Which queue a pop by namespace and task claims from: the one with the highest priority, to which
-- every `p_aging` seconds that its oldest ready partition has waited add one. Per item at most one
-- row: the queue, or when one will be ready.
CREATE FUNCTION wakeline.queue_choose_queue(
    p_namespace text[], p_task text[], p_group text[], p_aging double precision
) RETURNS TABLE (item bigint, queue text, due_us bigint) LANGUAGE sql VOLATILE AS $$
    SELECT u.item, CASE WHEN b.ready <= clock_timestamp() THEN b.name END,
        (extract(epoch FROM b.ready) * 1000000)::bigint
    FROM unnest(p_namespace, p_task, p_group) WITH ORDINALITY AS u(namespace, task, grp, item)
    CROSS JOIN LATERAL (
        SELECT q.name, r.ready FROM (
            SELECT * FROM wakeline.queue q WHERE q.namespace = u.namespace AND u.task IS NULL
            UNION ALL
            SELECT * FROM wakeline.queue q
            WHERE q.task = u.task AND (u.namespace IS NULL OR q.namespace = u.namespace)
        ) q
        CROSS JOIN LATERAL (SELECT CASE
            WHEN q.partitions = 0 THEN NULL
            WHEN g.id IS NULL OR g.frontier < g.frontier_end THEN to_timestamp(0)
            ELSE (SELECT min(c.ready_at) FROM wakeline.queue_cursor c
                WHERE c.group_id = g.id AND c.ready_at IS NOT NULL) END AS ready
            FROM (SELECT) AS one
            LEFT JOIN LATERAL (
                SELECT * FROM wakeline.queue_group g
                WHERE g.queue_id = q.id AND g.name = u.grp LIMIT 1) g ON true) r
        WHERE r.ready IS NOT NULL
        ORDER BY r.ready > clock_timestamp(),
            CASE WHEN r.ready > clock_timestamp() THEN extract(epoch FROM r.ready)
                WHEN r.ready = to_timestamp(0) THEN -q.priority
                ELSE -q.priority - extract(epoch FROM clock_timestamp() - r.ready) / p_aging END,
            q.name
        LIMIT 1) b
$$;

-- Remembers where groups that pop by namespace or task start, and returns that.
CREATE FUNCTION wakeline.queue_remember_subscriptions(
    p_namespace text[], p_task text[], p_group text[], p_mode text[], p_begin_us bigint[]
) RETURNS TABLE (item bigint, mode text, begin_us bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO wakeline.queue_subscription AS s (namespace, task, group_name, begin_at, mode)
    SELECT DISTINCT ON (3, 1, 2) coalesce(u.namespace, ''), coalesce(u.task, ''), u.grp,
        CASE WHEN u.begin_us IS NOT NULL THEN to_timestamp(0) + u.begin_us * interval '1 microsecond'
            WHEN u.mode = 'new' THEN clock_timestamp() END, u.mode
    FROM unnest(p_namespace, p_task, p_group, p_mode, p_begin_us) AS u(namespace, task, grp, mode, begin_us)
    WHERE NOT EXISTS (
        SELECT FROM wakeline.queue_subscription s
        WHERE s.group_name = u.grp AND s.namespace = coalesce(u.namespace, '')
            AND s.task = coalesce(u.task, ''))
    ORDER BY 3, 1, 2
    ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT u.item, s.mode, (extract(epoch FROM s.begin_at) * 1000000)::bigint
    FROM unnest(p_namespace, p_task, p_group) WITH ORDINALITY AS u(namespace, task, grp, item)
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.queue_subscription s
        WHERE s.group_name = u.grp AND s.namespace = coalesce(u.namespace, '')
            AND s.task = coalesce(u.task, '') LIMIT 1) s;
END $$;

-- For the recheck: of all these wait keys, where something is ready, or when it will be.
CREATE FUNCTION wakeline.queue_recheck(p_queue text[], p_partition text[], p_group text[])
RETURNS TABLE (item bigint, due_ms bigint) LANGUAGE sql STABLE AS $$
    SELECT w.item, greatest(0, ceil(extract(epoch FROM w.due - clock_timestamp()) * 1000))::bigint
    FROM (
        SELECT u.item, CASE
            WHEN g.id IS NULL OR g.frontier < g.frontier_end
                THEN CASE WHEN q.partitions > 0 THEN to_timestamp(0) END
            WHEN u.partition IS NULL THEN
                (SELECT min(c.ready_at) FROM wakeline.queue_cursor c
                WHERE c.group_id = g.id AND c.ready_at IS NOT NULL)
            ELSE (SELECT c.ready_at FROM wakeline.queue_cursor c
                WHERE c.group_id = g.id AND c.partition_id = (
                    SELECT p.id FROM wakeline.queue_partition p
                    WHERE p.queue_id = q.id AND p.name = u.partition))
        END AS due
        FROM unnest(p_queue, p_partition, p_group) WITH ORDINALITY AS u(queue, partition, grp, item)
        CROSS JOIN LATERAL (SELECT * FROM wakeline.queue q WHERE q.name = u.queue LIMIT 1) q
        LEFT JOIN LATERAL (
            SELECT * FROM wakeline.queue_group g
            WHERE g.queue_id = q.id AND g.name = u.grp LIMIT 1) g ON true
    ) w
    WHERE w.due IS NOT NULL
$$;
