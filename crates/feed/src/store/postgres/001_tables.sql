-- Times are microseconds since 1970. Types and roles are never removed: their ids are remembered.
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

-- Positions are taken before the commit, so what is settled is by feed_horizon. CACHE must stay 1:
-- what a session drew in advance would be before its floor. The first is 1.
CREATE SEQUENCE wakeline.feed_position MINVALUE 0 START 0 CACHE 1;
SELECT nextval('wakeline.feed_position');

CREATE TABLE wakeline.feed_fact (
    position bigint PRIMARY KEY,
    type_id integer NOT NULL,
    hash bytea NOT NULL,
    fields text NOT NULL,
    predecessors text NOT NULL,
    learned bigint NOT NULL,
    UNIQUE (hash, type_id)
);
CREATE INDEX feed_fact_type ON wakeline.feed_fact (type_id, position);

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
    position bigint NOT NULL,
    key_id integer NOT NULL,
    signature text NOT NULL,
    PRIMARY KEY (position, key_id)
);

CREATE TABLE wakeline.feed_definition (
    hash text PRIMARY KEY,
    text text NOT NULL,
    given text NOT NULL,
    owner text,
    used bigint NOT NULL
);
CREATE INDEX feed_definition_used ON wakeline.feed_definition (used);

CREATE TABLE wakeline.feed_user_key (
    provider text NOT NULL,
    user_id text NOT NULL,
    public_key text NOT NULL,
    private_key text NOT NULL,
    PRIMARY KEY (provider, user_id)
);

CREATE FUNCTION wakeline.feed_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)
$$;
