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
    -- A guest can come back only with its token. Once it has a password it is no guest any more.
    is_guest INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_user_guest ON jobs_user (created_at) WHERE is_guest AND password IS NULL;

-- The key that signs tokens, made once.
CREATE TABLE jobs_secret (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    secret BLOB NOT NULL
) STRICT;
