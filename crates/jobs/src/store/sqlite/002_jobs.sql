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

-- Which workers do which jobs.
CREATE TABLE jobs_link (
    worker_id BLOB NOT NULL REFERENCES jobs_worker (id) ON DELETE CASCADE,
    job_id BLOB NOT NULL REFERENCES jobs_job (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (worker_id, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_link_job ON jobs_link (job_id);

-- A job with the ids of its workers as text, oldest link first.
CREATE VIEW jobs_job_view AS
SELECT j.*, (
    SELECT group_concat(hex(l.worker_id) ORDER BY l.created_at, l.worker_id)
    FROM jobs_link l WHERE l.job_id = j.id
) AS workers
FROM jobs_job j;
