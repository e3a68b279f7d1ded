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
-- Times are microseconds since 1970, by the clock of the process.

CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id BLOB NOT NULL,
    name TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    task TEXT NOT NULL,
    -- How many partitions there are: the ordinal of the newest.
    partitions INTEGER NOT NULL DEFAULT 0,
    -- NULL: the server's default.
    lease_ms INTEGER,
    retry_limit INTEGER NOT NULL DEFAULT 3,
    -- How long a failed message is held back.
    retry_delay_ms INTEGER NOT NULL DEFAULT 0,
    -- Whether a message that fails too often is kept as a dead letter, or dropped.
    keeps_dead_letters INTEGER NOT NULL DEFAULT 1,
    priority INTEGER NOT NULL DEFAULT 0,
    delay_ms INTEGER NOT NULL DEFAULT 0,
    window_ms INTEGER NOT NULL DEFAULT 0,
    -- 0: no limit.
    max_size INTEGER NOT NULL DEFAULT 0,
    -- Older messages are not delivered any more; NULL: no limit.
    max_age_ms INTEGER,
    -- Whether the maximum age is how long a message may wait, and not how long it is retained.
    age_limits_waiting INTEGER NOT NULL DEFAULT 0,
    -- Messages that every group has consumed are swept when they are older; NULL: kept.
    completed_retention_ms INTEGER,
    is_sealed INTEGER NOT NULL DEFAULT 0,
    -- As the caller gave them, for lists.
    options TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX queue_namespace ON queue (namespace);
CREATE INDEX queue_task ON queue (task);
CREATE INDEX queue_swept ON queue (id) WHERE max_age_ms IS NOT NULL OR completed_retention_ms IS NOT NULL;

CREATE TABLE queue_partition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- Numbered within the queue in the order of commit, so that one number says which partitions a
    -- group has no cursor in yet.
    ordinal INTEGER NOT NULL,
    first_position INTEGER NOT NULL DEFAULT 0,
    -- The order of messages is given here, under this row's lock, in the transaction that commits
    -- them: no message can appear behind a reader.
    next_position INTEGER NOT NULL DEFAULT 0,
    -- When the newest message came. Times within a partition never go back.
    last_at INTEGER NOT NULL DEFAULT 0,
    -- No message at or after this position was deleted as a single message.
    deletions_end INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    UNIQUE (queue_id, name)
) STRICT;

CREATE UNIQUE INDEX queue_partition_ordinal
    ON queue_partition (queue_id, ordinal);

CREATE TABLE queue_segment (
    partition_id INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- A retried dead letter is for its group only.
    only_group INTEGER,
    -- A JSON array with an object per message: p payload, t transaction id, r trace id, s producer,
    -- e whether the payload is sealed.
    body TEXT NOT NULL,
    PRIMARY KEY (partition_id, last)
) STRICT;

-- The transaction ids that producers gave. A message without one has its own id, which contains its
-- position.
CREATE TABLE queue_transaction (
    partition_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (partition_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_group (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- Of the partitions that are older than the group: the ordinal of the last one where the group has
    -- a cursor. Newer partitions get their cursors when they are created.
    frontier INTEGER NOT NULL DEFAULT 0,
    frontier_end INTEGER NOT NULL DEFAULT 0,
    -- Where the group starts in those: with everything, or with messages of this time or later.
    begin_at INTEGER,
    -- How the start was given: all, new or timestamp.
    mode TEXT NOT NULL DEFAULT 'all',
    created_at INTEGER NOT NULL,
    UNIQUE (queue_id, name)
) STRICT;
CREATE INDEX queue_group_name ON queue_group (name);

-- Where a group that pops by namespace or task starts in queues that it does not know yet.
CREATE TABLE queue_subscription (
    namespace TEXT NOT NULL,
    task TEXT NOT NULL,
    group_name TEXT NOT NULL,
    begin_at INTEGER,
    mode TEXT NOT NULL,
    PRIMARY KEY (group_name, namespace, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_cursor (
    partition_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    -- The next message to be consumed.
    position INTEGER NOT NULL DEFAULT 0,
    -- When it can be claimed: NULL while there is nothing to claim, in the future while it is
    -- leased or held back. One index over this column answers both "what is ready" and "when is
    -- the next". There is one writer, so that a push and a group at the end cannot miss one
    -- another.
    ready_at INTEGER,
    lease_id BLOB,
    -- The end of the leased batch.
    leased_to INTEGER,
    -- No message at or after this position has a flag of the group.
    flags_end INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (partition_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_cursor_ready ON queue_cursor (group_id, ready_at)
    WHERE ready_at IS NOT NULL;
CREATE INDEX queue_cursor_lease ON queue_cursor (lease_id) WHERE lease_id IS NOT NULL;

CREATE TABLE queue_message_flag (
    partition_id INTEGER NOT NULL,
    -- 0: for every group.
    group_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    is_dead INTEGER NOT NULL,
    PRIMARY KEY (partition_id, group_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_dead_letter (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    partition_id INTEGER NOT NULL,
    group_name TEXT NOT NULL,
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    error TEXT,
    failed_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    transaction_id TEXT NOT NULL,
    -- As in a segment.
    message TEXT NOT NULL,
    UNIQUE (partition_id, position, group_name)
) STRICT;
CREATE INDEX queue_dead_letter_failed ON queue_dead_letter (queue_id, failed_at, id);

-- Deleted queues whose partitions and messages have still to be swept.
CREATE TABLE queue_deleted (
    queue_id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE queue_mode (
    is_only INTEGER PRIMARY KEY DEFAULT 1 CHECK (is_only),
    push_paused INTEGER NOT NULL DEFAULT 0,
    pop_paused INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO queue_mode DEFAULT VALUES;

CREATE TABLE queue_trace (
    id BLOB PRIMARY KEY,
    partition_id INTEGER NOT NULL,
    transaction_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    event TEXT NOT NULL,
    data TEXT NOT NULL,
    worker TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX queue_trace_message
    ON queue_trace (partition_id, transaction_id, created_at);
CREATE TABLE queue_trace_name (
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    PRIMARY KEY (name, created_at, trace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_trace_name_trace ON queue_trace_name (trace_id);

CREATE TABLE queue_stream (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    source_queue TEXT NOT NULL,
    sink_queue TEXT,
    config_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE queue_stream_state (
    stream_id BLOB NOT NULL,
    partition_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (stream_id, partition_id, key)
) STRICT, WITHOUT ROWID;

-- Counters per queue and minute, for the dashboard; each node adds to them. The row without a name is
-- the server as a whole.
CREATE TABLE queue_counters (
    minute INTEGER NOT NULL,
    queue TEXT NOT NULL,
    pushed INTEGER NOT NULL,
    popped INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    -- How long popped messages had waited, added up and at most.
    lag_us INTEGER NOT NULL,
    max_lag_us INTEGER NOT NULL,
    partitions_made INTEGER NOT NULL,
    partitions_deleted INTEGER NOT NULL,
    -- Swept messages, by rule.
    retained_out INTEGER NOT NULL,
    completed_out INTEGER NOT NULL,
    evicted_out INTEGER NOT NULL,
    sweeps INTEGER NOT NULL,
    -- The server as a whole has numbers of its own for these: a call may concern several queues, or
    -- none.
    push_requests INTEGER NOT NULL,
    pop_requests INTEGER NOT NULL,
    ack_requests INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    empty_pops INTEGER NOT NULL,
    store_failures INTEGER NOT NULL,
    -- How many there were when the row was last written.
    partitions INTEGER,
    PRIMARY KEY (minute, queue)
) STRICT, WITHOUT ROWID;

-- Pops that were held, by queue, node and minute: the sum over `samples` samples.
CREATE TABLE queue_held_pops (
    minute INTEGER NOT NULL,
    queue TEXT NOT NULL,
    hostname TEXT NOT NULL,
    port INTEGER NOT NULL,
    held INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, hostname, port)
) STRICT, WITHOUT ROWID;

-- Statistics of the nodes, by minute. A number that a node's system does not tell is NULL.
CREATE TABLE queue_node_stats (
    minute INTEGER NOT NULL,
    hostname TEXT NOT NULL,
    port INTEGER NOT NULL,
    -- Hundredths of a percent of one processor.
    cpu_user INTEGER,
    cpu_system INTEGER,
    resident_bytes INTEGER,
    virtual_bytes INTEGER,
    -- To the database.
    connections INTEGER NOT NULL,
    busy_connections INTEGER NOT NULL,
    held INTEGER NOT NULL,
    late_us INTEGER NOT NULL,
    max_late_us INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (minute, hostname, port)
) STRICT, WITHOUT ROWID;
