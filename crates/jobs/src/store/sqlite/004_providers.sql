CREATE TABLE jobs_provider (
    id BLOB PRIMARY KEY,
    room TEXT NOT NULL,
    category TEXT NOT NULL,
    name TEXT NOT NULL,
    schema TEXT NOT NULL,
    content_type TEXT NOT NULL,
    user_id BLOB NOT NULL REFERENCES jobs_user (id) ON DELETE CASCADE,
    worker_id BLOB REFERENCES jobs_worker (id) ON DELETE CASCADE,
    -- Counts registrations: answers belong to one of them.
    version INTEGER NOT NULL DEFAULT 1,
    ttl INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (room, category, name)
) STRICT;
CREATE INDEX jobs_provider_worker ON jobs_provider (worker_id);
