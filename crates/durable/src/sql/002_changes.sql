-- Writes: ends of turns, ends of activities, new messages and new activities, those of many callers
-- in one statement and one commit. Each caller learns whether its own lease was held; a caller whose
-- lease was not held has changed nothing.
--
-- Locks are taken in this order: mailboxes by instance, activities, instances, counters.
--
-- All functions are PL/pgSQL: the server plans their statements once per session, and those of SQL
-- functions for every call.

-- Puts messages into mailboxes. `p_visible`: when each becomes visible; NULL is at once.
CREATE FUNCTION @schema@.put_messages(p_instance text[], p_item text[], p_visible timestamptz[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_next bigint;
BEGIN
    -- One message is the usual case: starting the large statement would take longer than this.
    IF cardinality(p_instance) = 1 THEN
        INSERT INTO @schema@.mailbox AS m (instance, next, ready_at)
        VALUES (p_instance[1], 1, coalesce(p_visible[1], clock_timestamp()))
        ON CONFLICT (instance) DO UPDATE SET
            next = m.next + 1,
            ready_at = CASE WHEN m.token IS NULL THEN least(m.ready_at, excluded.ready_at)
                ELSE m.ready_at END
        RETURNING m.next INTO v_next;
        INSERT INTO @schema@.message (instance, number, item, visible_at)
        VALUES (p_instance[1], v_next - 1, p_item[1], p_visible[1]);
        RETURN;
    END IF;
    WITH incoming AS (
        SELECT a.instance, a.item, a.visible_at,
            row_number() OVER (PARTITION BY a.instance ORDER BY a.ordinal) AS ordinal
        FROM unnest(p_instance, p_item, p_visible) WITH ORDINALITY AS a (instance, item, visible_at, ordinal)
    ), mailbox AS (
        INSERT INTO @schema@.mailbox AS m (instance, next, ready_at)
        SELECT a.instance, count(*), min(coalesce(a.visible_at, clock_timestamp()))
        FROM incoming a GROUP BY a.instance ORDER BY a.instance
        ON CONFLICT (instance) DO UPDATE SET
            next = m.next + excluded.next,
            ready_at = CASE WHEN m.token IS NULL THEN least(m.ready_at, excluded.ready_at)
                ELSE m.ready_at END
        RETURNING m.instance, m.next
    )
    INSERT INTO @schema@.message (instance, number, item, visible_at)
    SELECT a.instance,
        b.next - (SELECT count(*) FROM incoming c WHERE c.instance = a.instance) + a.ordinal - 1,
        a.item, a.visible_at
    FROM incoming a JOIN mailbox b ON b.instance = a.instance;
END $$;

CREATE FUNCTION @schema@.apply_changes(
    -- Ends of turns. `t_is_repeat`: an earlier attempt may have been committed. `t_status_change`: 1
    -- sets the custom status, 2 clears it. `t_cached_by`: the process that caches the whole history
    -- afterwards. `t_incarnation`: for a new instance.
    t_instance text[], t_token uuid[], t_is_repeat boolean[], t_execution bigint[], t_name text[],
    t_version text[], t_parent text[], t_pinned bigint[], t_status text[], t_output bytea[],
    t_status_change smallint[], t_custom_status bytea[], t_last_event bigint[], t_cached_by bigint[],
    t_incarnation bigint[],
    -- Events; `e_turn` is the turn's index in the arrays above, from 1.
    e_turn integer[], e_number bigint[], e_data text[],
    -- Changes of values, in their order. Key NULL: all keys. Value NULL: removed.
    k_turn integer[], k_key text[], k_value bytea[], k_updated_ms bigint[],
    -- Ends of activities.
    f_activity bigint[], f_token uuid[], f_is_repeat boolean[],
    -- Messages. `m_change`: the index of the turn that sends it, minus the index of the activity
    -- whose end it is, or 0 for neither. Visible `m_after_us` from now, or at `m_at_ms` since 1970.
    m_change integer[], m_instance text[], m_item text[], m_after_us bigint[], m_at_ms bigint[],
    -- New activities (`a_turn` 0: of no turn), and activities to cancel.
    a_turn integer[], a_instance text[], a_execution bigint[], a_number bigint[], a_session text[],
    a_tag text[], a_item text[],
    c_turn integer[], c_instance text[], c_execution bigint[], c_number bigint[]
) RETURNS TABLE (
    turns boolean[], activity_ends boolean[],
    -- How many of the mailboxes can be fetched now; when each of the others can.
    ready_mailboxes integer, due_us bigint[],
    -- New activities by tag, whether they have a session, and its owner; when the first of these
    -- sessions ends.
    activity_tags text[], activity_has_session boolean[], activity_owners text[], activity_counts integer[],
    session_ends_us bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    v_now timestamptz;
    v_held boolean[];
    v_deleted_activities bigint[];
    v_activity_held boolean[];
    v_held_instances text[];
    v_ended_instances text[];
    v_new_executions bigint := 0;
    v_new_instances bigint := 0;
    v_completed bigint := 0;
    v_failed bigint := 0;
    v_key integer;
    v_named_turns integer;
BEGIN
    PERFORM FROM @schema@.mailbox m WHERE m.instance = ANY (t_instance || m_instance)
    ORDER BY m.instance FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    turns := '{}';
    activity_ends := '{}';

    IF cardinality(t_instance) = 1 THEN
        v_held := ARRAY[EXISTS (SELECT FROM @schema@.mailbox m
            WHERE m.instance = t_instance[1] AND m.token = t_token[1] AND m.ready_at > v_now)];
        turns := v_held;
        IF t_is_repeat[1] AND NOT v_held[1] THEN
            turns := ARRAY[EXISTS (SELECT FROM @schema@.instance i
                WHERE i.id = t_instance[1] AND i.last_acked = t_token[1])];
        END IF;
        v_held_instances := CASE WHEN v_held[1] THEN t_instance ELSE '{}' END;
    ELSIF cardinality(t_instance) > 1 THEN
        SELECT array_agg(h.held ORDER BY h.ordinal), array_agg(h.was_acked OR h.held ORDER BY h.ordinal),
            coalesce(array_agg(h.instance) FILTER (WHERE h.held), '{}')
        INTO v_held, turns, v_held_instances
        FROM (
            SELECT t.ordinal, t.instance,
                coalesce(m.token = t.token AND m.ready_at > v_now, false)
                    AND row_number() OVER (PARTITION BY t.instance, t.token ORDER BY t.ordinal) = 1 AS held,
                t.is_repeat AND coalesce(i.last_acked = t.token, false) AS was_acked
            FROM unnest(t_instance, t_token, t_is_repeat) WITH ORDINALITY AS t (instance, token, is_repeat, ordinal)
            LEFT JOIN @schema@.mailbox m ON m.instance = t.instance
            LEFT JOIN @schema@.instance i ON i.id = t.instance
        ) h;
    END IF;

    IF cardinality(f_activity) > 0 THEN
        WITH deleted AS (
            DELETE FROM @schema@.activity k USING unnest(f_activity, f_token) AS f (activity, token)
            WHERE k.id = f.activity AND k.token = f.token AND k.ready_at > v_now
            RETURNING k.id, k.session
        ), active AS (
            UPDATE @schema@.session s SET active_at = v_now FROM deleted d
            WHERE s.id = d.session AND s.locked_until > v_now
        )
        SELECT coalesce(array_agg(id), '{}') INTO v_deleted_activities FROM deleted;
        SELECT array_agg(f.activity = ANY (v_deleted_activities) AND f.turn = 1 ORDER BY f.ordinal),
            -- A repeat without a row counts as held: the first attempt deleted the row, or nobody
            -- needs it any more. With a row, another worker has the lease.
            array_agg(f.activity = ANY (v_deleted_activities) AND f.turn = 1
                OR f.is_repeat AND NOT EXISTS (SELECT FROM @schema@.activity k WHERE k.id = f.activity)
                ORDER BY f.ordinal)
        INTO v_activity_held, activity_ends
        FROM (
            SELECT u.*, row_number() OVER (PARTITION BY u.activity ORDER BY u.ordinal) AS turn
            FROM unnest(f_activity, f_is_repeat) WITH ORDINALITY AS u (activity, is_repeat, ordinal)
        ) f;
    END IF;

    IF cardinality(v_held_instances) > 0 THEN
        v_ended_instances := '{}';
        IF cardinality(array_remove(t_status, NULL)) > 0 THEN
            v_ended_instances := ARRAY(
                SELECT t.instance FROM unnest(t_instance, v_held, t_status) AS t (instance, held, status)
                WHERE t.held AND t.status IS NOT NULL);
            SELECT count(*) FILTER (WHERE t.status = 'Completed') - count(*) FILTER (WHERE x.status = 'Completed'),
                count(*) FILTER (WHERE t.status = 'Failed') - count(*) FILTER (WHERE x.status = 'Failed')
            INTO v_completed, v_failed
            FROM unnest(t_instance, v_held, t_status, t_execution) AS t (instance, held, status, execution)
            LEFT JOIN @schema@.execution x ON x.instance = t.instance AND x.number = t.execution
            WHERE t.held AND t.status IS NOT NULL;
        END IF;

        -- A turn with a name creates its instance if there is none.
        v_named_turns := cardinality(array_remove(t_name, NULL));
        IF v_named_turns > 0 THEN
            WITH named AS (
                INSERT INTO @schema@.instance AS i (id, incarnation, name, version, execution, parent, pinned,
                    last_event, cached_by, last_acked, custom_status, custom_status_version)
                SELECT t.instance, t.incarnation, t.name, t.version, t.execution, t.parent, t.pinned,
                    coalesce(t.last_event, 0), t.cached_by, t.token, t.custom_status, sign(t.status_change)
                FROM unnest(t_instance, v_held, t_token, t_execution, t_name, t_version, t_parent, t_pinned,
                    t_status_change, t_custom_status, t_last_event, t_cached_by, t_incarnation)
                    AS t (instance, held, token, execution, name, version, parent, pinned,
                        status_change, custom_status, last_event, cached_by, incarnation)
                WHERE t.held AND t.name IS NOT NULL
                ORDER BY t.instance
                ON CONFLICT (id) DO UPDATE SET
                    name = excluded.name, version = excluded.version,
                    execution = greatest(i.execution, excluded.execution),
                    pinned = CASE WHEN excluded.execution > i.execution THEN excluded.pinned
                        WHEN excluded.execution = i.execution THEN coalesce(excluded.pinned, i.pinned)
                        ELSE i.pinned END,
                    last_event = CASE WHEN excluded.execution > i.execution THEN excluded.last_event
                        WHEN excluded.execution = i.execution THEN greatest(excluded.last_event, i.last_event)
                        ELSE i.last_event END,
                    custom_status = CASE WHEN excluded.custom_status_version > 0
                        THEN excluded.custom_status ELSE i.custom_status END,
                    custom_status_version = i.custom_status_version + excluded.custom_status_version,
                    cached_by = excluded.cached_by, last_acked = excluded.last_acked, updated_at = v_now
                RETURNING (i.xmax = 0) AS is_new
            )
            SELECT count(*) FILTER (WHERE is_new) INTO v_new_instances FROM named;
        END IF;

        IF v_named_turns < cardinality(t_name) THEN
            UPDATE @schema@.instance i SET
                execution = greatest(i.execution, t.execution),
                pinned = CASE WHEN t.execution > i.execution THEN t.pinned
                    WHEN t.execution = i.execution THEN coalesce(t.pinned, i.pinned) ELSE i.pinned END,
                last_event = CASE WHEN t.execution > i.execution THEN coalesce(t.last_event, 0)
                    WHEN t.execution = i.execution THEN greatest(coalesce(t.last_event, 0), i.last_event)
                    ELSE i.last_event END,
                custom_status = CASE WHEN t.status_change > 0 THEN t.custom_status ELSE i.custom_status END,
                custom_status_version = i.custom_status_version + sign(t.status_change)::bigint,
                cached_by = t.cached_by, last_acked = t.token, updated_at = v_now
            FROM unnest(t_instance, v_held, t_token, t_execution, t_name, t_pinned,
                t_status_change, t_custom_status, t_last_event, t_cached_by)
                AS t (instance, held, token, execution, name, pinned, status_change, custom_status,
                    last_event, cached_by)
            WHERE t.held AND t.name IS NULL AND i.id = t.instance;
        END IF;

        WITH written AS (
            INSERT INTO @schema@.execution AS x (instance, number, status, output, pinned, completed_at)
            SELECT t.instance, t.execution, coalesce(t.status, 'Running'), t.output, t.pinned,
                CASE WHEN t.status IS NOT NULL THEN v_now END
            FROM unnest(t_instance, v_held, t_execution, t_status, t_output, t_pinned)
                AS t (instance, held, execution, status, output, pinned)
            WHERE t.held
            ON CONFLICT (instance, number) DO UPDATE SET
                status = CASE WHEN excluded.completed_at IS NULL THEN x.status ELSE excluded.status END,
                output = CASE WHEN excluded.completed_at IS NULL THEN x.output ELSE excluded.output END,
                completed_at = coalesce(excluded.completed_at, x.completed_at),
                pinned = coalesce(excluded.pinned, x.pinned)
            WHERE excluded.completed_at IS NOT NULL OR excluded.pinned IS NOT NULL
            RETURNING (x.xmax = 0) AS is_new
        )
        SELECT count(*) FILTER (WHERE is_new) INTO v_new_executions FROM written;

        INSERT INTO @schema@.event (instance, execution, number, data)
        SELECT t_instance[e.turn], t_execution[e.turn], e.number, e.data
        FROM unnest(e_turn, e_number, e_data) AS e (turn, number, data)
        WHERE v_held[e.turn];

        FOR v_key IN 1 .. cardinality(k_turn) LOOP
            CONTINUE WHEN NOT v_held[k_turn[v_key]];
            IF k_key[v_key] IS NOT NULL THEN
                INSERT INTO @schema@.kv_delta AS d (instance, key, value, updated_ms)
                VALUES (t_instance[k_turn[v_key]], k_key[v_key], k_value[v_key], k_updated_ms[v_key])
                ON CONFLICT (instance, key) DO UPDATE
                SET value = excluded.value, updated_ms = excluded.updated_ms;
            ELSE
                INSERT INTO @schema@.kv_delta AS d (instance, key, value, updated_ms)
                SELECT a.instance, a.key, NULL, k_updated_ms[v_key] FROM (
                    SELECT v.instance, v.key FROM @schema@.kv v WHERE v.instance = t_instance[k_turn[v_key]]
                    UNION
                    SELECT v.instance, v.key FROM @schema@.kv_delta v WHERE v.instance = t_instance[k_turn[v_key]]
                ) a
                ON CONFLICT (instance, key) DO UPDATE
                SET value = NULL, updated_ms = excluded.updated_ms;
            END IF;
        END LOOP;
        IF cardinality(v_ended_instances) > 0 THEN
            WITH merged AS (
                DELETE FROM @schema@.kv_delta d WHERE d.instance = ANY (v_ended_instances) RETURNING d.*
            ), written AS (
                INSERT INTO @schema@.kv AS v (instance, key, value, updated_ms)
                SELECT g.instance, g.key, g.value, g.updated_ms FROM merged g WHERE g.value IS NOT NULL
                ON CONFLICT (instance, key) DO UPDATE
                SET value = excluded.value, updated_ms = excluded.updated_ms
            )
            DELETE FROM @schema@.kv v USING merged g
            WHERE v.instance = g.instance AND v.key = g.key AND g.value IS NULL;
        END IF;
    END IF;

    IF cardinality(a_turn) > 0 THEN
        WITH inserted AS (
            INSERT INTO @schema@.activity (ready_at, instance, execution, number, session, tag, item)
            SELECT v_now, a.instance, a.execution, a.number, a.session, a.tag, a.item
            FROM unnest(a_turn, a_instance, a_execution, a_number, a_session, a_tag, a_item)
                WITH ORDINALITY AS a (turn, instance, execution, number, session, tag, item, ordinal)
            WHERE a.turn = 0 OR v_held[a.turn]
            ORDER BY a.ordinal
            RETURNING tag, session
        ), kind AS (
            SELECT k.tag, k.session IS NOT NULL AS has_session, s.owner, count(*)::integer AS count,
                (extract(epoch FROM min(s.locked_until) - v_now) * 1e6)::bigint AS ends_us
            FROM inserted k
            LEFT JOIN @schema@.session s ON s.id = k.session AND s.locked_until > v_now
            GROUP BY 1, 2, 3
        )
        SELECT array_agg(tag), array_agg(has_session), array_agg(owner), array_agg(count), array_agg(ends_us)
        INTO activity_tags, activity_has_session, activity_owners, activity_counts, session_ends_us FROM kind;
    END IF;

    -- After the new ones: an activity that is scheduled and cancelled in one turn never runs.
    IF cardinality(c_turn) > 0 THEN
        DELETE FROM @schema@.activity k
        USING unnest(c_turn, c_instance, c_execution, c_number) AS c (turn, instance, execution, number)
        WHERE v_held[c.turn] AND k.instance = c.instance AND k.execution = c.execution
            AND k.number = c.number;
    END IF;

    IF cardinality(m_change) > 0 THEN
        PERFORM @schema@.put_messages(array_agg(m.instance ORDER BY m.ordinal), array_agg(m.item ORDER BY m.ordinal),
            array_agg(CASE
                WHEN m.after_us IS NOT NULL THEN v_now + m.after_us * interval '1 microsecond'
                WHEN m.at_ms IS NOT NULL THEN to_timestamp(m.at_ms / 1000.0)
            END ORDER BY m.ordinal))
        FROM unnest(m_change, m_instance, m_item, m_after_us, m_at_ms)
            WITH ORDINALITY AS m (change, instance, item, after_us, at_ms, ordinal)
        WHERE m.change = 0 OR m.change > 0 AND v_held[m.change]
            OR m.change < 0 AND v_activity_held[-m.change];
    END IF;

    IF cardinality(v_held_instances) > 0 THEN
        DELETE FROM @schema@.message g USING @schema@.mailbox m
        WHERE m.instance = ANY (v_held_instances) AND g.instance = m.instance AND g.number <= m.leased_through
            AND (g.visible_at IS NULL OR g.visible_at <= m.leased_at);
        PERFORM @schema@.end_leases(v_held_instances, v_now);
        PERFORM @schema@.add_to_counters(v_new_instances, v_new_executions,
            (SELECT count(*) FROM unnest(e_turn) AS e (turn) WHERE v_held[e.turn]),
            v_completed, v_failed);
    END IF;

    SELECT count(*) FILTER (WHERE m.ready_at <= clock_timestamp()),
        array_agg((extract(epoch FROM m.ready_at - clock_timestamp()) * 1e6)::bigint)
            FILTER (WHERE m.ready_at > clock_timestamp() AND m.ready_at < 'infinity')
    INTO ready_mailboxes, due_us
    FROM @schema@.mailbox m WHERE m.instance = ANY (m_instance || v_held_instances) AND m.token IS NULL;
    RETURN NEXT;
END $$;

-- Ends the leases on mailboxes: each is ready when its earliest message is, and deleted without one.
CREATE FUNCTION @schema@.end_leases(p_instance text[], p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH remaining AS (
        SELECT g.instance, min(coalesce(g.visible_at, p_now)) AS ready_at
        FROM @schema@.message g WHERE g.instance = ANY (p_instance) GROUP BY g.instance
    ), updated AS (
        UPDATE @schema@.mailbox m SET token = NULL, leased_through = NULL, leased_at = NULL, ready_at = l.ready_at
        FROM remaining l WHERE m.instance = l.instance
    )
    DELETE FROM @schema@.mailbox m
    WHERE m.instance = ANY (p_instance) AND NOT EXISTS (SELECT FROM remaining l WHERE l.instance = m.instance);
END $$;
