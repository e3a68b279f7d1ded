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
