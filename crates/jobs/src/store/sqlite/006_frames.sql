-- frames counts the stored frames, mounted those of a provider; mounted_by is the user who mounted.
CREATE TABLE jobs_room (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    frames INTEGER NOT NULL DEFAULT 0,
    next_seq INTEGER NOT NULL DEFAULT 0,
    mounted INTEGER,
    mounted_by BLOB,
    created_by BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- With a rowid: the bodies are long, and must not be in the index.
CREATE TABLE jobs_frame (
    room_id INTEGER NOT NULL REFERENCES jobs_room (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL,
    PRIMARY KEY (room_id, seq)
) STRICT;

-- The frames number .. number + length are stored as seq .. seq + length.
CREATE TABLE jobs_run (
    room_id INTEGER NOT NULL REFERENCES jobs_room (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (room_id, seq)
) STRICT, WITHOUT ROWID;
-- Not unique: a delete moves the numbers one row after the other.
CREATE INDEX jobs_run_number ON jobs_run (room_id, number);
