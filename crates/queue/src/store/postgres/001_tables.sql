-- The queue door's tables.
--
-- Messages are appended, many to a row (a segment), and never updated. What changes are small
-- rows: the partition (where the next message goes) and the cursor (how far a group has read, and
-- when it can be claimed).
--
-- A partition's messages are positions first_position .. next_position - 1 without a gap: only the
-- oldest are ever swept. A message that failed, is dead for a group or was deleted has a flag beside
-- it.
--
-- Where two indexes begin with the same column, one of them has it as `column + 0`: on a database
-- without statistics the planner thinks both as good, and a wrong choice reads a whole queue.
-- Written like this, each statement has one index that fits.

CREATE TABLE wakeline.queue (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL UNIQUE,
    namespace text NOT NULL,
    task text NOT NULL,
    -- How many partitions there are: the ordinal of the newest.
    partitions bigint NOT NULL DEFAULT 0,
    -- A push creates a queue with these defaults of the options. They are those of `options.rs`, which
    -- a test compares.
    -- NULL: the server's default.
    lease_ms bigint,
    retry_limit integer NOT NULL DEFAULT 3,
    -- How long a failed message is held back.
    retry_delay_ms bigint NOT NULL DEFAULT 0,
    -- Whether a message that fails too often is kept as a dead letter, or dropped.
    keeps_dead_letters boolean NOT NULL DEFAULT true,
    priority integer NOT NULL DEFAULT 0,
    delay_ms bigint NOT NULL DEFAULT 0,
    window_ms bigint NOT NULL DEFAULT 0,
    -- 0: no limit.
    max_size bigint NOT NULL DEFAULT 0,
    -- Older messages are not delivered any more; NULL: no limit.
    max_age_ms bigint,
    -- Whether the maximum age is how long a message may wait, and not how long it is retained.
    age_limits_waiting boolean NOT NULL DEFAULT false,
    -- Messages that every group has consumed are swept when they are older; NULL: kept.
    completed_retention_ms bigint,
    is_sealed boolean NOT NULL DEFAULT false,
    -- As the caller gave them, for lists.
    options jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX queue_namespace ON wakeline.queue (namespace);
CREATE INDEX queue_task ON wakeline.queue (task);
CREATE INDEX queue_swept ON wakeline.queue (id) WHERE max_age_ms IS NOT NULL OR completed_retention_ms IS NOT NULL;

CREATE TABLE wakeline.queue_partition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id bigint NOT NULL,
    name text NOT NULL,
    -- Numbered within the queue in the order of commit, so that one number says which partitions a
    -- group has no cursor in yet.
    ordinal bigint NOT NULL,
    first_position bigint NOT NULL DEFAULT 0,
    -- The order of messages is given here, under this row's lock, in the transaction that commits
    -- them: no message can appear behind a reader.
    next_position bigint NOT NULL DEFAULT 0,
    -- When the newest message came. Times within a partition never go back.
    last_at timestamptz NOT NULL DEFAULT '-infinity',
    -- No message at or after this position was deleted as a single message.
    deletions_end bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (queue_id, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

CREATE UNIQUE INDEX queue_partition_ordinal
    ON wakeline.queue_partition ((queue_id + 0), ordinal);

CREATE TABLE wakeline.queue_segment (
    partition_id bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    created_at timestamptz NOT NULL,
    -- A retried dead letter is for its group only.
    only_group bigint,
    -- A JSON array with an object per message: p payload, t transaction id, r trace id, s producer,
    -- e whether the payload is sealed.
    body text NOT NULL,
    PRIMARY KEY (partition_id, last)
) WITH (toast_tuple_target = 8160);
-- Compressing costs more than it saves here: payloads are small or compressed already.
ALTER TABLE wakeline.queue_segment ALTER COLUMN body SET STORAGE EXTERNAL;

-- The transaction ids that producers gave. A message without one has its own id, which contains its
-- position.
CREATE TABLE wakeline.queue_transaction (
    partition_id bigint NOT NULL,
    hash uuid NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (partition_id, hash)
);

CREATE TABLE wakeline.queue_group (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id bigint NOT NULL,
    name text NOT NULL,
    -- Of the partitions that are older than the group: the ordinal of the last one where the group has
    -- a cursor. Newer partitions get their cursors when they are created.
    frontier bigint NOT NULL DEFAULT 0,
    frontier_end bigint NOT NULL DEFAULT 0,
    -- Where the group starts in those: with everything, or with messages of this time or later.
    begin_at timestamptz,
    -- How the start was given: all, new or timestamp.
    mode text NOT NULL DEFAULT 'all',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (queue_id, name)
);
CREATE INDEX queue_group_name ON wakeline.queue_group (name);

-- Where a group that pops by namespace or task starts in queues that it does not know yet.
CREATE TABLE wakeline.queue_subscription (
    namespace text NOT NULL,
    task text NOT NULL,
    group_name text NOT NULL,
    begin_at timestamptz,
    mode text NOT NULL,
    PRIMARY KEY (group_name, namespace, task)
);

CREATE TABLE wakeline.queue_cursor (
    partition_id bigint NOT NULL,
    group_id bigint NOT NULL,
    -- The next message to be consumed.
    position bigint NOT NULL DEFAULT 0,
    -- When it can be claimed: NULL while there is nothing to claim, in the future while it is
    -- leased or held back. One index over this column answers both "what is ready" and "when is
    -- the next". It becomes NULL only under a lock on the partition, and a push, which has that
    -- lock, makes it a time: a push and a reader that has caught up cannot miss one another.
    ready_at timestamptz,
    lease_id uuid,
    -- The end of the leased batch.
    leased_to bigint,
    -- The last lease that a nack ended: late acknowledgements of the same batch are answered with
    -- that.
    nacked_lease uuid,
    -- Where earlier deliveries ended that reached beyond the cursor, separated by commas: how often
    -- a message was delivered.
    deliveries text,
    -- No message at or after this position has a flag of the group.
    flags_end bigint NOT NULL DEFAULT 0,
    consumed bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (partition_id, group_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX queue_cursor_ready ON wakeline.queue_cursor (group_id, ready_at)
    WHERE ready_at IS NOT NULL;
CREATE INDEX queue_cursor_lease ON wakeline.queue_cursor (lease_id) WHERE lease_id IS NOT NULL;

CREATE TABLE wakeline.queue_message_flag (
    partition_id bigint NOT NULL,
    -- 0: for every group.
    group_id bigint NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL,
    is_dead boolean NOT NULL,
    PRIMARY KEY (partition_id, group_id, position)
);

CREATE TABLE wakeline.queue_dead_letter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id bigint NOT NULL,
    partition_id bigint NOT NULL,
    group_name text NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL,
    error text,
    failed_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    transaction_id text NOT NULL,
    -- As in a segment.
    message text NOT NULL,
    UNIQUE (partition_id, position, group_name)
);
CREATE INDEX queue_dead_letter_failed ON wakeline.queue_dead_letter (queue_id, failed_at, id);

-- Deleted queues whose partitions and messages have still to be swept.
CREATE TABLE wakeline.queue_deleted (
    queue_id bigint PRIMARY KEY
);

-- Switches for all nodes.
CREATE TABLE wakeline.queue_mode (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    -- Where the nodes listen for pushes by SQL.
    channel text NOT NULL DEFAULT 'wakeline',
    push_paused boolean NOT NULL DEFAULT false,
    pop_paused boolean NOT NULL DEFAULT false,
    -- The fingerprint of the key that seals messages. Servers without this key seal none.
    key_fingerprint bigint
);
INSERT INTO wakeline.queue_mode DEFAULT VALUES;

CREATE TABLE wakeline.queue_trace (
    id uuid PRIMARY KEY,
    partition_id bigint NOT NULL,
    transaction_id text NOT NULL,
    group_name text NOT NULL,
    event text NOT NULL,
    data text NOT NULL,
    worker text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX queue_trace_message
    ON wakeline.queue_trace (partition_id, transaction_id, created_at);
CREATE TABLE wakeline.queue_trace_name (
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    trace_id uuid NOT NULL,
    PRIMARY KEY (name, created_at, trace_id)
);
CREATE INDEX queue_trace_name_trace ON wakeline.queue_trace_name (trace_id);

CREATE TABLE wakeline.queue_stream (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    source_queue text NOT NULL,
    sink_queue text,
    config_hash text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE TABLE wakeline.queue_stream_state (
    stream_id uuid NOT NULL,
    partition_id bigint NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, partition_id, key)
);

-- Counters per queue and minute, for the dashboard; each node adds to them. The row without a name is
-- the server as a whole.
CREATE TABLE wakeline.queue_counters (
    minute timestamptz NOT NULL,
    queue text NOT NULL,
    pushed bigint NOT NULL,
    popped bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    -- How long popped messages had waited, added up and at most.
    lag_us bigint NOT NULL,
    max_lag_us bigint NOT NULL,
    partitions_made bigint NOT NULL,
    partitions_deleted bigint NOT NULL,
    -- Swept messages, by rule.
    retained_out bigint NOT NULL,
    completed_out bigint NOT NULL,
    evicted_out bigint NOT NULL,
    sweeps bigint NOT NULL,
    -- The server as a whole has numbers of its own for these: a call may concern several queues, or
    -- none.
    push_requests bigint NOT NULL,
    pop_requests bigint NOT NULL,
    ack_requests bigint NOT NULL,
    transactions bigint NOT NULL,
    empty_pops bigint NOT NULL,
    store_failures bigint NOT NULL,
    -- How many there were when the row was last written.
    partitions bigint,
    PRIMARY KEY (minute, queue)
);

-- Pops that were held, by queue, node and minute: the sum over `samples` samples.
CREATE TABLE wakeline.queue_held_pops (
    minute timestamptz NOT NULL,
    queue text NOT NULL,
    hostname text NOT NULL,
    port bigint NOT NULL,
    held bigint NOT NULL,
    samples bigint NOT NULL,
    PRIMARY KEY (minute, queue, hostname, port)
);

-- Statistics of the nodes, by minute. A number that a node's system does not tell is NULL.
CREATE TABLE wakeline.queue_node_stats (
    minute timestamptz NOT NULL,
    hostname text NOT NULL,
    port bigint NOT NULL,
    -- Hundredths of a percent of all processors that the node may use.
    cpu_user bigint,
    cpu_system bigint,
    resident_bytes bigint,
    virtual_bytes bigint,
    -- To the database.
    connections bigint NOT NULL,
    busy_connections bigint NOT NULL,
    held bigint NOT NULL,
    late_us bigint NOT NULL,
    max_late_us bigint NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (minute, hostname, port)
);
