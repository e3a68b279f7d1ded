-- Times are microseconds since 1970.
CREATE TABLE feed_definition (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    given TEXT NOT NULL,
    owner TEXT,
    used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX feed_definition_used_at ON feed_definition (used_at);
