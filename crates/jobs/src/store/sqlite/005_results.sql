-- The answers of providers, and the requests that they have not answered yet: a cache.
CREATE TABLE jobs_result (
    provider_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    is_error INTEGER NOT NULL,
    etag TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The upload that has the bytes in chunks, and how many bytes; then the body is empty.
    upload_id BLOB,
    length INTEGER,
    -- Last: the columns before it are read without it.
    body BLOB NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
) STRICT;
CREATE INDEX jobs_result_expiry ON jobs_result (expires_at);

-- A lock on a request: until it expires, the request is not sent to the provider again.
CREATE TABLE jobs_inflight (
    provider_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    token BLOB NOT NULL,
    params TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_inflight_expiry ON jobs_inflight (expires_at);

-- Answers that are too long for one row: all chunks of an upload expire together. While an upload is
-- being removed, its expires_at is 0.
CREATE TABLE jobs_upload (
    id BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_upload_expiry ON jobs_upload (expires_at);

CREATE TABLE jobs_chunk (
    upload_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (upload_id, number)
) STRICT;
