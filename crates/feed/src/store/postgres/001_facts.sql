-- Times are microseconds since 1970. Types and roles are never removed: nodes keep their ids in memory.
CREATE TABLE wakeline.feed_type (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- A role belongs to the type of the successor.
CREATE TABLE wakeline.feed_role (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type_id integer NOT NULL REFERENCES wakeline.feed_type (id),
    name text COLLATE "C" NOT NULL,
    UNIQUE (type_id, name)
);

-- A seq is drawn before its fact is committed: feed_horizon says up to where they are settled. CACHE
-- must stay 1: a seq that a session drew in advance would be below its floor. The first seq is 1.
CREATE SEQUENCE wakeline.feed_seq MINVALUE 0 START 0 CACHE 1;
SELECT nextval('wakeline.feed_seq');

CREATE TABLE wakeline.feed_fact (
    seq bigint PRIMARY KEY,
    type_id integer NOT NULL,
    hash bytea NOT NULL,
    fields text NOT NULL,
    predecessors text NOT NULL,
    saved_at bigint NOT NULL,
    UNIQUE (hash, type_id)
);
CREATE INDEX feed_fact_type ON wakeline.feed_fact (type_id, seq);

CREATE TABLE wakeline.feed_edge (
    predecessor bigint NOT NULL,
    role_id integer NOT NULL,
    successor bigint NOT NULL,
    PRIMARY KEY (predecessor, role_id, successor)
);
CREATE INDEX feed_edge_successor ON wakeline.feed_edge (successor, role_id, predecessor);

-- The digest is SHA-256 of the key's text.
CREATE TABLE wakeline.feed_public_key (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    key text NOT NULL
);

CREATE TABLE wakeline.feed_signature (
    seq bigint NOT NULL,
    key_id integer NOT NULL,
    signature text NOT NULL,
    PRIMARY KEY (seq, key_id)
);

CREATE FUNCTION wakeline.feed_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)
$$;

-- Each function is planned once per session, perhaps when the tables are empty, and the plan must
-- still fit when they are not. Hence the settings, and look-ups that allow only one plan. Arrays are
-- subscripted, not joined: the planner would guess that a join of two arrays has few rows.

-- Each id with its type's name; for a role with its own name too.
CREATE FUNCTION wakeline.feed_ids(kinds text[], role_kinds text[], role_names text[])
RETURNS TABLE (id integer, kind text, role text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT t.id, t.name, NULL::text
    FROM (SELECT unnest(kinds) UNION SELECT unnest(role_kinds)) AS u (name)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.feed_type t WHERE t.name = u.name LIMIT 1) t;
    RETURN QUERY
    SELECT r.id, u.kind, u.role
    FROM unnest(role_kinds, role_names) AS u (kind, role)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.feed_type t WHERE t.name = u.kind LIMIT 1) t
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.feed_role r WHERE r.type_id = t.id AND r.name = u.role LIMIT 1
    ) r;
END
$$;

-- In the order of the names, so that two calls for the same names cannot deadlock.
CREATE FUNCTION wakeline.feed_insert_ids(kinds text[], role_kinds text[], role_names text[])
RETURNS TABLE (id integer, kind text, role text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    INSERT INTO wakeline.feed_type (name)
    SELECT u.name COLLATE "C"
    FROM (SELECT unnest(kinds) UNION SELECT unnest(role_kinds)) AS u (name)
    WHERE NOT EXISTS (SELECT FROM wakeline.feed_type t WHERE t.name = u.name)
    ORDER BY 1 ON CONFLICT (name) DO NOTHING;
    INSERT INTO wakeline.feed_role (type_id, name)
    SELECT DISTINCT t.id, u.role COLLATE "C"
    FROM unnest(role_kinds, role_names) AS u (kind, role)
    CROSS JOIN LATERAL (SELECT * FROM wakeline.feed_type t WHERE t.name = u.kind LIMIT 1) t
    WHERE NOT EXISTS (
        SELECT FROM wakeline.feed_role r WHERE r.type_id = t.id AND r.name = u.role
    )
    ORDER BY 1, 2 ON CONFLICT (type_id, name) DO NOTHING;
    RETURN QUERY SELECT * FROM wakeline.feed_ids(kinds, role_kinds, role_names);
END
$$;

CREATE FUNCTION wakeline.feed_find(kinds integer[], hashes bytea[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        SELECT (
            SELECT f.seq FROM wakeline.feed_fact f
            WHERE f.hash = u.hash AND f.type_id = u.type_id
        )
        FROM unnest(kinds, hashes) WITH ORDINALITY AS u (type_id, hash, place) ORDER BY u.place
    );
END
$$;

-- Saves that arrived together. The facts are in an order in which predecessors come first; "sorted"
-- are their indexes by hash. An edge's predecessor is the index of a fact, or the negative index of
-- a fact "outside", which has to be stored already. If a needed one is not, the function
-- writes nothing, and the caller decides by "known" and "outside" which saves are refused.
CREATE FUNCTION wakeline.feed_save(
    kinds integer[], hashes bytea[], fields text[], predecessors text[], sorted integer[],
    outside_kinds integer[], outside_hashes bytea[],
    edge_successors integer[], edge_roles integer[], edge_predecessors integer[],
    key_digests bytea[], keys text[],
    signed integer[], signers integer[], signatures text[]
) RETURNS TABLE (is_saved boolean, known bigint[], seqs bigint[], outside bigint[])
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    new_count bigint;
    added bigint;
    key_ids integer[];
    now bigint := wakeline.feed_now();
BEGIN
    -- The floor comes before any seq is drawn, so this save's seqs are above it (see feed_horizon).
    -- It comes before any fact is looked up, too: a purge waits for the saves that may have found
    -- facts which it has removed.
    PERFORM pg_advisory_xact_lock_shared(
        1717921124, CAST(CAST(p.last_value AS bit(32)) AS integer)
    ) FROM wakeline.feed_seq p;
    known := wakeline.feed_find(kinds, hashes);
    seqs := known;
    is_saved := true;
    new_count := (SELECT count(*) FROM unnest(known) AS u (seqs) WHERE u.seqs IS NULL);
    IF new_count > 0 THEN
        IF cardinality(outside_kinds) > 0 THEN
            outside := wakeline.feed_find(outside_kinds, outside_hashes);
            IF array_position(outside, NULL) IS NOT NULL AND EXISTS (
                SELECT FROM unnest(edge_successors, edge_predecessors) AS e (successor, predecessor)
                WHERE e.predecessor < 0 AND outside[-e.predecessor] IS NULL
                    AND known[e.successor] IS NULL
            ) THEN
                is_saved := false;
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
        seqs := ARRAY(
            SELECT coalesce(u.seqs, nextval('wakeline.feed_seq')) FROM unnest(known) AS u (seqs)
        );
        -- By hash, so that two saves of the same facts cannot deadlock.
        INSERT INTO wakeline.feed_fact (seq, type_id, hash, fields, predecessors, saved_at)
        SELECT seqs[u.i], kinds[u.i], hashes[u.i], fields[u.i], predecessors[u.i], now
        FROM unnest(sorted) AS u (i) WHERE known[u.i] IS NULL
        ON CONFLICT (hash, type_id) DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        -- Another transaction has just saved one of the facts with a higher seq, which its
        -- successors here would be below: the caller runs this save again.
        IF added <> new_count THEN
            RAISE EXCEPTION 'a fact was saved by another transaction' USING ERRCODE = '40001';
        END IF;
        INSERT INTO wakeline.feed_edge (predecessor, role_id, successor)
        SELECT
            CASE WHEN e.predecessor > 0 THEN seqs[e.predecessor] ELSE outside[-e.predecessor] END,
            e.role, seqs[e.successor]
        FROM unnest(edge_predecessors, edge_roles, edge_successors)
            AS e (predecessor, role, successor)
        WHERE known[e.successor] IS NULL;
    END IF;
    IF cardinality(signed) > 0 THEN
        INSERT INTO wakeline.feed_public_key AS p (digest, key)
        SELECT u.digest, u.key FROM unnest(key_digests, keys) AS u (digest, key)
        WHERE NOT EXISTS (
            SELECT FROM wakeline.feed_public_key p WHERE p.digest = u.digest
        )
        ON CONFLICT (digest) DO NOTHING;
        key_ids := ARRAY(
            SELECT (SELECT p.id FROM wakeline.feed_public_key p WHERE p.digest = u.digest)
            FROM unnest(key_digests) WITH ORDINALITY AS u (digest, place) ORDER BY u.place
        );
        INSERT INTO wakeline.feed_signature (seq, key_id, signature)
        SELECT seqs[u.fact], key_ids[u.key], u.signature
        FROM unnest(signed, signers, signatures) AS u (fact, key, signature)
        ON CONFLICT (seq, key_id) DO NOTHING;
    END IF;
    RETURN NEXT;
END
$$;

-- From before it draws its first seq until its commit is visible, a save holds a lock that names its
-- floor: the last seq that was drawn before. So every seq that was drawn before the locks are read,
-- and is below all floors, is settled. A lock has 32 bits: a floor that seems to be in the far past
-- is ahead.
CREATE FUNCTION wakeline.feed_horizon() RETURNS TABLE (settled bigint, last bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    last := (SELECT p.last_value FROM wakeline.feed_seq p);
    settled := last - (
        SELECT coalesce(max(b.behind), 0) FROM (
            SELECT (last - CAST(l.objid AS bigint)) & 4294967295 AS behind FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.classid = 1717921124 AND l.objsubid = 2 AND l.granted
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        ) b WHERE b.behind < 2147483648
    );
    RETURN NEXT;
END
$$;

-- The facts after "after", which is settled whatever the locks say, up to the horizon. If there are
-- none, one row without a fact.
CREATE FUNCTION wakeline.feed_log(after bigint, max_rows bigint)
RETURNS TABLE (
    settled bigint, last bigint, seq bigint, type_id integer, hash bytea,
    roles integer[], predecessors bigint[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    horizon record;
    settled_now bigint;
BEGIN
    SELECT * INTO horizon FROM wakeline.feed_horizon();
    settled_now := greatest(horizon.settled, after);
    -- A statement of its own, so that it sees what was committed before the locks were read.
    RETURN QUERY
    SELECT settled_now, horizon.last, f.seq, f.type_id, f.hash, e.roles, e.predecessors
    FROM (SELECT 1) one
    LEFT JOIN LATERAL (
        SELECT f.seq, f.type_id, f.hash FROM wakeline.feed_fact f
        WHERE f.seq > after AND f.seq <= settled_now ORDER BY f.seq LIMIT max_rows
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(e.role_id) AS roles, array_agg(e.predecessor) AS predecessors
        FROM (
            SELECT e.role_id, e.predecessor FROM wakeline.feed_edge e
            WHERE e.successor = f.seq ORDER BY e.role_id, e.predecessor
        ) e
    ) e ON true
    ORDER BY f.seq;
END
$$;

CREATE FUNCTION wakeline.feed_closure(seqs bigint[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE up (seq) AS (
            SELECT unnest(seqs)
            UNION
            SELECT e.predecessor FROM up CROSS JOIN LATERAL (
                SELECT e.predecessor FROM wakeline.feed_edge e
                WHERE e.successor = up.seq OFFSET 0
            ) e
        )
        SELECT up.seq FROM up ORDER BY up.seq
    );
END
$$;

CREATE FUNCTION wakeline.feed_facts(seqs bigint[])
RETURNS TABLE (
    seq bigint, type_id integer, hash bytea, fields text, predecessors text, saved_at bigint,
    key_ids integer[], signatures text[]
)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT f.seq, f.type_id, f.hash, f.fields, f.predecessors, f.saved_at,
        s.key_ids, s.signatures
    FROM unnest(seqs) WITH ORDINALITY AS u (seq, place)
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.feed_fact f WHERE f.seq = u.seq LIMIT 1
    ) f
    CROSS JOIN LATERAL (
        SELECT array_agg(s.key_id) AS key_ids, array_agg(s.signature) AS signatures
        FROM (
            SELECT s.key_id, s.signature FROM wakeline.feed_signature s
            WHERE s.seq = u.seq ORDER BY s.key_id
        ) s
    ) s
    ORDER BY u.place;
END
$$;

-- Removes the descendants of the roots, newest first, but not the kept facts and their ancestors.
CREATE FUNCTION wakeline.feed_purge(roots bigint[], keep bigint[], max_facts bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    removed bigint[];
BEGIN
    removed := ARRAY(
        WITH RECURSIVE kept (seq) AS (
            SELECT unnest(keep)
            UNION
            SELECT e.predecessor FROM kept k CROSS JOIN LATERAL (
                SELECT e.predecessor FROM wakeline.feed_edge e
                WHERE e.successor = k.seq OFFSET 0
            ) e
        ), descendant (seq) AS (
            SELECT e.successor FROM unnest(roots) AS r (seq) CROSS JOIN LATERAL (
                SELECT e.successor FROM wakeline.feed_edge e
                WHERE e.predecessor = r.seq OFFSET 0
            ) e
            UNION
            SELECT e.successor FROM descendant d CROSS JOIN LATERAL (
                SELECT e.successor FROM wakeline.feed_edge e
                WHERE e.predecessor = d.seq OFFSET 0
            ) e
        )
        SELECT d.seq FROM descendant d EXCEPT SELECT k.seq FROM kept k
        ORDER BY 1 DESC LIMIT max_facts
    );
    DELETE FROM wakeline.feed_signature s WHERE s.seq = ANY (removed);
    DELETE FROM wakeline.feed_edge e WHERE e.successor = ANY (removed);
    DELETE FROM wakeline.feed_fact f WHERE f.seq = ANY (removed);
    RETURN removed;
END
$$;
