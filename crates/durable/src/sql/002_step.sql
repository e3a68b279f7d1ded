-- What is written: turns of orchestrations, ends of activities, new messages and activities, those
-- of many callers in one statement and one commit. Each caller is told by itself whether its lease
-- still held; whoever's did not has changed nothing.
--
-- Locks are taken in this order: mailboxes by name, tasks, instances, the tally.
--
-- All in PL/pgSQL: the server plans its statements once per session, those of SQL functions anew
-- for every call.

-- Puts messages into mailboxes. `p_visible`: from when on each can be taken; NULL is at once.
CREATE FUNCTION @schema@.put(p_instance text[], p_item text[], p_visible timestamptz[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_next bigint;
BEGIN
    -- The usual case by itself: starting up the large statement would take longer than doing this.
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
    WITH arriving AS (
        SELECT a.instance, a.item, a.visible_at,
            row_number() OVER (PARTITION BY a.instance ORDER BY a.place) AS place
        FROM unnest(p_instance, p_item, p_visible) WITH ORDINALITY AS a (instance, item, visible_at, place)
    ), box AS (
        INSERT INTO @schema@.mailbox AS m (instance, next, ready_at)
        SELECT a.instance, count(*), min(coalesce(a.visible_at, clock_timestamp()))
        FROM arriving a GROUP BY a.instance ORDER BY a.instance
        ON CONFLICT (instance) DO UPDATE SET
            next = m.next + excluded.next,
            ready_at = CASE WHEN m.token IS NULL THEN least(m.ready_at, excluded.ready_at)
                ELSE m.ready_at END
        RETURNING m.instance, m.next
    )
    INSERT INTO @schema@.message (instance, number, item, visible_at)
    SELECT a.instance,
        b.next - (SELECT count(*) FROM arriving c WHERE c.instance = a.instance) + a.place - 1,
        a.item, a.visible_at
    FROM arriving a JOIN box b ON b.instance = a.instance;
END $$;

CREATE FUNCTION @schema@.step(
    -- Turns. `t_again`: the answer to the same turn was lost before. `t_says`: 1 sets the custom
    -- status, 2 clears it. `t_cached`: the process that has the whole history afterwards.
    -- `t_incarnation`: for an instance that is new.
    t_instance text[], t_token uuid[], t_again boolean[], t_execution bigint[], t_name text[],
    t_version text[], t_parent text[], t_pinned bigint[], t_status text[], t_output bytea[],
    t_says smallint[], t_custom bytea[], t_last bigint[], t_cached bigint[], t_incarnation bigint[],
    -- Events, by turn.
    e_turn integer[], e_number bigint[], e_data text[],
    -- Changes of values, by turn and in their order. No key: all keys. No value: removed.
    k_turn integer[], k_key text[], k_value bytea[], k_ms bigint[],
    -- Ends of activities.
    f_task bigint[], f_token uuid[], f_again boolean[],
    -- Messages: of a turn (its number), of an end (minus its number), or of nobody (0). `m_after`
    -- in microseconds from now, `m_at_ms` since 1970.
    m_by integer[], m_instance text[], m_item text[], m_after bigint[], m_at_ms bigint[],
    -- New activities, and activities that are called off.
    w_by integer[], w_instance text[], w_execution bigint[], w_activity bigint[], w_session text[],
    w_tag text[], w_item text[],
    c_turn integer[], c_instance text[], c_execution bigint[], c_activity bigint[]
) RETURNS TABLE (
    turns boolean[], finishes boolean[],
    -- Mailboxes that can be taken now; when others can, in microseconds.
    ready integer, dues bigint[],
    -- New activities by tag, whether they belong to a session, who holds it, and when the first of
    -- these sessions ends, in microseconds.
    task_tags text[], task_sessions boolean[], task_owners text[], task_counts integer[],
    task_ends bigint[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    v_now timestamptz;
    v_held boolean[];
    v_deleted bigint[];
    v_finished boolean[];
    v_mine text[];
    v_ended text[];
    v_new_executions bigint := 0;
    v_new_instances bigint := 0;
    v_completed bigint := 0;
    v_failed bigint := 0;
    v_key integer;
    v_named integer;
BEGIN
    PERFORM FROM @schema@.mailbox m WHERE m.instance = ANY (t_instance || m_instance)
    ORDER BY m.instance FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    turns := '{}';
    finishes := '{}';

    IF cardinality(t_instance) = 1 THEN
        v_held := ARRAY[EXISTS (SELECT FROM @schema@.mailbox m
            WHERE m.instance = t_instance[1] AND m.token = t_token[1] AND m.ready_at > v_now)];
        turns := v_held;
        IF t_again[1] AND NOT v_held[1] THEN
            turns := ARRAY[EXISTS (SELECT FROM @schema@.instance i
                WHERE i.id = t_instance[1] AND i.acked = t_token[1])];
        END IF;
        v_mine := CASE WHEN v_held[1] THEN t_instance ELSE '{}' END;
    ELSIF cardinality(t_instance) > 1 THEN
        SELECT array_agg(h.held ORDER BY h.place), array_agg(h.known OR h.held ORDER BY h.place),
            coalesce(array_agg(h.instance) FILTER (WHERE h.held), '{}')
        INTO v_held, turns, v_mine
        FROM (
            SELECT t.place, t.instance,
                coalesce(m.token = t.token AND m.ready_at > v_now, false)
                    AND row_number() OVER (PARTITION BY t.instance, t.token ORDER BY t.place) = 1 AS held,
                t.again AND coalesce(i.acked = t.token, false) AS known
            FROM unnest(t_instance, t_token, t_again) WITH ORDINALITY AS t (instance, token, again, place)
            LEFT JOIN @schema@.mailbox m ON m.instance = t.instance
            LEFT JOIN @schema@.instance i ON i.id = t.instance
        ) h;
    END IF;

    IF cardinality(f_task) > 0 THEN
        WITH gone AS (
            DELETE FROM @schema@.task k USING unnest(f_task, f_token) AS f (task, token)
            WHERE k.id = f.task AND k.token = f.token AND k.ready_at > v_now
            RETURNING k.id, k.session
        ), active AS (
            UPDATE @schema@.session s SET active_at = v_now FROM gone
            WHERE s.id = gone.session AND s.locked_until > v_now
        )
        SELECT coalesce(array_agg(id), '{}') INTO v_deleted FROM gone;
        SELECT array_agg(f.task = ANY (v_deleted) AND f.turn = 1 ORDER BY f.place),
            -- A lost answer and no row: it was done, or it is nobody's any more. With the row still
            -- there the lease is another's.
            array_agg(f.task = ANY (v_deleted) AND f.turn = 1
                OR f.again AND NOT EXISTS (SELECT FROM @schema@.task k WHERE k.id = f.task)
                ORDER BY f.place)
        INTO v_finished, finishes
        FROM (
            SELECT u.*, row_number() OVER (PARTITION BY u.task ORDER BY u.place) AS turn
            FROM unnest(f_task, f_again) WITH ORDINALITY AS u (task, again, place)
        ) f;
    END IF;

    IF cardinality(v_mine) > 0 THEN
        v_ended := '{}';
        IF cardinality(array_remove(t_status, NULL)) > 0 THEN
            v_ended := ARRAY(
                SELECT t.instance FROM unnest(t_instance, v_held, t_status) AS t (instance, held, status)
                WHERE t.held AND t.status IS NOT NULL);
            SELECT count(*) FILTER (WHERE t.status = 'Completed') - count(*) FILTER (WHERE x.status = 'Completed'),
                count(*) FILTER (WHERE t.status = 'Failed') - count(*) FILTER (WHERE x.status = 'Failed')
            INTO v_completed, v_failed
            FROM unnest(t_instance, v_held, t_status, t_execution) AS t (instance, held, status, execution)
            LEFT JOIN @schema@.execution x ON x.instance = t.instance AND x.number = t.execution
            WHERE t.held AND t.status IS NOT NULL;
        END IF;

        -- A turn that names its instance makes it, if need be.
        v_named := cardinality(array_remove(t_name, NULL));
        IF v_named > 0 THEN
            WITH named AS (
                INSERT INTO @schema@.instance AS i (id, incarnation, name, version, execution, parent, pinned,
                    last_event, cached_by, acked, custom_status, custom_status_version)
                SELECT t.instance, t.incarnation, t.name, t.version, t.execution, t.parent, t.pinned,
                    coalesce(t.last, 0), t.cached, t.token, t.custom, sign(t.says)
                FROM unnest(t_instance, v_held, t_token, t_execution, t_name, t_version, t_parent, t_pinned,
                    t_says, t_custom, t_last, t_cached, t_incarnation)
                    AS t (instance, held, token, execution, name, version, parent, pinned,
                        says, custom, last, cached, incarnation)
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
                    cached_by = excluded.cached_by, acked = excluded.acked, updated_at = v_now
                RETURNING (i.xmax = 0) AS is_new
            )
            SELECT count(*) FILTER (WHERE is_new) INTO v_new_instances FROM named;
        END IF;

        IF v_named < cardinality(t_name) THEN
            UPDATE @schema@.instance i SET
                execution = greatest(i.execution, t.execution),
                pinned = CASE WHEN t.execution > i.execution THEN t.pinned
                    WHEN t.execution = i.execution THEN coalesce(t.pinned, i.pinned) ELSE i.pinned END,
                last_event = CASE WHEN t.execution > i.execution THEN coalesce(t.last, 0)
                    WHEN t.execution = i.execution THEN greatest(coalesce(t.last, 0), i.last_event)
                    ELSE i.last_event END,
                custom_status = CASE WHEN t.says > 0 THEN t.custom ELSE i.custom_status END,
                custom_status_version = i.custom_status_version + sign(t.says)::bigint,
                cached_by = t.cached, acked = t.token, updated_at = v_now
            FROM unnest(t_instance, v_held, t_token, t_execution, t_name, t_pinned,
                t_says, t_custom, t_last, t_cached)
                AS t (instance, held, token, execution, name, pinned, says, custom, last, cached)
            WHERE t.held AND t.name IS NULL AND i.id = t.instance;
        END IF;

        WITH run AS (
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
        SELECT count(*) FILTER (WHERE is_new) INTO v_new_executions FROM run;

        INSERT INTO @schema@.event (instance, execution, number, data)
        SELECT t_instance[e.turn], t_execution[e.turn], e.number, e.data
        FROM unnest(e_turn, e_number, e_data) AS e (turn, number, data)
        WHERE v_held[e.turn];

        FOR v_key IN 1 .. cardinality(k_turn) LOOP
            CONTINUE WHEN NOT v_held[k_turn[v_key]];
            IF k_key[v_key] IS NOT NULL THEN
                INSERT INTO @schema@.kv_delta AS d (instance, key, value, updated_ms)
                VALUES (t_instance[k_turn[v_key]], k_key[v_key], k_value[v_key], k_ms[v_key])
                ON CONFLICT (instance, key) DO UPDATE
                SET value = excluded.value, updated_ms = excluded.updated_ms;
            ELSE
                INSERT INTO @schema@.kv_delta AS d (instance, key, value, updated_ms)
                SELECT a.instance, a.key, NULL, k_ms[v_key] FROM (
                    SELECT v.instance, v.key FROM @schema@.kv v WHERE v.instance = t_instance[k_turn[v_key]]
                    UNION
                    SELECT v.instance, v.key FROM @schema@.kv_delta v WHERE v.instance = t_instance[k_turn[v_key]]
                ) a
                ON CONFLICT (instance, key) DO UPDATE
                SET value = NULL, updated_ms = excluded.updated_ms;
            END IF;
        END LOOP;
        IF cardinality(v_ended) > 0 THEN
            WITH gone AS (
                DELETE FROM @schema@.kv_delta d WHERE d.instance = ANY (v_ended) RETURNING d.*
            ), kept AS (
                INSERT INTO @schema@.kv AS v (instance, key, value, updated_ms)
                SELECT g.instance, g.key, g.value, g.updated_ms FROM gone g WHERE g.value IS NOT NULL
                ON CONFLICT (instance, key) DO UPDATE
                SET value = excluded.value, updated_ms = excluded.updated_ms
            )
            DELETE FROM @schema@.kv v USING gone g
            WHERE v.instance = g.instance AND v.key = g.key AND g.value IS NULL;
        END IF;
    END IF;

    IF cardinality(w_by) > 0 THEN
        WITH made AS (
            INSERT INTO @schema@.task (ready_at, instance, execution, activity, session, tag, item)
            SELECT v_now, w.instance, w.execution, w.activity, w.session, w.tag, w.item
            FROM unnest(w_by, w_instance, w_execution, w_activity, w_session, w_tag, w_item)
                WITH ORDINALITY AS w (by, instance, execution, activity, session, tag, item, place)
            WHERE w.by = 0 OR v_held[w.by]
            ORDER BY w.place
            RETURNING tag, session
        ), kind AS (
            SELECT k.tag, k.session IS NOT NULL AS has_session, s.owner, count(*)::integer AS count,
                (extract(epoch FROM min(s.locked_until) - v_now) * 1e6)::bigint AS ends
            FROM made k
            LEFT JOIN @schema@.session s ON s.id = k.session AND s.locked_until > v_now
            GROUP BY 1, 2, 3
        )
        SELECT array_agg(tag), array_agg(has_session), array_agg(owner), array_agg(count), array_agg(ends)
        INTO task_tags, task_sessions, task_owners, task_counts, task_ends FROM kind;
    END IF;

    -- After the new ones: an activity that was asked for and called off in one turn is never run.
    IF cardinality(c_turn) > 0 THEN
        DELETE FROM @schema@.task k
        USING unnest(c_turn, c_instance, c_execution, c_activity) AS c (turn, instance, execution, activity)
        WHERE v_held[c.turn] AND k.instance = c.instance AND k.execution = c.execution
            AND k.activity = c.activity;
    END IF;

    IF cardinality(m_by) > 0 THEN
        PERFORM @schema@.put(array_agg(m.instance ORDER BY m.place), array_agg(m.item ORDER BY m.place),
            array_agg(CASE
                WHEN m.after IS NOT NULL THEN v_now + m.after * interval '1 microsecond'
                WHEN m.at_ms IS NOT NULL THEN to_timestamp(m.at_ms / 1000.0)
            END ORDER BY m.place))
        FROM unnest(m_by, m_instance, m_item, m_after, m_at_ms)
            WITH ORDINALITY AS m (by, instance, item, after, at_ms, place)
        WHERE m.by = 0 OR m.by > 0 AND v_held[m.by] OR m.by < 0 AND v_finished[-m.by];
    END IF;

    IF cardinality(v_mine) > 0 THEN
        DELETE FROM @schema@.message g USING @schema@.mailbox m
        WHERE m.instance = ANY (v_mine) AND g.instance = m.instance AND g.number <= m.taken_through
            AND (g.visible_at IS NULL OR g.visible_at <= m.taken_at);
        PERFORM @schema@.release(v_mine, v_now);
        PERFORM @schema@.count_up(v_new_instances, v_new_executions,
            (SELECT count(*) FROM unnest(e_turn) AS e (turn) WHERE v_held[e.turn]),
            v_completed, v_failed);
    END IF;

    SELECT count(*) FILTER (WHERE m.ready_at <= clock_timestamp()),
        array_agg((extract(epoch FROM m.ready_at - clock_timestamp()) * 1e6)::bigint)
            FILTER (WHERE m.ready_at > clock_timestamp() AND m.ready_at < 'infinity')
    INTO ready, dues
    FROM @schema@.mailbox m WHERE m.instance = ANY (m_instance || v_mine) AND m.token IS NULL;
    RETURN NEXT;
END $$;

-- Ends the leases on mailboxes: they are ready when their earliest message is, or gone.
CREATE FUNCTION @schema@.release(p_instance text[], p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH left_over AS (
        SELECT g.instance, min(coalesce(g.visible_at, p_now)) AS ready_at
        FROM @schema@.message g WHERE g.instance = ANY (p_instance) GROUP BY g.instance
    ), kept AS (
        UPDATE @schema@.mailbox m SET token = NULL, taken_through = NULL, taken_at = NULL, ready_at = l.ready_at
        FROM left_over l WHERE m.instance = l.instance
    )
    DELETE FROM @schema@.mailbox m
    WHERE m.instance = ANY (p_instance) AND NOT EXISTS (SELECT FROM left_over l WHERE l.instance = m.instance);
END $$;
