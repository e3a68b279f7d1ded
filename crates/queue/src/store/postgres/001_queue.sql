-- The queue door's tables.
--
-- Messages are appended and never updated. What changes are small rows: the partition (where the
-- next message goes) and the cursor (how far a group has read, and when it can be claimed).
--
-- Where two indexes begin with the same column, one of them has it as `column + 0`: on a database
-- without statistics the planner thinks both as good, and a wrong choice reads a whole queue or
-- partition. Written like this, each question has one index that fits. For the same reason
-- partitions are found by name in subqueries: a join on two columns is sometimes planned on the
-- first alone.

CREATE TABLE wakeline.queue (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL UNIQUE,
    -- How many partitions there are: the ordinal of the newest.
    partitions bigint NOT NULL DEFAULT 0,
    -- NULL: the server's default.
    lease_ms bigint,
    retry_limit integer NOT NULL DEFAULT 3,
    retry_delay_ms bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE wakeline.queue_partition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    queue_id bigint NOT NULL REFERENCES wakeline.queue ON DELETE CASCADE,
    name text NOT NULL,
    -- Numbered within the queue in the order of commit, so that a group finds the ones it has not
    -- seen by one number.
    ordinal bigint NOT NULL,
    -- The order of messages is given here, under this row's lock, in the transaction that commits
    -- them: no message can appear behind a reader.
    next_position bigint NOT NULL DEFAULT 0,
    UNIQUE (queue_id, name)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX queue_partition_ordinal
    ON wakeline.queue_partition ((queue_id + 0), ordinal);

CREATE TABLE wakeline.queue_message (
    partition_id bigint NOT NULL,
    position bigint NOT NULL,
    id uuid NOT NULL,
    transaction_id text NOT NULL,
    trace_id uuid,
    payload text NOT NULL,
    producer_sub text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (partition_id, position)
);

CREATE UNIQUE INDEX queue_message_transaction
    ON wakeline.queue_message ((partition_id + 0), transaction_id);

CREATE TABLE wakeline.queue_group (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id bigint NOT NULL REFERENCES wakeline.queue ON DELETE CASCADE,
    name text NOT NULL,
    -- The ordinal of the last partition that has a cursor of this group.
    frontier bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (queue_id, name)
);

CREATE TABLE wakeline.queue_cursor (
    partition_id bigint NOT NULL,
    group_id bigint NOT NULL,
    -- The next message to be consumed.
    position bigint NOT NULL DEFAULT 0,
    -- When it can be claimed: NULL while there is nothing to claim, in the future while it is
    -- leased or held back. One index over this column answers both "what is ready" and "when is
    -- the next". It becomes NULL only under the partition's share lock, and NULL becomes a time
    -- only under its exclusive lock, so that a push and a reader that has caught up cannot miss
    -- one another.
    ready_at timestamptz,
    lease_id uuid,
    -- The end of the leased batch.
    leased_to bigint,
    -- No message at or behind this position is dead for the group.
    dead_to bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (partition_id, group_id)
) WITH (fillfactor = 70);

CREATE INDEX queue_cursor_ready ON wakeline.queue_cursor (group_id, ready_at)
    WHERE ready_at IS NOT NULL;

-- How often a message has failed in a group; only for those that have.
CREATE TABLE wakeline.queue_failure (
    partition_id bigint NOT NULL,
    group_id bigint NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL,
    error text,
    PRIMARY KEY (partition_id, group_id, position)
);

CREATE TABLE wakeline.queue_dead_letter (
    partition_id bigint NOT NULL,
    group_id bigint NOT NULL,
    position bigint NOT NULL,
    failures integer NOT NULL,
    error text,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (partition_id, group_id, position)
);
