CREATE TABLE feed_user_key (
    provider TEXT NOT NULL,
    user_id TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key TEXT NOT NULL,
    PRIMARY KEY (provider, user_id)
) STRICT;
