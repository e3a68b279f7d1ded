-- Times are microseconds since 1970. Types and roles are never removed: nodes keep their ids in memory.
CREATE TABLE feed_type (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- A role belongs to the type of the successor.
CREATE TABLE feed_role (
    id INTEGER PRIMARY KEY,
    type_id INTEGER NOT NULL REFERENCES feed_type (id),
    name TEXT NOT NULL,
    UNIQUE (type_id, name)
) STRICT;

-- The last seq that was drawn. No seq is drawn twice, also if its fact is purged.
CREATE TABLE feed_seq (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last_value INTEGER NOT NULL
) STRICT;
INSERT INTO feed_seq VALUES (1, 0);

CREATE TABLE feed_fact (
    seq INTEGER PRIMARY KEY,
    type_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    fields TEXT NOT NULL,
    predecessors TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    UNIQUE (hash, type_id)
) STRICT;
CREATE INDEX feed_fact_type ON feed_fact (type_id, seq);

CREATE TABLE feed_edge (
    predecessor INTEGER NOT NULL,
    role_id INTEGER NOT NULL,
    successor INTEGER NOT NULL,
    PRIMARY KEY (predecessor, role_id, successor)
) STRICT, WITHOUT ROWID;
CREATE INDEX feed_edge_successor ON feed_edge (successor, role_id, predecessor);

-- The digest is SHA-256 of the key's text.
CREATE TABLE feed_public_key (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    key TEXT NOT NULL
) STRICT;

CREATE TABLE feed_signature (
    seq INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (seq, key_id)
) STRICT, WITHOUT ROWID;
