-- Fetches. They wait for no lock: rows that another transaction has locked are skipped.
--
-- Their commits do not wait for the disk: a lease that is lost in a crash has only ended early, and
-- an acknowledgement without a lease is refused.

-- Leases one instance for each caller, while there are any. `p_low` and `p_high`: the duroxide
-- versions that the caller can replay; NULL: any. `p_node`: the calling process; a history that it
-- caches is left out.
CREATE FUNCTION @schema@.fetch_instances(
    p_node bigint, p_lease_us bigint[], p_low bigint[], p_high bigint[], p_token uuid[]
) RETURNS TABLE (
    caller integer, instance text, name text, version text, execution bigint, incarnation bigint,
    last_event bigint, edits bigint, attempts integer, items text[], history text[], is_cached boolean,
    kv_keys text[], kv_values bytea[], kv_ms bigint[],
    -- For a caller that gets nothing: microseconds until a message is due, and until a lease expires.
    due_us bigint, expiry_us bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    v_mailbox @schema@.mailbox;
    v_instance @schema@.instance;
    v_now timestamptz;
    v_through bigint;
    v_execution bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_caller IN 1 .. cardinality(p_lease_us) LOOP
        LOOP
            v_now := clock_timestamp();
            -- Expired leases first: their messages have waited longest.
            SELECT m.* INTO v_mailbox FROM @schema@.mailbox m
            LEFT JOIN @schema@.instance i ON i.id = m.instance
            WHERE m.token IS NOT NULL AND m.ready_at <= v_now
                AND (i.pinned IS NULL OR p_low[v_caller] IS NULL
                    OR i.pinned BETWEEN p_low[v_caller] AND p_high[v_caller])
            ORDER BY m.ready_at LIMIT 1 FOR NO KEY UPDATE OF m SKIP LOCKED;
            IF NOT FOUND THEN
                SELECT m.* INTO v_mailbox FROM @schema@.mailbox m
                LEFT JOIN @schema@.instance i ON i.id = m.instance
                WHERE m.token IS NULL AND m.ready_at <= v_now
                    AND (i.pinned IS NULL OR p_low[v_caller] IS NULL
                        OR i.pinned BETWEEN p_low[v_caller] AND p_high[v_caller])
                ORDER BY m.ready_at LIMIT 1 FOR NO KEY UPDATE OF m SKIP LOCKED;
            END IF;
            EXIT WHEN NOT FOUND;

            IF v_mailbox.token IS NOT NULL THEN
                -- Fetched and never acknowledged: that was an attempt.
                UPDATE @schema@.message g SET attempts = g.attempts + 1
                WHERE g.instance = v_mailbox.instance AND g.number <= v_mailbox.leased_through
                    AND (g.visible_at IS NULL OR g.visible_at <= v_mailbox.leased_at);
            END IF;
            SELECT array_agg(g.item ORDER BY g.number), max(g.number), max(g.attempts) + 1
            INTO items, v_through, attempts
            FROM @schema@.message g
            WHERE g.instance = v_mailbox.instance AND (g.visible_at IS NULL OR g.visible_at <= v_now);
            IF items IS NULL THEN
                PERFORM @schema@.end_leases(ARRAY[v_mailbox.instance], v_now);
                CONTINUE;
            END IF;

            SELECT i.* INTO v_instance FROM @schema@.instance i WHERE i.id = v_mailbox.instance;
            v_execution := coalesce(v_instance.execution, (
                SELECT max(x.number) FROM @schema@.execution x WHERE x.instance = v_mailbox.instance), (
                SELECT max(e.execution) FROM @schema@.event e WHERE e.instance = v_mailbox.instance));
            IF v_execution IS NULL AND NOT EXISTS (
                SELECT FROM unnest(items) AS u (item)
                WHERE u.item ^@ '{"StartOrchestration"' OR u.item ^@ '{"ContinueAsNew"'
            ) THEN
                -- The instance does not exist and no message starts it. Queue messages that came
                -- before the start are dropped; others stay until the next message arrives.
                IF (SELECT bool_and(u.item ^@ '{"QueueMessage"') FROM unnest(items) AS u (item)) THEN
                    DELETE FROM @schema@.message g
                    WHERE g.instance = v_mailbox.instance AND g.number <= v_through
                        AND (g.visible_at IS NULL OR g.visible_at <= v_now);
                    PERFORM @schema@.end_leases(ARRAY[v_mailbox.instance], v_now);
                    RAISE WARNING 'dropped events for %, which has not been started', v_mailbox.instance;
                ELSE
                    UPDATE @schema@.mailbox m
                    SET token = NULL, leased_through = NULL, leased_at = NULL,
                        ready_at = coalesce((
                            SELECT min(g.visible_at) FROM @schema@.message g
                            WHERE g.instance = v_mailbox.instance AND g.visible_at > v_now), 'infinity')
                    WHERE m.instance = v_mailbox.instance;
                END IF;
                CONTINUE;
            END IF;

            -- The lease begins now, not when the call began.
            UPDATE @schema@.mailbox m SET
                token = p_token[v_caller], leased_through = v_through, leased_at = v_now,
                ready_at = clock_timestamp() + p_lease_us[v_caller] * interval '1 microsecond'
            WHERE m.instance = v_mailbox.instance;

            caller := v_caller;
            instance := v_mailbox.instance;
            name := v_instance.name;
            version := v_instance.version;
            execution := v_execution;
            incarnation := v_instance.incarnation;
            last_event := v_instance.last_event;
            edits := v_instance.edits;
            is_cached := coalesce(v_instance.cached_by = p_node, false);
            history := NULL;
            IF NOT is_cached AND v_execution IS NOT NULL THEN
                history := ARRAY(
                    SELECT e.data FROM @schema@.event e
                    WHERE e.instance = v_mailbox.instance AND e.execution = v_execution ORDER BY e.number);
            END IF;
            SELECT array_agg(v.key), array_agg(v.value), array_agg(v.updated_ms)
            INTO kv_keys, kv_values, kv_ms
            FROM @schema@.kv v WHERE v.instance = v_mailbox.instance;
            RETURN NEXT;
            EXIT;
        END LOOP;
        IF v_mailbox IS NULL THEN
            caller := v_caller;
            instance := NULL;
            due_us := (SELECT (extract(epoch FROM m.ready_at - v_now) * 1e6)::bigint FROM @schema@.mailbox m
                WHERE m.token IS NULL AND m.ready_at > v_now AND m.ready_at < 'infinity'
                ORDER BY m.ready_at LIMIT 1);
            expiry_us := (SELECT (extract(epoch FROM m.ready_at - v_now) * 1e6)::bigint FROM @schema@.mailbox m
                WHERE m.token IS NOT NULL AND m.ready_at > v_now ORDER BY m.ready_at LIMIT 1);
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;

-- Leases one activity for each caller. `g_caller` and `g_tag`: the tags of each caller; a caller
-- without tags accepts every tag. `p_owner`: the owner of sessions; NULL: no activities of sessions.
CREATE FUNCTION @schema@.fetch_activities(
    p_lease_us bigint[], p_owner text[], p_session_us bigint[], p_token uuid[],
    g_caller integer[], g_tag text[]
) RETURNS TABLE (
    caller integer, id bigint, item text, attempts integer, instance text, execution bigint,
    number bigint, due_us bigint, expiry_us bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    v_now timestamptz;
    v_tags text[];
    v_all boolean;
    v_activity @schema@.activity;
    v_session_activity @schema@.activity;
    v_leased boolean;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR v_caller IN 1 .. cardinality(p_lease_us) LOOP
        v_tags := ARRAY(SELECT g.tag FROM unnest(g_caller, g_tag) AS g (caller, tag) WHERE g.caller = v_caller);
        v_all := cardinality(v_tags) = 0;
        IF v_all THEN
            -- The existing tags, each by one seek in the index.
            v_tags := ARRAY(
                WITH RECURSIVE tags AS (
                    (SELECT k.tag FROM @schema@.activity k WHERE k.session IS NULL ORDER BY k.tag LIMIT 1)
                    UNION ALL
                    SELECT (SELECT k.tag FROM @schema@.activity k WHERE k.session IS NULL AND k.tag > tags.tag
                        ORDER BY k.tag LIMIT 1)
                    FROM tags WHERE tags.tag IS NOT NULL
                ) SELECT tags.tag FROM tags WHERE tags.tag IS NOT NULL);
        END IF;
        FOR v_try IN 1 .. 16 LOOP
            v_now := clock_timestamp();
            v_leased := false;
            SELECT k.* INTO v_activity FROM unnest(v_tags) AS g (tag)
            CROSS JOIN LATERAL (
                SELECT t.* FROM @schema@.activity t
                WHERE t.session IS NULL AND t.tag = g.tag AND t.ready_at <= v_now
                ORDER BY t.ready_at, t.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
            ) k ORDER BY k.ready_at, k.id LIMIT 1;
            IF p_owner[v_caller] IS NOT NULL THEN
                SELECT t.* INTO v_session_activity FROM @schema@.activity t
                LEFT JOIN @schema@.session s ON s.id = t.session AND s.locked_until > v_now
                WHERE t.session IS NOT NULL AND t.ready_at <= v_now
                    AND (v_all OR t.tag = ANY (v_tags))
                    AND (s.id IS NULL OR s.owner = p_owner[v_caller])
                ORDER BY t.ready_at, t.id LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED;
                IF v_activity.id IS NULL
                    OR (v_session_activity.ready_at, v_session_activity.id) < (v_activity.ready_at, v_activity.id)
                THEN
                    v_activity := v_session_activity;
                END IF;
            END IF;
            EXIT WHEN v_activity.id IS NULL;
            IF v_activity.session IS NOT NULL THEN
                INSERT INTO @schema@.session AS s (id, owner, locked_until, active_at)
                VALUES (v_activity.session, p_owner[v_caller],
                    v_now + p_session_us[v_caller] * interval '1 microsecond', v_now)
                ON CONFLICT ON CONSTRAINT session_pkey DO UPDATE SET
                    owner = excluded.owner, locked_until = excluded.locked_until, active_at = excluded.active_at
                WHERE s.locked_until <= v_now OR s.owner = excluded.owner;
                -- Another worker has just got this session.
                CONTINUE WHEN NOT FOUND;
            END IF;
            v_leased := true;
            EXIT;
        END LOOP;
        caller := v_caller;
        id := NULL;
        IF v_leased THEN
            UPDATE @schema@.activity t SET
                token = p_token[v_caller], attempts = t.attempts + 1,
                ready_at = clock_timestamp() + p_lease_us[v_caller] * interval '1 microsecond'
            WHERE t.id = v_activity.id;
            id := v_activity.id;
            item := v_activity.item;
            attempts := v_activity.attempts + 1;
            instance := v_activity.instance;
            execution := v_activity.execution;
            number := v_activity.number;
        ELSE
            SELECT min(n.us) FILTER (WHERE NOT n.is_leased), min(n.us) FILTER (WHERE n.is_leased)
            INTO due_us, expiry_us
            FROM (
                SELECT (extract(epoch FROM k.ready_at - v_now) * 1e6)::bigint AS us, k.is_leased
                FROM unnest(v_tags) AS g (tag)
                CROSS JOIN LATERAL (
                    SELECT t.ready_at, t.token IS NOT NULL AS is_leased FROM @schema@.activity t
                    WHERE t.session IS NULL AND t.tag = g.tag AND t.ready_at > v_now
                    ORDER BY t.ready_at, t.id LIMIT 1
                ) k
                UNION ALL
                SELECT (extract(epoch FROM k.ready_at - v_now) * 1e6)::bigint, k.is_leased FROM (
                    SELECT t.ready_at, t.token IS NOT NULL AS is_leased FROM @schema@.activity t
                    WHERE p_owner[v_caller] IS NOT NULL AND t.session IS NOT NULL AND t.ready_at > v_now
                    ORDER BY t.ready_at, t.id LIMIT 1
                ) k
                UNION ALL
                SELECT (extract(epoch FROM min(s.locked_until) - v_now) * 1e6)::bigint, true
                FROM @schema@.activity t JOIN @schema@.session s ON s.id = t.session
                WHERE p_owner[v_caller] IS NOT NULL AND t.session IS NOT NULL AND t.ready_at <= v_now
                    AND s.locked_until > v_now
            ) n;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- When the next item of each topic (its kind and name, as in `topic.rs`) can be fetched, in
-- microseconds; zero or less: now.
CREATE FUNCTION @schema@.due() RETURNS TABLE (kind text, name text, due_us bigint)
LANGUAGE sql STABLE AS $$
    SELECT 'orchestration', '', (extract(epoch FROM m.ready_at - clock_timestamp()) * 1e6)::bigint
    FROM (
        (SELECT ready_at FROM @schema@.mailbox
         WHERE token IS NULL AND ready_at < 'infinity' ORDER BY ready_at LIMIT 1)
        UNION ALL
        (SELECT ready_at FROM @schema@.mailbox WHERE token IS NOT NULL ORDER BY ready_at LIMIT 1)
    ) m
    UNION ALL
    SELECT 'activity', t.tag, (extract(epoch FROM min(t.ready_at) - clock_timestamp()) * 1e6)::bigint
    FROM @schema@.activity t WHERE t.session IS NULL GROUP BY t.tag
    UNION ALL
    SELECT CASE WHEN s.owner IS NULL THEN 'session' ELSE 'owner' END, coalesce(s.owner, t.tag),
        (extract(epoch FROM min(t.ready_at) - clock_timestamp()) * 1e6)::bigint
    FROM @schema@.activity t
    LEFT JOIN @schema@.session s ON s.id = t.session AND s.locked_until > clock_timestamp()
    WHERE t.session IS NOT NULL GROUP BY 1, 2
$$;
