-- The queue door's tables: the same as on PostgreSQL, where their reasons are given. Times are
-- microseconds since 1970.

CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    public_id BLOB NOT NULL,
    name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL DEFAULT 0,
    lease_ms INTEGER,
    retry_limit INTEGER NOT NULL DEFAULT 3,
    retry_delay_ms INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE queue_partition (
    id INTEGER PRIMARY KEY,
    public_id BLOB NOT NULL UNIQUE,
    queue_id INTEGER NOT NULL REFERENCES queue ON DELETE CASCADE,
    name TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    next_position INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue_id, name),
    UNIQUE (queue_id, ordinal)
) STRICT;

CREATE TABLE queue_message (
    partition_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id BLOB NOT NULL,
    transaction_id TEXT NOT NULL,
    trace_id BLOB,
    payload TEXT NOT NULL,
    producer_sub TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (partition_id, position),
    UNIQUE (partition_id, transaction_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_group (
    id INTEGER PRIMARY KEY,
    queue_id INTEGER NOT NULL REFERENCES queue ON DELETE CASCADE,
    name TEXT NOT NULL,
    frontier INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    UNIQUE (queue_id, name)
) STRICT;

CREATE TABLE queue_cursor (
    partition_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    ready_at INTEGER,
    lease_id BLOB,
    leased_to INTEGER,
    dead_to INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (partition_id, group_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_cursor_ready ON queue_cursor (group_id, ready_at) WHERE ready_at IS NOT NULL;

CREATE TABLE queue_failure (
    partition_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (partition_id, group_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_dead_letter (
    partition_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    error TEXT,
    failed_at INTEGER NOT NULL,
    PRIMARY KEY (partition_id, group_id, position)
) STRICT, WITHOUT ROWID;
