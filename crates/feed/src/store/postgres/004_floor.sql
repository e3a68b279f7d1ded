-- Saves of one moment. Facts are in an order in which predecessors come first; "sorted" are their
-- places by hash. An edge's predecessor is a fact's place, or the negative one of a fact "outside"
-- that has to be stored already. Is that not so for one that is needed, then nothing is done, and
-- the caller decides by what is known and what was found outside.
CREATE OR REPLACE FUNCTION wakeline.feed_save(
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
    -- The floor, before anything is drawn: all that is drawn now is after it. See feed_horizon. Also
    -- before anything is looked for: a purge waits for whoever may have found what it has removed.
    PERFORM pg_advisory_xact_lock_shared(
        1717921124, CAST(CAST(p.last_value AS bit(32)) AS integer)
    ) FROM wakeline.feed_position p;
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
