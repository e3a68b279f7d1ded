-- Reading histories, and deleting.

-- The history of each instance's latest execution. If it continues the version that the caller has
-- cached: the events after that; otherwise all.
CREATE FUNCTION @schema@.read_histories(
    p_instance text[], p_history boolean[], p_incarnation bigint[], p_execution bigint[],
    p_last bigint[], p_edits bigint[]
) RETURNS TABLE (
    incarnation bigint, execution bigint, last_event bigint, edits bigint, continues boolean,
    events text[], custom_status bytea, custom_status_version bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT i.incarnation, l.execution, i.last_event, i.edits, c.continues,
        CASE WHEN NOT p.history OR c.continues AND i.last_event = p.last THEN '{}' ELSE ARRAY(
            SELECT e.data FROM @schema@.event e
            WHERE e.instance = p.instance AND e.execution = l.execution
                AND e.number > CASE WHEN c.continues THEN p.last ELSE -1 END
            ORDER BY e.number) END,
        CASE WHEN NOT p.history THEN i.custom_status END, coalesce(i.custom_status_version, 0)
    FROM unnest(p_instance, p_history, p_incarnation, p_execution, p_last, p_edits)
        WITH ORDINALITY AS p (instance, history, incarnation, execution, last, edits, ordinal)
    LEFT JOIN @schema@.instance i ON i.id = p.instance
    CROSS JOIN LATERAL (
        SELECT coalesce(i.execution, (
            SELECT max(x.number) FROM @schema@.execution x WHERE x.instance = p.instance), 1) AS execution
    ) l
    CROSS JOIN LATERAL (
        SELECT coalesce((i.incarnation, i.execution, i.edits) = (p.incarnation, p.execution, p.edits)
            AND i.last_event >= p.last, false) AS continues
    ) c
    ORDER BY p.ordinal;
END $$;

-- Appends events outside a turn, for tests and repairs; events that exist are kept.
CREATE FUNCTION @schema@.append_events(p_instance text, p_execution bigint, p_number bigint[], p_data text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_added bigint;
BEGIN
    INSERT INTO @schema@.event (instance, execution, number, data)
    SELECT p_instance, p_execution, e.number, e.data FROM unnest(p_number, p_data) AS e (number, data)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_added = ROW_COUNT;
    UPDATE @schema@.instance i SET cached_by = NULL, edits = i.edits + 1,
        last_event = greatest(i.last_event, (SELECT max(n) FROM unnest(p_number) AS n))
    WHERE i.id = p_instance AND i.execution = p_execution;
    PERFORM @schema@.add_to_counters(0, 0, v_added, 0, 0);
END $$;

-- Deletes instances and everything of theirs. If one of them runs (unless forced), or if a child
-- would be left behind, deletes nothing and names that one.
CREATE FUNCTION @schema@.delete_instances(p_ids text[], p_force boolean)
RETURNS TABLE (running text, orphan text, instances bigint, executions bigint, events bigint, messages bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_messages bigint;
    v_activities bigint;
    v_completed bigint;
    v_failed bigint;
BEGIN
    -- From here on the instances cannot be fetched or sent to; their leases end.
    PERFORM FROM @schema@.mailbox m WHERE m.instance = ANY (p_ids) ORDER BY m.instance FOR NO KEY UPDATE;
    PERFORM FROM @schema@.instance i WHERE i.id = ANY (p_ids) ORDER BY i.id FOR NO KEY UPDATE;
    IF NOT p_force THEN
        SELECT i.id INTO running FROM @schema@.instance i
        JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
        WHERE i.id = ANY (p_ids) AND x.status = 'Running' LIMIT 1;
    END IF;
    SELECT i.id INTO orphan FROM @schema@.instance i
    WHERE i.parent = ANY (p_ids) AND i.id <> ALL (p_ids) LIMIT 1;
    IF running IS NOT NULL OR orphan IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT count(*) FILTER (WHERE x.status = 'Completed'), count(*) FILTER (WHERE x.status = 'Failed')
    INTO v_completed, v_failed
    FROM @schema@.instance i JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
    WHERE i.id = ANY (p_ids);
    DELETE FROM @schema@.mailbox m WHERE m.instance = ANY (p_ids);
    DELETE FROM @schema@.message g WHERE g.instance = ANY (p_ids);
    GET DIAGNOSTICS v_messages = ROW_COUNT;
    DELETE FROM @schema@.activity t WHERE t.instance = ANY (p_ids);
    GET DIAGNOSTICS v_activities = ROW_COUNT;
    messages := v_messages + v_activities;
    DELETE FROM @schema@.event e WHERE e.instance = ANY (p_ids);
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM @schema@.execution x WHERE x.instance = ANY (p_ids);
    GET DIAGNOSTICS executions = ROW_COUNT;
    DELETE FROM @schema@.kv v WHERE v.instance = ANY (p_ids);
    DELETE FROM @schema@.kv_delta v WHERE v.instance = ANY (p_ids);
    DELETE FROM @schema@.unreadable_activity v WHERE v.instance = ANY (p_ids);
    DELETE FROM @schema@.instance i WHERE i.id = ANY (p_ids);
    GET DIAGNOSTICS instances = ROW_COUNT;
    PERFORM @schema@.add_to_counters(-instances, -executions, -events, -v_completed, -v_failed);
    RETURN NEXT;
END $$;

-- Deletes finished executions of an instance and their events, never the current execution.
CREATE FUNCTION @schema@.prune_executions(p_instance text, p_keep bigint, p_before_ms bigint)
RETURNS TABLE (executions bigint, events bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_current bigint;
    v_prunable bigint[];
BEGIN
    SELECT i.execution INTO v_current FROM @schema@.instance i WHERE i.id = p_instance;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_prunable := ARRAY(
        SELECT x.number FROM @schema@.execution x
        WHERE x.instance = p_instance AND x.number <> v_current AND x.status <> 'Running'
            AND (p_before_ms IS NULL OR x.completed_at < to_timestamp(p_before_ms / 1000.0))
            AND (p_keep IS NULL OR x.number NOT IN (
                SELECT y.number FROM @schema@.execution y WHERE y.instance = p_instance
                ORDER BY y.number DESC LIMIT p_keep)));
    DELETE FROM @schema@.event e WHERE e.instance = p_instance AND e.execution = ANY (v_prunable);
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM @schema@.execution x WHERE x.instance = p_instance AND x.number = ANY (v_prunable);
    GET DIAGNOSTICS executions = ROW_COUNT;
    PERFORM @schema@.add_to_counters(0, -executions, -events, 0, 0);
    RETURN NEXT;
END $$;
