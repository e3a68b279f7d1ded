-- What providers have answered. Times are microseconds since 1970; ids are 16 bytes.
CREATE TABLE jobs_result (
    provider_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    is_error INTEGER NOT NULL,
    etag TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Last: what is before it is read without it.
    body BLOB NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
) STRICT;
CREATE INDEX jobs_result_expiry ON jobs_result (expires_at);

-- What providers have been asked, and until when they are not asked again.
CREATE TABLE jobs_mark (
    provider_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    token BLOB NOT NULL,
    params TEXT NOT NULL,
    until INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_mark_until ON jobs_mark (until);
