CREATE TABLE wakeline.feed_user_key (
    provider text NOT NULL,
    user_id text NOT NULL,
    public_key text NOT NULL,
    private_key text NOT NULL,
    PRIMARY KEY (provider, user_id)
);

CREATE FUNCTION wakeline.feed_store_key(
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
    -- A statement of its own, so that it sees a key that another transaction stored first.
    RETURN QUERY
    SELECT * FROM wakeline.feed_user_key k WHERE k.provider = of_provider AND k.user_id = of_user;
END
$$;
