-- Each function is planned once in a session, perhaps when the tables are empty, and must still fit
-- when they are not: hence the settings, and look-ups that can be done in one way only. Arrays are
-- subscripted, not joined: a join of two would be guessed to be small.

-- Ids with their type's name, and the role's where it is one.
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

-- In the order of names, so that two that make the same do not wait for each other in turns.
CREATE FUNCTION wakeline.feed_make_ids(kinds text[], role_kinds text[], role_names text[])
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
            SELECT f.position FROM wakeline.feed_fact f
            WHERE f.hash = u.hash AND f.type_id = u.type_id
        )
        FROM unnest(kinds, hashes) WITH ORDINALITY AS u (type_id, hash, place) ORDER BY u.place
    );
END
$$;

-- Saves of one moment. Facts are in an order in which predecessors come first; "sorted" are their
-- places by hash. An edge's predecessor is a fact's place, or the negative one of a fact "outside"
-- that has to be stored already. Is that not so for one that is needed, then nothing is done, and
-- the caller decides by what is known and what was found outside.
CREATE FUNCTION wakeline.feed_save(
    kinds integer[], hashes bytea[], fields text[], predecessors text[], sorted integer[],
    outside_kinds integer[], outside_hashes bytea[],
    edge_successors integer[], edge_roles integer[], edge_predecessors integer[],
    key_digests bytea[], keys text[],
    signed integer[], signers integer[], signatures text[]
) RETURNS TABLE (is_saved boolean, known bigint[], at bigint[], outside bigint[])
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    fresh bigint;
    added bigint;
    key_ids integer[];
    moment bigint := wakeline.feed_now();
BEGIN
    known := ARRAY(
        SELECT (
            SELECT f.position FROM wakeline.feed_fact f
            WHERE f.hash = u.hash AND f.type_id = u.type_id
        )
        FROM unnest(kinds, hashes) WITH ORDINALITY AS u (type_id, hash, place) ORDER BY u.place
    );
    at := known;
    is_saved := true;
    fresh := (SELECT count(*) FROM unnest(known) AS u (at) WHERE u.at IS NULL);
    IF fresh > 0 THEN
        IF cardinality(outside_kinds) > 0 THEN
            outside := ARRAY(
                SELECT (
                    SELECT f.position FROM wakeline.feed_fact f
                    WHERE f.hash = u.hash AND f.type_id = u.type_id
                )
                FROM unnest(outside_kinds, outside_hashes) WITH ORDINALITY
                    AS u (type_id, hash, place)
                ORDER BY u.place
            );
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
        -- The floor, before anything is drawn: all that is drawn now is after it. See feed_horizon.
        PERFORM pg_advisory_xact_lock_shared(
            1717921124, CAST(CAST(p.last_value AS bit(32)) AS integer)
        ) FROM wakeline.feed_position p;
        at := ARRAY(
            SELECT coalesce(u.at, nextval('wakeline.feed_position')) FROM unnest(known) AS u (at)
        );
        -- By hash, so that two that save the same do not wait for each other in turns.
        INSERT INTO wakeline.feed_fact (position, type_id, hash, fields, predecessors, learned)
        SELECT at[u.i], kinds[u.i], hashes[u.i], fields[u.i], predecessors[u.i], moment
        FROM unnest(sorted) AS u (i) WHERE known[u.i] IS NULL
        ON CONFLICT (hash, type_id) DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        -- Its place was taken by somebody else: what follows it here would be before it.
        IF added <> fresh THEN
            RAISE EXCEPTION 'a fact was saved by another transaction' USING ERRCODE = '40001';
        END IF;
        INSERT INTO wakeline.feed_edge (predecessor, role_id, successor)
        SELECT
            CASE WHEN e.predecessor > 0 THEN at[e.predecessor] ELSE outside[-e.predecessor] END,
            e.role, at[e.successor]
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
        INSERT INTO wakeline.feed_signature (position, key_id, signature)
        SELECT at[u.fact], key_ids[u.key], u.signature
        FROM unnest(signed, signers, signatures) AS u (fact, key, signature)
        ON CONFLICT (position, key_id) DO NOTHING;
    END IF;
    RETURN NEXT;
END
$$;

-- A save holds a lock that says where it has begun to draw positions, until its commit can be seen.
-- So what was given before the locks are read, and is before all of them, is all there is. The lock
-- has 32 bits: what looks like the far past is ahead.
CREATE FUNCTION wakeline.feed_horizon() RETURNS TABLE (settled bigint, last bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    last := (SELECT p.last_value FROM wakeline.feed_position p);
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

-- One row without a fact when there is none. What is behind "after" is settled, whatever the locks say.
CREATE FUNCTION wakeline.feed_log(after bigint, most bigint)
RETURNS TABLE (
    settled bigint, last bigint, at bigint, type_id integer, hash bytea,
    roles integer[], predecessors bigint[]
)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    seen record;
    upto bigint;
BEGIN
    SELECT * INTO seen FROM wakeline.feed_horizon();
    upto := greatest(seen.settled, after);
    -- A statement of its own: it sees what was committed before the locks were read.
    RETURN QUERY
    SELECT upto, seen.last, f.position, f.type_id, f.hash, e.roles, e.predecessors
    FROM (SELECT 1) one
    LEFT JOIN LATERAL (
        SELECT f.position, f.type_id, f.hash FROM wakeline.feed_fact f
        WHERE f.position > after AND f.position <= upto ORDER BY f.position LIMIT most
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(e.role_id) AS roles, array_agg(e.predecessor) AS predecessors
        FROM (
            SELECT e.role_id, e.predecessor FROM wakeline.feed_edge e
            WHERE e.successor = f.position ORDER BY e.role_id, e.predecessor
        ) e
    ) e ON true
    ORDER BY f.position;
END
$$;

CREATE FUNCTION wakeline.feed_closure(which bigint[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE up (position) AS (
            SELECT unnest(which)
            UNION
            SELECT e.predecessor FROM up CROSS JOIN LATERAL (
                SELECT e.predecessor FROM wakeline.feed_edge e
                WHERE e.successor = up.position OFFSET 0
            ) e
        )
        SELECT up.position FROM up ORDER BY up.position
    );
END
$$;

CREATE FUNCTION wakeline.feed_facts(which bigint[])
RETURNS TABLE (
    at bigint, type_id integer, hash bytea, fields text, predecessors text, learned bigint,
    signers integer[], signatures text[]
)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT f.position, f.type_id, f.hash, f.fields, f.predecessors, f.learned,
        s.signers, s.signatures
    FROM unnest(which) WITH ORDINALITY AS u (position, place)
    CROSS JOIN LATERAL (
        SELECT * FROM wakeline.feed_fact f WHERE f.position = u.position LIMIT 1
    ) f
    CROSS JOIN LATERAL (
        SELECT array_agg(s.key_id) AS signers, array_agg(s.signature) AS signatures
        FROM (
            SELECT s.key_id, s.signature FROM wakeline.feed_signature s
            WHERE s.position = u.position ORDER BY s.key_id
        ) s
    ) s
    ORDER BY u.place;
END
$$;

CREATE FUNCTION wakeline.feed_define(
    hashes text[], texts text[], givens text[], owners text[], refreshed_after bigint
) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.feed_now();
BEGIN
    INSERT INTO wakeline.feed_definition (hash, text, given, owner, used)
    SELECT u.hash, u.text, u.given, u.owner, moment
    FROM unnest(hashes, texts, givens, owners) AS u (hash, text, given, owner)
    WHERE NOT EXISTS (SELECT FROM wakeline.feed_definition d WHERE d.hash = u.hash)
    ORDER BY u.hash ON CONFLICT (hash) DO NOTHING;
    PERFORM wakeline.feed_refresh(hashes, refreshed_after);
END
$$;

-- Whoever has a row in hand at this moment refreshes or removes it: nobody waits.
CREATE FUNCTION wakeline.feed_refresh(hashes text[], refreshed_after bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    moment bigint := wakeline.feed_now();
BEGIN
    UPDATE wakeline.feed_definition d SET used = moment WHERE d.hash IN (
        SELECT o.hash FROM wakeline.feed_definition o
        WHERE o.hash = ANY (hashes) AND o.used < moment - refreshed_after
        FOR UPDATE SKIP LOCKED
    );
END
$$;

CREATE FUNCTION wakeline.feed_keep_key(
    of_provider text, of_user text, public_text text, private_text text
) RETURNS SETOF wakeline.feed_user_key LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO wakeline.feed_user_key (provider, user_id, public_key, private_key)
    SELECT of_provider, of_user, public_text, private_text
    WHERE NOT EXISTS (
        SELECT FROM wakeline.feed_user_key k
        WHERE k.provider = of_provider AND k.user_id = of_user
    )
    ON CONFLICT DO NOTHING;
    -- A statement of its own: it sees who was first.
    RETURN QUERY
    SELECT * FROM wakeline.feed_user_key k WHERE k.provider = of_provider AND k.user_id = of_user;
END
$$;
