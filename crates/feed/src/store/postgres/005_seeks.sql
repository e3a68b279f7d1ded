-- Runs a check whose loops are seeks in indexes, also where the planner has no statistics and would
-- rather read a whole table. "givens" has the facts of one question after those of another.
CREATE FUNCTION wakeline.feed_check(question text, givens bigint[], names text[])
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET max_parallel_workers_per_gather = 0
AS $$
BEGIN
    RETURN QUERY EXECUTE question USING givens, names;
END
$$;

-- Removes the descendants of the roots but for the kept ones and their ancestors, newest first.
CREATE FUNCTION wakeline.feed_purge(roots bigint[], keep bigint[], most bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    gone bigint[];
BEGIN
    gone := ARRAY(
        WITH RECURSIVE kept (position) AS (
            SELECT unnest(keep)
            UNION
            SELECT e.predecessor FROM kept k CROSS JOIN LATERAL (
                SELECT e.predecessor FROM wakeline.feed_edge e
                WHERE e.successor = k.position OFFSET 0
            ) e
        ), descendant (position) AS (
            SELECT e.successor FROM unnest(roots) AS r (position) CROSS JOIN LATERAL (
                SELECT e.successor FROM wakeline.feed_edge e
                WHERE e.predecessor = r.position OFFSET 0
            ) e
            UNION
            SELECT e.successor FROM descendant d CROSS JOIN LATERAL (
                SELECT e.successor FROM wakeline.feed_edge e
                WHERE e.predecessor = d.position OFFSET 0
            ) e
        )
        SELECT d.position FROM descendant d EXCEPT SELECT k.position FROM kept k
        ORDER BY 1 DESC LIMIT most
    );
    DELETE FROM wakeline.feed_signature s WHERE s.position = ANY (gone);
    DELETE FROM wakeline.feed_edge e WHERE e.successor = ANY (gone);
    DELETE FROM wakeline.feed_fact f WHERE f.position = ANY (gone);
    RETURN gone;
END
$$;
