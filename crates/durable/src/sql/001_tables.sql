-- The tables of one durable schema. All times are the database's, so processes need no common clock.

CREATE TABLE @schema@.instance (
    id text COLLATE "C" PRIMARY KEY,
    -- A random number: tells this instance from a deleted one of the same id.
    incarnation bigint NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    -- The current execution, the duroxide version it is pinned to, and its highest event number.
    execution bigint NOT NULL,
    pinned bigint,
    last_event bigint NOT NULL DEFAULT 0,
    -- How often its history was edited by hand; a history cached before an edit is not used.
    edits bigint NOT NULL DEFAULT 0,
    parent text COLLATE "C",
    -- All that users write is bytea: text cannot hold U+0000.
    custom_status bytea,
    custom_status_version bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The process that caches the whole history of the current execution.
    cached_by bigint,
    -- The token of the last acknowledged lease: a repeated acknowledgement is recognised by it.
    last_acked uuid
) WITH (fillfactor = 70);
CREATE INDEX instance_created ON @schema@.instance (created_at);
CREATE INDEX instance_parent ON @schema@.instance (parent) WHERE parent IS NOT NULL;

CREATE TABLE @schema@.execution (
    instance text COLLATE "C",
    number bigint,
    status text NOT NULL DEFAULT 'Running',
    output bytea,
    pinned bigint,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at timestamptz,
    PRIMARY KEY (instance, number)
) WITH (fillfactor = 80);
CREATE INDEX execution_running ON @schema@.execution (instance) WHERE status = 'Running';
CREATE INDEX execution_completed ON @schema@.execution (completed_at) WHERE completed_at IS NOT NULL;

CREATE TABLE @schema@.event (
    instance text COLLATE "C",
    execution bigint,
    number bigint,
    -- JSON as duroxide wrote it; never cast to jsonb, which refuses U+0000.
    data text NOT NULL,
    PRIMARY KEY (instance, execution, number)
);

-- The messages of one instance and the lease on it; there is no row without either. Sending a
-- message and leasing the instance both lock this row first.
CREATE TABLE @schema@.mailbox (
    instance text COLLATE "C" PRIMARY KEY,
    -- The number of the next message. It grows under the row's lock, so the order of numbers is the
    -- order of commits.
    next bigint NOT NULL,
    -- When the instance can be fetched: its earliest message is due, or its lease has expired.
    ready_at timestamptz NOT NULL,
    -- The lease covers the messages up to this number that were visible at this time.
    token uuid,
    leased_through bigint,
    leased_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX mailbox_ready ON @schema@.mailbox (ready_at) WHERE token IS NULL;
CREATE INDEX mailbox_leased ON @schema@.mailbox (ready_at) WHERE token IS NOT NULL;

CREATE TABLE @schema@.message (
    instance text COLLATE "C",
    number bigint,
    item text NOT NULL,
    -- NULL: at once, whatever the clock says. A timer is a message that becomes visible later.
    visible_at timestamptz,
    -- Fetches that ended without an acknowledgement; the current one is not counted yet.
    attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, number)
) WITH (fillfactor = 90);

CREATE TABLE @schema@.activity (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- When it can be fetched: it is visible, or its lease has expired.
    ready_at timestamptz NOT NULL,
    token uuid,
    attempts integer NOT NULL DEFAULT 0,
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    -- The number of the event that scheduled it.
    number bigint NOT NULL,
    session text COLLATE "C",
    -- Empty for none, else `=` and the tag.
    tag text COLLATE "C" NOT NULL,
    item text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX activity_ready ON @schema@.activity (tag, ready_at, id) WHERE session IS NULL;
CREATE INDEX activity_of_any_session ON @schema@.activity (ready_at, id) WHERE session IS NOT NULL;
CREATE INDEX activity_of_session ON @schema@.activity (session) WHERE session IS NOT NULL;
CREATE INDEX activity_of_instance ON @schema@.activity (instance, execution, number);

-- Activities whose JSON duroxide could not read. Their orchestrations got a failure instead.
CREATE TABLE @schema@.unreadable_activity (
    id bigint PRIMARY KEY,
    instance text COLLATE "C" NOT NULL,
    item text NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE @schema@.session (
    id text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    locked_until timestamptz NOT NULL,
    active_at timestamptz NOT NULL
);
CREATE INDEX session_owner ON @schema@.session (owner);

-- Values of finished executions, and the changes of the running one (value NULL: removed).
CREATE TABLE @schema@.kv (
    instance text COLLATE "C",
    key text COLLATE "C",
    value bytea NOT NULL,
    updated_ms bigint NOT NULL,
    PRIMARY KEY (instance, key)
);
CREATE TABLE @schema@.kv_delta (
    instance text COLLATE "C",
    key text COLLATE "C",
    value bytea,
    updated_ms bigint NOT NULL,
    PRIMARY KEY (instance, key)
);

-- Totals, so that finished instances need not be counted. 64 rows, so that two commits seldom wait
-- for the same one.
CREATE TABLE @schema@.counters (
    shard integer PRIMARY KEY,
    instances bigint NOT NULL DEFAULT 0,
    executions bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
INSERT INTO @schema@.counters (shard) SELECT generate_series(0, 63);

CREATE FUNCTION @schema@.add_to_counters(
    p_instances bigint, p_executions bigint, p_events bigint, p_completed bigint, p_failed bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.counters SET
        instances = instances + p_instances, executions = executions + p_executions,
        events = events + p_events, completed = completed + p_completed, failed = failed + p_failed
    WHERE shard = pg_backend_pid() % 64;
END $$;

-- Processes cache histories because a history is only appended to. An edit by hand is counted, so
-- that the next reader reads the history again.
CREATE FUNCTION @schema@.history_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.instance SET cached_by = NULL, edits = edits + 1 WHERE id = OLD.instance;
    RETURN NULL;
END $$;
CREATE TRIGGER history_edited AFTER UPDATE ON @schema@.event
    FOR EACH ROW EXECUTE FUNCTION @schema@.history_edited();
