-- seq is the order of tasks; status is the number of a task::Status.
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

-- A task as callers see it. Its queue_position is counted on the index of pending tasks, up to the
-- task itself.
CREATE VIEW jobs_task_view AS
SELECT t.*, j.room || ':' || j.category || ':' || j.name AS job_name,
    CASE WHEN t.status = 0 THEN (
        SELECT count(*) FROM jobs_task p
        WHERE p.job_id = t.job_id AND p.status = 0 AND p.seq <= t.seq
    ) END AS queue_position
FROM jobs_task t JOIN jobs_job j ON j.id = t.job_id;
