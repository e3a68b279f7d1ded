-- Runs a query whose loops are written in the order in which they are to run. Every step is a seek in
-- an index that has the right order already, also where the planner has no statistics and would
-- rather sort or read a whole table.
CREATE FUNCTION wakeline.feed_run_query(
    statement text, numbers bigint[], first_table bigint[], second_table bigint[]
) RETURNS TABLE (seqs bigint[], hashes bytea[])
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET enable_memoize = off SET max_parallel_workers_per_gather = 0
SET join_collapse_limit = 1 SET from_collapse_limit = 1
AS $$
BEGIN
    RETURN QUERY EXECUTE statement USING numbers, first_table, second_table;
END
$$;
