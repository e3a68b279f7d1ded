-- Stream queries and their state.

-- Later values of the same key win.
CREATE FUNCTION wakeline.queue_stream_write(
    p_stream uuid[], p_partition bigint[], p_key text[], p_value text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH last AS (
        SELECT DISTINCT ON (u.stream, u.partition, u.key) u.*
        FROM unnest(p_stream, p_partition, p_key, p_value)
            WITH ORDINALITY AS u(stream, partition, key, value, item)
        ORDER BY u.stream, u.partition, u.key, u.item DESC
    ), written AS (
        INSERT INTO wakeline.queue_stream_state AS s (stream_id, partition_id, key, value, updated_at)
        SELECT l.stream, l.partition, l.key, l.value, clock_timestamp() FROM last l
        WHERE l.value IS NOT NULL
        ON CONFLICT (stream_id, partition_id, key)
            DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
    )
    DELETE FROM wakeline.queue_stream_state s USING last l
    WHERE l.value IS NULL AND s.stream_id = l.stream AND s.partition_id = l.partition
        AND s.key = l.key;
END $$;

CREATE FUNCTION wakeline.queue_stream_register(
    p_id uuid, p_name text, p_source text, p_sink text, p_hash text, p_reset boolean
) RETURNS TABLE (id uuid, is_new boolean, is_reset boolean, is_mismatch boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_stream wakeline.queue_stream;
BEGIN
    INSERT INTO wakeline.queue_stream (id, name, source_queue, sink_queue, config_hash, created_at)
    VALUES (p_id, p_name, p_source, p_sink, p_hash, clock_timestamp())
    ON CONFLICT (name) DO NOTHING;
    SELECT * INTO v_stream FROM wakeline.queue_stream s WHERE s.name = p_name FOR NO KEY UPDATE;
    id := v_stream.id;
    is_new := v_stream.id = p_id;
    is_mismatch := v_stream.config_hash <> p_hash AND NOT p_reset;
    is_reset := NOT is_new AND p_reset;
    IF is_reset THEN
        DELETE FROM wakeline.queue_stream_state s WHERE s.stream_id = v_stream.id;
    END IF;
    IF NOT is_mismatch THEN
        UPDATE wakeline.queue_stream s
        SET config_hash = p_hash, source_queue = p_source, sink_queue = p_sink
        WHERE s.id = v_stream.id;
    END IF;
    RETURN NEXT;
END $$;
