-- Times are microseconds since 1970; ids are 16 bytes.
CREATE TABLE jobs_user (
    id BLOB PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT,
    is_active INTEGER NOT NULL DEFAULT 1,
    is_superuser INTEGER NOT NULL DEFAULT 0,
    is_verified INTEGER NOT NULL DEFAULT 0,
    -- How often the password was changed.
    epoch INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;

-- With what tokens are signed, made once.
CREATE TABLE jobs_secret (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    secret BLOB NOT NULL
) STRICT;

CREATE TABLE jobs_worker (
    id BLOB PRIMARY KEY,
    user_id BLOB NOT NULL REFERENCES jobs_user (id) ON DELETE CASCADE,
    beat_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_worker_beat ON jobs_worker (beat_at);
CREATE INDEX jobs_worker_user ON jobs_worker (user_id);

CREATE TABLE jobs_job (
    id BLOB PRIMARY KEY,
    room TEXT NOT NULL,
    category TEXT NOT NULL,
    name TEXT NOT NULL,
    schema TEXT NOT NULL,
    max_retries INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    UNIQUE (room, category, name)
) STRICT;

CREATE TABLE jobs_link (
    worker_id BLOB NOT NULL REFERENCES jobs_worker (id) ON DELETE CASCADE,
    job_id BLOB NOT NULL REFERENCES jobs_job (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_link_job ON jobs_link (job_id);

-- seq is the order of tasks; status is a number of task::Status.
CREATE TABLE jobs_task (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    job_id BLOB NOT NULL REFERENCES jobs_job (id) ON DELETE CASCADE,
    room TEXT NOT NULL,
    created_by BLOB,
    payload TEXT NOT NULL,
    status INTEGER NOT NULL DEFAULT 0,
    worker_id BLOB,
    retries INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER
) STRICT;
CREATE INDEX jobs_task_pending ON jobs_task (job_id, seq) WHERE status = 0;
CREATE INDEX jobs_task_held ON jobs_task (worker_id) WHERE status IN (1, 2);
CREATE INDEX jobs_task_room ON jobs_task (room, seq);
CREATE INDEX jobs_task_job ON jobs_task (job_id, seq);
CREATE INDEX jobs_task_ended ON jobs_task (completed_at) WHERE status >= 3;

CREATE TABLE jobs_provider (
    id BLOB PRIMARY KEY,
    room TEXT NOT NULL,
    category TEXT NOT NULL,
    name TEXT NOT NULL,
    schema TEXT NOT NULL,
    content_type TEXT NOT NULL,
    user_id BLOB NOT NULL REFERENCES jobs_user (id) ON DELETE CASCADE,
    worker_id BLOB REFERENCES jobs_worker (id) ON DELETE CASCADE,
    version INTEGER NOT NULL DEFAULT 1,
    ttl INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (room, category, name)
) STRICT;
CREATE INDEX jobs_provider_worker ON jobs_provider (worker_id);
