-- For applications that push in their own transaction: `SELECT wakeline.push('orders', '{"n":1}')`.
--
-- A pushed message waits in the outbox until the transaction commits. Only then it gets its position,
-- so that an application which takes its time blocks nobody, and the order is that of the commits.

CREATE TABLE wakeline.queue_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    queue text NOT NULL,
    partition text NOT NULL,
    transaction_id text,
    entry text NOT NULL
);
CREATE INDEX queue_outbox_xid ON wakeline.queue_outbox (xid);

-- Gives the messages of this transaction their positions, in the order of the pushes. Runs once per
-- transaction, at its end, and takes its locks in the same order as the server.
CREATE FUNCTION wakeline.queue_deliver_outbox() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Messages of a segment, as in `segment.rs`.
    c_messages CONSTANT bigint := 128;
    v_now timestamptz;
    v_queues text[];
    v_partitions text[];
    v_refused text;
    v_channel text;
BEGIN
    SELECT array_agg(o.queue), array_agg(o.partition) INTO v_queues, v_partitions
    FROM (
        SELECT DISTINCT o.queue, o.partition FROM wakeline.queue_outbox o
        WHERE o.xid = pg_current_xact_id()) o;
    IF v_queues IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT 'pushes are paused for maintenance' INTO v_refused
    FROM wakeline.queue_mode m WHERE m.push_paused;
    IF v_refused IS NULL THEN
        SELECT format('queue %s keeps its messages sealed: push to it through the server', q.name)
        INTO v_refused FROM wakeline.queue q WHERE q.name = ANY (v_queues) AND q.is_sealed;
    END IF;
    IF v_refused IS NOT NULL THEN
        RAISE EXCEPTION 'wakeline.push: %', v_refused USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;

    CREATE TEMP TABLE IF NOT EXISTS wakeline_outbox_delivery (
        partition_id bigint, item bigint, transaction_id text, entry text, position bigint
    ) ON COMMIT DELETE ROWS;
    DELETE FROM pg_temp.wakeline_outbox_delivery;
    PERFORM wakeline.queue_find_or_make_partitions(v_queues, v_partitions);
    WITH taken AS (
        DELETE FROM wakeline.queue_outbox o WHERE o.xid = pg_current_xact_id() RETURNING o.*
    )
    INSERT INTO pg_temp.wakeline_outbox_delivery
    SELECT p.id, t.id, t.transaction_id, t.entry, NULL FROM taken t
    CROSS JOIN LATERAL (
        SELECT p.id FROM wakeline.queue_partition p
        WHERE p.queue_id = (SELECT q.id FROM wakeline.queue q WHERE q.name = t.queue)
            AND p.name = t.partition) p;
    PERFORM FROM wakeline.queue_partition p
    WHERE p.id IN (SELECT o.partition_id FROM pg_temp.wakeline_outbox_delivery o) ORDER BY p.id FOR NO KEY UPDATE;
    v_now := clock_timestamp();

    -- A transaction id is stored once.
    DELETE FROM pg_temp.wakeline_outbox_delivery o WHERE o.transaction_id IS NOT NULL AND (
        EXISTS (SELECT FROM wakeline.queue_transaction t
            WHERE t.partition_id = o.partition_id AND t.hash = wakeline.queue_hash(o.transaction_id))
        OR EXISTS (SELECT FROM pg_temp.wakeline_outbox_delivery e
            WHERE e.partition_id = o.partition_id AND e.transaction_id = o.transaction_id
                AND e.item < o.item));
    SELECT format('queue %s is full (maxSize %s)', q.name, q.max_size) INTO v_refused
    FROM wakeline.queue q
    WHERE q.name = ANY (v_queues) AND q.max_size > 0 AND q.max_size < wakeline.queue_size(q.id) + (
        SELECT count(*) FROM pg_temp.wakeline_outbox_delivery o
        JOIN wakeline.queue_partition p ON p.id = o.partition_id WHERE p.queue_id = q.id);
    IF v_refused IS NOT NULL THEN
        RAISE EXCEPTION 'wakeline.push: %', v_refused USING ERRCODE = 'program_limit_exceeded';
    END IF;
    UPDATE pg_temp.wakeline_outbox_delivery o SET position = n.position FROM (
        SELECT o.item, p.next_position + row_number() OVER (
            PARTITION BY o.partition_id ORDER BY o.item) - 1 AS position
        FROM pg_temp.wakeline_outbox_delivery o JOIN wakeline.queue_partition p ON p.id = o.partition_id) n
    WHERE n.item = o.item;

    INSERT INTO wakeline.queue_segment (partition_id, first, last, created_at, body)
    SELECT o.partition_id, min(o.position), max(o.position), greatest(min(p.last_at), v_now),
        '[' || string_agg(o.entry, ',' ORDER BY o.position) || ']'
    FROM pg_temp.wakeline_outbox_delivery o JOIN wakeline.queue_partition p ON p.id = o.partition_id
    GROUP BY o.partition_id, o.position / c_messages;
    INSERT INTO wakeline.queue_transaction (partition_id, hash, position)
    SELECT o.partition_id, wakeline.queue_hash(o.transaction_id), o.position
    FROM pg_temp.wakeline_outbox_delivery o WHERE o.transaction_id IS NOT NULL;
    UPDATE wakeline.queue_partition p
    SET next_position = n.next, last_at = greatest(p.last_at, v_now)
    FROM (SELECT o.partition_id, max(o.position) + 1 AS next FROM pg_temp.wakeline_outbox_delivery o GROUP BY 1) n
    WHERE p.id = n.partition_id;
    UPDATE wakeline.queue_cursor c SET ready_at = v_now
    WHERE c.partition_id IN (SELECT o.partition_id FROM pg_temp.wakeline_outbox_delivery o)
        AND c.ready_at IS NULL;
    DELETE FROM pg_temp.wakeline_outbox_delivery;

    SELECT m.channel INTO v_channel FROM wakeline.queue_mode m;
    -- Every node rechecks its waiting pops.
    PERFORM pg_notify(v_channel, '{"from":0,"doors":["queue"]}');
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER queue_outbox_deliver AFTER INSERT ON wakeline.queue_outbox
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wakeline.queue_deliver_outbox();

-- Pushes a message when the transaction commits. Gives its transaction id.
CREATE FUNCTION wakeline.push(
    queue text, payload json, partition text DEFAULT 'Default',
    transaction_id text DEFAULT NULL, trace_id uuid DEFAULT NULL
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v_transaction text := coalesce(push.transaction_id, gen_random_uuid()::text);
    v_name text;
    v_value text;
BEGIN
    FOR v_name, v_value IN VALUES ('queue', push.queue), ('partition', push.partition),
        ('transaction_id', v_transaction)
    LOOP
        IF v_value IS NULL OR v_value = '' THEN
            RAISE EXCEPTION 'wakeline.push: % must not be empty', v_name
            USING ERRCODE = 'invalid_parameter_value';
        ELSIF length(v_value) > 255 THEN
            RAISE EXCEPTION 'wakeline.push: % is longer than 255 characters', v_name
            USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END LOOP;
    INSERT INTO wakeline.queue_outbox (queue, partition, transaction_id, entry)
    VALUES (push.queue, push.partition, v_transaction,
        '{"p":' || coalesce(push.payload::text, 'null') || ',"t":' || to_json(v_transaction)::text
        || coalesce(',"r":"' || push.trace_id || '"', '') || '}');
    RETURN v_transaction;
END $$;
