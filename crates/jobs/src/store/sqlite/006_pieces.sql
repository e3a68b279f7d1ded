-- Answers that are too long for one row: when all pieces of an upload are over. Those of one that is
-- being removed are over since 0.
CREATE TABLE jobs_upload (
    id BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_upload_expiry ON jobs_upload (expires_at);

CREATE TABLE jobs_piece (
    upload_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (upload_id, number)
) STRICT;

-- A new table, as the body has to stay last.
ALTER TABLE jobs_result RENAME TO jobs_result_before;
CREATE TABLE jobs_result (
    provider_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    is_error INTEGER NOT NULL,
    etag TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Where the bytes are, and how many, of one that is kept in pieces. Its body is empty.
    upload_id BLOB,
    length INTEGER,
    -- Last: what is before it is read without it.
    body BLOB NOT NULL,
    PRIMARY KEY (provider_id, version, hash)
) STRICT;
INSERT INTO jobs_result (provider_id, version, hash, is_error, etag, expires_at, body)
SELECT provider_id, version, hash, is_error, etag, expires_at, body FROM jobs_result_before;
DROP TABLE jobs_result_before;
CREATE INDEX jobs_result_expiry ON jobs_result (expires_at);
