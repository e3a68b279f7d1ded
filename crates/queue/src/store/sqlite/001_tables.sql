-- The queue door's tables. They have the columns of `postgres/001_tables.sql`, where each is described.
-- Times are microseconds since 1970. There is one writer, so nothing has to be locked.

CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    public_id BLOB NOT NULL,
    name TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    task TEXT NOT NULL,
    partitions INTEGER NOT NULL DEFAULT 0,
    lease_ms INTEGER,
    retry_limit INTEGER NOT NULL,
    retry_delay_ms INTEGER NOT NULL,
    keeps_dead_letters INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    delay_ms INTEGER NOT NULL,
    window_ms INTEGER NOT NULL,
    max_size INTEGER NOT NULL,
    max_age_ms INTEGER,
    age_limits_waiting INTEGER NOT NULL,
    completed_retention_ms INTEGER,
    is_sealed INTEGER NOT NULL,
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
    ordinal INTEGER NOT NULL,
    first_position INTEGER NOT NULL DEFAULT 0,
    next_position INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER NOT NULL DEFAULT 0,
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
    only_group INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (partition_id, last)
) STRICT;

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
    frontier INTEGER NOT NULL DEFAULT 0,
    frontier_end INTEGER NOT NULL DEFAULT 0,
    begin_at INTEGER,
    mode TEXT NOT NULL DEFAULT 'all',
    created_at INTEGER NOT NULL,
    UNIQUE (queue_id, name)
) STRICT;
CREATE INDEX queue_group_name ON queue_group (name);

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
    position INTEGER NOT NULL DEFAULT 0,
    ready_at INTEGER,
    lease_id BLOB,
    leased_to INTEGER,
    nacked_lease BLOB,
    deliveries TEXT,
    flags_end INTEGER NOT NULL DEFAULT 0,
    consumed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (partition_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_cursor_ready ON queue_cursor (group_id, ready_at)
    WHERE ready_at IS NOT NULL;
CREATE INDEX queue_cursor_lease ON queue_cursor (lease_id) WHERE lease_id IS NOT NULL;

CREATE TABLE queue_message_flag (
    partition_id INTEGER NOT NULL,
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
    message TEXT NOT NULL,
    UNIQUE (partition_id, position, group_name)
) STRICT;
CREATE INDEX queue_dead_letter_failed ON queue_dead_letter (queue_id, failed_at, id);

CREATE TABLE queue_deleted (
    queue_id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE queue_mode (
    is_only INTEGER PRIMARY KEY DEFAULT 1 CHECK (is_only),
    push_paused INTEGER NOT NULL DEFAULT 0,
    pop_paused INTEGER NOT NULL DEFAULT 0,
    key_fingerprint INTEGER
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

CREATE TABLE queue_counters (
    minute INTEGER NOT NULL,
    queue TEXT NOT NULL,
    pushed INTEGER NOT NULL,
    popped INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    lag_us INTEGER NOT NULL,
    max_lag_us INTEGER NOT NULL,
    partitions_made INTEGER NOT NULL,
    partitions_deleted INTEGER NOT NULL,
    retained_out INTEGER NOT NULL,
    completed_out INTEGER NOT NULL,
    evicted_out INTEGER NOT NULL,
    sweeps INTEGER NOT NULL,
    push_requests INTEGER NOT NULL,
    pop_requests INTEGER NOT NULL,
    ack_requests INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    empty_pops INTEGER NOT NULL,
    store_failures INTEGER NOT NULL,
    partitions INTEGER,
    PRIMARY KEY (minute, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_held_pops (
    minute INTEGER NOT NULL,
    queue TEXT NOT NULL,
    hostname TEXT NOT NULL,
    port INTEGER NOT NULL,
    held INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, hostname, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_node_stats (
    minute INTEGER NOT NULL,
    hostname TEXT NOT NULL,
    port INTEGER NOT NULL,
    cpu_user INTEGER,
    cpu_system INTEGER,
    resident_bytes INTEGER,
    virtual_bytes INTEGER,
    connections INTEGER NOT NULL,
    busy_connections INTEGER NOT NULL,
    held INTEGER NOT NULL,
    late_us INTEGER NOT NULL,
    max_late_us INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (minute, hostname, port)
) STRICT, WITHOUT ROWID;
