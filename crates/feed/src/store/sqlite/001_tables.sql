-- Times are microseconds since 1970. Types and roles are never removed: their ids are remembered.
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

-- The last position that was given. No position is given twice, also if its fact is purged.
CREATE TABLE feed_position (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last_value INTEGER NOT NULL
) STRICT;
INSERT INTO feed_position VALUES (1, 0);

CREATE TABLE feed_fact (
    position INTEGER PRIMARY KEY,
    type_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    fields TEXT NOT NULL,
    predecessors TEXT NOT NULL,
    learned INTEGER NOT NULL,
    UNIQUE (hash, type_id)
) STRICT;
CREATE INDEX feed_fact_type ON feed_fact (type_id, position);

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
    position INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (position, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed_definition (
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    given TEXT NOT NULL,
    owner TEXT,
    used INTEGER NOT NULL
) STRICT;
CREATE INDEX feed_definition_used ON feed_definition (used);

CREATE TABLE feed_user_key (
    provider TEXT NOT NULL,
    user_id TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key TEXT NOT NULL,
    PRIMARY KEY (provider, user_id)
) STRICT;
