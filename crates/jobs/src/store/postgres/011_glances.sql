-- One row for each, in their order. With a hash: whether there is an answer, or nobody has asked for
-- it. Without one: whether the provider has been asked something that it has not answered.
CREATE FUNCTION wakeline.jobs_result_glance(providers uuid[], versions bigint[], hashes text[])
RETURNS SETOF boolean
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment bigint := wakeline.jobs_now();
BEGIN
    RETURN QUERY
    SELECT CASE WHEN u.hash IS NULL THEN EXISTS (
        SELECT 1 FROM wakeline.jobs_mark m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.until + 0 > moment
    ) ELSE EXISTS (
        SELECT 1 FROM wakeline.jobs_result r
        WHERE r.provider_id = u.provider_id AND r.version = u.version AND r.hash = u.hash
            AND r.expires_at + 0 > moment
    ) OR NOT EXISTS (
        SELECT 1 FROM wakeline.jobs_mark m
        WHERE m.provider_id = u.provider_id AND m.version = u.version AND m.hash = u.hash
            AND m.until + 0 > moment
    ) END
    FROM unnest(providers, versions, hashes)
        WITH ORDINALITY AS u (provider_id, version, hash, place)
    ORDER BY u.place;
END
$$;
