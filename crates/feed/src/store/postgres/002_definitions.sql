-- Times are microseconds since 1970.
CREATE TABLE wakeline.feed_definition (
    hash text PRIMARY KEY,
    text text NOT NULL,
    given text NOT NULL,
    owner text,
    used_at bigint NOT NULL
);
CREATE INDEX feed_definition_used_at ON wakeline.feed_definition (used_at);

-- A row that another transaction has locked is being refreshed or removed: it is skipped.
CREATE FUNCTION wakeline.feed_refresh(hashes text[], refreshed_after bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    now bigint := wakeline.feed_now();
BEGIN
    UPDATE wakeline.feed_definition d SET used_at = now WHERE d.hash IN (
        SELECT o.hash FROM wakeline.feed_definition o
        WHERE o.hash = ANY (hashes) AND o.used_at < now - refreshed_after
        FOR UPDATE SKIP LOCKED
    );
END
$$;

CREATE FUNCTION wakeline.feed_define(
    hashes text[], texts text[], givens text[], owners text[], refreshed_after bigint
) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    now bigint := wakeline.feed_now();
BEGIN
    INSERT INTO wakeline.feed_definition (hash, text, given, owner, used_at)
    SELECT u.hash, u.text, u.given, u.owner, now
    FROM unnest(hashes, texts, givens, owners) AS u (hash, text, given, owner)
    WHERE NOT EXISTS (SELECT FROM wakeline.feed_definition d WHERE d.hash = u.hash)
    ORDER BY u.hash ON CONFLICT (hash) DO NOTHING;
    PERFORM wakeline.feed_refresh(hashes, refreshed_after);
END
$$;
