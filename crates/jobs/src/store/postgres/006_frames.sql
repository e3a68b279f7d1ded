-- frames counts the stored frames, mounted those of a provider; mounted_by is the user who mounted.
-- changes counts the changes of the frames: their order. locked_by is the user who locked the room.
CREATE TABLE wakeline.jobs_room (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    frames bigint NOT NULL DEFAULT 0,
    next_seq bigint NOT NULL DEFAULT 0,
    mounted bigint,
    mounted_by uuid,
    changes bigint NOT NULL DEFAULT 0,
    locked_by uuid,
    -- Of the newest message, in milliseconds.
    said_at bigint NOT NULL DEFAULT 0,
    created_by uuid NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE wakeline.jobs_frame (
    room_id bigint NOT NULL REFERENCES wakeline.jobs_room (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    body bytea NOT NULL,
    PRIMARY KEY (room_id, seq)
);
-- Floating-point numbers hardly compress; trying costs more than it saves.
ALTER TABLE wakeline.jobs_frame ALTER COLUMN body SET STORAGE EXTERNAL;

-- The frames number .. number + length are stored as seq .. seq + length.
CREATE TABLE wakeline.jobs_run (
    room_id bigint NOT NULL REFERENCES wakeline.jobs_room (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    number bigint NOT NULL,
    length bigint NOT NULL,
    PRIMARY KEY (room_id, seq)
);
-- Not unique: a delete moves the numbers one row after the other.
CREATE INDEX jobs_run_number ON wakeline.jobs_run (room_id, number);

-- Outcomes: 0 the room exists, 1 done, 2 no source, 3 the source is mounted, 4 it is too large.
CREATE FUNCTION wakeline.jobs_room_create(
    room_name text, creator uuid, source_name text, first_frame bytea, copy_limit bigint,
    OUT outcome smallint, OUT source_bytes bigint, OUT room wakeline.jobs_room
) LANGUAGE plpgsql AS $$
DECLARE
    source_room wakeline.jobs_room;
    copied bigint := 0;
BEGIN
    SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name;
    IF FOUND THEN
        outcome := 0;
        RETURN;
    END IF;
    IF source_name IS NOT NULL THEN
        -- The lock keeps the source unchanged until its frames are copied.
        SELECT * INTO source_room FROM wakeline.jobs_room r WHERE r.name = source_name FOR SHARE;
        IF NOT FOUND THEN
            outcome := 2;
            RETURN;
        END IF;
        IF source_room.mounted IS NOT NULL THEN
            outcome := 3;
            RETURN;
        END IF;
        SELECT coalesce(sum(octet_length(f.body)), 0) INTO source_bytes
        FROM wakeline.jobs_frame f WHERE f.room_id = source_room.id;
        IF source_bytes > copy_limit THEN
            outcome := 4;
            RETURN;
        END IF;
    END IF;
    INSERT INTO wakeline.jobs_room (name, created_by, created_at)
    VALUES (room_name, creator, wakeline.jobs_now())
    ON CONFLICT (name) DO NOTHING
    RETURNING * INTO room;
    IF NOT FOUND THEN
        -- Another caller has created it at the same moment.
        SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name;
        outcome := 0;
        RETURN;
    END IF;
    IF source_name IS NOT NULL THEN
        INSERT INTO wakeline.jobs_frame (room_id, seq, body)
        SELECT room.id, x.number + f.seq - x.seq, f.body
        FROM wakeline.jobs_run x
        JOIN wakeline.jobs_frame f ON f.room_id = x.room_id
            AND f.seq >= x.seq AND f.seq < x.seq + x.length
        WHERE x.room_id = source_room.id;
        GET DIAGNOSTICS copied = ROW_COUNT;
    ELSIF first_frame IS NOT NULL THEN
        INSERT INTO wakeline.jobs_frame (room_id, seq, body) VALUES (room.id, 0, first_frame);
        copied := 1;
    END IF;
    IF copied > 0 THEN
        INSERT INTO wakeline.jobs_run (room_id, seq, number, length) VALUES (room.id, 0, 0, copied);
        UPDATE wakeline.jobs_room r SET frames = copied, next_seq = copied WHERE r.id = room.id
        RETURNING * INTO room;
    END IF;
    outcome := 1;
END
$$;

-- Outcomes here and below: 0 done, 1 no room, 2 read-only, 3 full or no such frame, 4 changed, 5 the
-- room is locked for this editor (NULL: a superuser).
-- Each locks the room's row first, so that writes to a room are done one after the other, and in the
-- order of their numbers (change).
CREATE FUNCTION wakeline.jobs_append(
    room_name text, editor uuid, bodies bytea[], room_limit bigint,
    OUT outcome smallint, OUT start bigint, OUT total bigint, OUT change bigint
) LANGUAGE plpgsql AS $$
DECLARE
    room wakeline.jobs_room;
    added bigint := cardinality(bodies);
BEGIN
    SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    start := room.frames;
    total := room.frames + added;
    IF room.locked_by <> editor THEN
        outcome := 5;
        RETURN;
    END IF;
    IF room.mounted IS NOT NULL THEN
        outcome := 2;
        RETURN;
    END IF;
    IF total > room_limit THEN
        outcome := 3;
        RETURN;
    END IF;
    INSERT INTO wakeline.jobs_frame (room_id, seq, body)
    SELECT room.id, room.next_seq + b.ordinal - 1, b.body
    FROM unnest(bodies) WITH ORDINALITY AS b (body, ordinal);
    UPDATE wakeline.jobs_run x SET length = x.length + added
    WHERE x.room_id = room.id AND x.seq + x.length = room.next_seq
        AND x.seq = (SELECT max(y.seq) FROM wakeline.jobs_run y WHERE y.room_id = room.id);
    IF NOT FOUND AND added > 0 THEN
        INSERT INTO wakeline.jobs_run (room_id, seq, number, length)
        VALUES (room.id, room.next_seq, room.frames, added);
    END IF;
    change := room.changes + 1;
    UPDATE wakeline.jobs_room r SET frames = total, next_seq = room.next_seq + added, changes = change
    WHERE r.id = room.id;
    outcome := 0;
END
$$;

CREATE FUNCTION wakeline.jobs_replace(
    room_name text, editor uuid, frame_number bigint, new_body bytea,
    expected_seq bigint, expected_revision bigint,
    OUT outcome smallint, OUT total bigint, OUT change bigint
) LANGUAGE plpgsql AS $$
DECLARE
    room wakeline.jobs_room;
    run wakeline.jobs_run;
BEGIN
    SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    total := room.frames;
    IF room.locked_by <> editor THEN
        outcome := 5;
        RETURN;
    END IF;
    IF room.mounted IS NOT NULL THEN
        outcome := 2;
        RETURN;
    END IF;
    IF frame_number < 0 OR frame_number >= room.frames THEN
        outcome := 3;
        RETURN;
    END IF;
    SELECT * INTO run FROM wakeline.jobs_run x
    WHERE x.room_id = room.id AND x.number <= frame_number
    ORDER BY x.number DESC LIMIT 1;
    UPDATE wakeline.jobs_frame f SET body = new_body, revision = f.revision + 1
    WHERE f.room_id = room.id AND f.seq = run.seq + frame_number - run.number
        AND (expected_seq IS NULL OR (f.seq = expected_seq AND f.revision = expected_revision));
    IF NOT FOUND THEN
        outcome := 4;
        RETURN;
    END IF;
    change := room.changes + 1;
    UPDATE wakeline.jobs_room r SET changes = change WHERE r.id = room.id;
    outcome := 0;
END
$$;

CREATE FUNCTION wakeline.jobs_delete(
    room_name text, editor uuid, frame_number bigint,
    OUT outcome smallint, OUT total bigint, OUT change bigint
) LANGUAGE plpgsql AS $$
DECLARE
    room wakeline.jobs_room;
    run wakeline.jobs_run;
    before bigint;
BEGIN
    SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    total := room.frames;
    IF room.locked_by <> editor THEN
        outcome := 5;
        RETURN;
    END IF;
    IF room.mounted IS NOT NULL THEN
        outcome := 2;
        RETURN;
    END IF;
    IF frame_number < 0 OR frame_number >= room.frames THEN
        outcome := 3;
        RETURN;
    END IF;
    SELECT * INTO run FROM wakeline.jobs_run x
    WHERE x.room_id = room.id AND x.number <= frame_number
    ORDER BY x.number DESC LIMIT 1;
    before := frame_number - run.number;
    DELETE FROM wakeline.jobs_frame f WHERE f.room_id = room.id AND f.seq = run.seq + before;
    IF before = 0 THEN
        DELETE FROM wakeline.jobs_run x WHERE x.room_id = room.id AND x.seq = run.seq;
    ELSE
        UPDATE wakeline.jobs_run x SET length = before WHERE x.room_id = room.id AND x.seq = run.seq;
    END IF;
    UPDATE wakeline.jobs_run x SET number = x.number - 1
    WHERE x.room_id = room.id AND x.number > frame_number;
    IF run.length > before + 1 THEN
        INSERT INTO wakeline.jobs_run (room_id, seq, number, length)
        VALUES (room.id, run.seq + before + 1, frame_number, run.length - before - 1);
    END IF;
    total := room.frames - 1;
    change := room.changes + 1;
    UPDATE wakeline.jobs_room r SET frames = total, changes = change WHERE r.id = room.id;
    outcome := 0;
END
$$;

-- Each message of a room has a millisecond of its own, so a page can begin at one.
CREATE TABLE wakeline.jobs_message (
    room_id bigint NOT NULL REFERENCES wakeline.jobs_room (id) ON DELETE CASCADE,
    said_at bigint NOT NULL,
    user_id uuid NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (room_id, said_at)
);

-- Stores a message, and keeps the newest ones only. Returns no row if there is no such room.
CREATE FUNCTION wakeline.jobs_say(
    room_name text, speaker uuid, new_content text, kept bigint
) RETURNS SETOF wakeline.jobs_message LANGUAGE plpgsql AS $$
DECLARE
    room wakeline.jobs_room;
BEGIN
    UPDATE wakeline.jobs_room r SET said_at = greatest(r.said_at + 1, wakeline.jobs_now() / 1000)
    WHERE r.name = room_name RETURNING * INTO room;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY INSERT INTO wakeline.jobs_message (room_id, said_at, user_id, content)
    VALUES (room.id, room.said_at, speaker, new_content) RETURNING *;
    DELETE FROM wakeline.jobs_message m WHERE m.room_id = room.id AND m.said_at <= (
        SELECT n.said_at FROM wakeline.jobs_message n WHERE n.room_id = room.id
        ORDER BY n.said_at DESC OFFSET kept LIMIT 1);
END
$$;

-- A tracker that is not updated for an hour is gone.
CREATE TABLE wakeline.jobs_progress (
    room_id bigint NOT NULL REFERENCES wakeline.jobs_room (id) ON DELETE CASCADE,
    id text NOT NULL,
    description text NOT NULL,
    unit text NOT NULL,
    n bigint NOT NULL DEFAULT 0,
    total bigint,
    elapsed_us bigint NOT NULL DEFAULT 0,
    updated_at bigint NOT NULL,
    PRIMARY KEY (room_id, id)
);

-- Outcomes: 0 done, 1 no room, 2 the room has as many trackers as it may have.
CREATE FUNCTION wakeline.jobs_progress_start(
    room_name text, tracker_id text, new_description text, new_unit text, most bigint, age bigint,
    OUT outcome smallint
) LANGUAGE plpgsql AS $$
DECLARE
    room wakeline.jobs_room;
    now_us bigint := wakeline.jobs_now();
BEGIN
    -- The lock keeps two callers from adding the last tracker both.
    SELECT * INTO room FROM wakeline.jobs_room r WHERE r.name = room_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    DELETE FROM wakeline.jobs_progress p WHERE p.room_id = room.id
        AND (p.updated_at <= now_us - age OR p.id = tracker_id);
    IF (SELECT count(*) FROM wakeline.jobs_progress p WHERE p.room_id = room.id) >= most THEN
        outcome := 2;
        RETURN;
    END IF;
    INSERT INTO wakeline.jobs_progress (room_id, id, description, unit, updated_at)
    VALUES (room.id, tracker_id, new_description, new_unit, now_us);
    outcome := 0;
END
$$;
