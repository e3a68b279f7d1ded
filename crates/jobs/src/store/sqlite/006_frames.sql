-- frames counts the stored frames, mounted those of a provider; mounted_by is the user who mounted.
-- changes counts the changes of the frames: their order. locked_by is the user who locked the room.
CREATE TABLE jobs_room (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    frames INTEGER NOT NULL DEFAULT 0,
    next_seq INTEGER NOT NULL DEFAULT 0,
    mounted INTEGER,
    mounted_by BLOB,
    changes INTEGER NOT NULL DEFAULT 0,
    locked_by BLOB,
    -- Of the newest message, in milliseconds.
    said_at INTEGER NOT NULL DEFAULT 0,
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

-- Each message of a room has a millisecond of its own, so a page can begin at one.
CREATE TABLE jobs_message (
    room_id INTEGER NOT NULL REFERENCES jobs_room (id) ON DELETE CASCADE,
    said_at INTEGER NOT NULL,
    user_id BLOB NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (room_id, said_at)
) STRICT, WITHOUT ROWID;

-- A tracker that is not updated for an hour is gone.
CREATE TABLE jobs_progress (
    room_id INTEGER NOT NULL REFERENCES jobs_room (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    description TEXT NOT NULL,
    unit TEXT NOT NULL,
    n INTEGER NOT NULL DEFAULT 0,
    total INTEGER,
    elapsed_us INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (room_id, id)
) STRICT, WITHOUT ROWID;
