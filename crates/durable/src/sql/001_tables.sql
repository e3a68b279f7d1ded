-- The tables of one durable schema. Times are the database's own: nodes agree on no other clock.

CREATE TABLE @schema@.instance (
    id text COLLATE "C" PRIMARY KEY,
    -- Drawn at random by whoever makes it: tells it from an earlier one of the same name that was
    -- deleted.
    incarnation bigint NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    -- The current execution, the version it is pinned to, its highest event.
    execution bigint NOT NULL,
    pinned bigint,
    last_event bigint NOT NULL DEFAULT 0,
    -- How often its history was edited by hand.
    edits bigint NOT NULL DEFAULT 0,
    parent text COLLATE "C",
    -- Bytes, as all that users write: text cannot hold U+0000.
    custom_status bytea,
    custom_status_version bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The process that has the whole history of the current execution in memory.
    cached_by bigint,
    -- The last lease that was acknowledged: an acknowledgement whose answer was lost is known again.
    acked uuid
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
    -- JSON as it was written; never cast to jsonb, which refuses U+0000.
    data text NOT NULL,
    PRIMARY KEY (instance, execution, number)
);

-- An instance with messages, or with a lease on it. One row decides who may work on it and when:
-- whoever puts a message or takes the lease locks this row first.
CREATE TABLE @schema@.mailbox (
    instance text COLLATE "C" PRIMARY KEY,
    -- The number of the next message. Given out under the row's lock, so that the order of numbers
    -- is the order of commits.
    next bigint NOT NULL,
    -- When it can be taken: its earliest message is due, or its lease has run out.
    ready_at timestamptz NOT NULL,
    -- The lease, and the messages that were handed out with it: those up to a number that were
    -- visible at a time.
    token uuid,
    taken_through bigint,
    taken_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX mailbox_ready ON @schema@.mailbox (ready_at) WHERE token IS NULL;
CREATE INDEX mailbox_leased ON @schema@.mailbox (ready_at) WHERE token IS NOT NULL;

CREATE TABLE @schema@.message (
    instance text COLLATE "C",
    number bigint,
    item text NOT NULL,
    -- Nothing means at once, whatever any clock says.
    visible_at timestamptz,
    -- Fetches that ended without an acknowledgement. The one under way is not counted yet.
    attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (instance, number)
) WITH (fillfactor = 90);

CREATE TABLE @schema@.task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- When it can be taken: it is visible, or its lease has run out.
    ready_at timestamptz NOT NULL,
    token uuid,
    attempts integer NOT NULL DEFAULT 0,
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    activity bigint NOT NULL,
    session text COLLATE "C",
    -- Empty for none, else `=` and the tag.
    tag text COLLATE "C" NOT NULL,
    item text NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX task_ready ON @schema@.task (tag, ready_at, id) WHERE session IS NULL;
CREATE INDEX task_of_session ON @schema@.task (ready_at, id) WHERE session IS NOT NULL;
CREATE INDEX task_session ON @schema@.task (session) WHERE session IS NOT NULL;
CREATE INDEX task_activity ON @schema@.task (instance, execution, activity);

-- Activities that could not be read. Their orchestrations were told that they failed.
CREATE TABLE @schema@.spoilt (
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

-- Values of finished executions, and what the running one has changed (NULL: removed).
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

-- What there is, counted as it comes and goes: nobody counts finished instances. In shards, so
-- that two commits seldom wait for one another here.
CREATE TABLE @schema@.tally (
    shard integer PRIMARY KEY,
    instances bigint NOT NULL DEFAULT 0,
    executions bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
INSERT INTO @schema@.tally (shard) SELECT generate_series(0, 63);

CREATE FUNCTION @schema@.count_up(
    p_instances bigint, p_executions bigint, p_events bigint, p_completed bigint, p_failed bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.tally SET
        instances = instances + p_instances, executions = executions + p_executions,
        events = events + p_events, completed = completed + p_completed, failed = failed + p_failed
    WHERE shard = pg_backend_pid() % 64;
END $$;

-- History is only ever appended to, and processes keep it in memory on that ground. Whoever edits
-- it by hand is seen: the next reader reads it again.
CREATE FUNCTION @schema@.history_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.instance SET cached_by = NULL, edits = edits + 1 WHERE id = OLD.instance;
    RETURN NULL;
END $$;
CREATE TRIGGER history_edited AFTER UPDATE ON @schema@.event
    FOR EACH ROW EXECUTE FUNCTION @schema@.history_edited();
