-- Times are microseconds since 1970, by this server's clock.
CREATE FUNCTION wakeline.jobs_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)
$$;

CREATE TABLE wakeline.jobs_user (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE,
    password text,
    is_active boolean NOT NULL DEFAULT true,
    is_superuser boolean NOT NULL DEFAULT false,
    is_verified boolean NOT NULL DEFAULT false,
    -- How often the password was changed.
    epoch integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL
);

-- With what tokens are signed, made once.
CREATE TABLE wakeline.jobs_secret (
    one integer PRIMARY KEY CHECK (one = 1),
    secret bytea NOT NULL
);

CREATE TABLE wakeline.jobs_worker (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES wakeline.jobs_user (id) ON DELETE CASCADE,
    beat_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX jobs_worker_beat ON wakeline.jobs_worker (beat_at);
CREATE INDEX jobs_worker_user ON wakeline.jobs_worker (user_id);

CREATE TABLE wakeline.jobs_job (
    id uuid PRIMARY KEY,
    room text NOT NULL,
    category text NOT NULL,
    name text NOT NULL,
    schema text NOT NULL,
    max_retries integer NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL,
    UNIQUE (room, category, name)
);

CREATE TABLE wakeline.jobs_link (
    worker_id uuid NOT NULL REFERENCES wakeline.jobs_worker (id) ON DELETE CASCADE,
    job_id uuid NOT NULL REFERENCES wakeline.jobs_job (id) ON DELETE CASCADE,
    created_at bigint NOT NULL,
    PRIMARY KEY (worker_id, job_id)
);
CREATE INDEX jobs_link_job ON wakeline.jobs_link (job_id);

-- seq is the order of tasks; status is a number of task::Status.
CREATE TABLE wakeline.jobs_task (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    job_id uuid NOT NULL REFERENCES wakeline.jobs_job (id) ON DELETE CASCADE,
    room text NOT NULL,
    created_by uuid,
    payload text NOT NULL,
    status smallint NOT NULL DEFAULT 0,
    worker_id uuid,
    retries integer NOT NULL DEFAULT 0,
    error text,
    created_at bigint NOT NULL,
    started_at bigint,
    completed_at bigint
);
CREATE INDEX jobs_task_pending ON wakeline.jobs_task (job_id, seq) WHERE status = 0;
CREATE INDEX jobs_task_held ON wakeline.jobs_task (worker_id) WHERE status IN (1, 2);
CREATE INDEX jobs_task_room ON wakeline.jobs_task (room, seq);
CREATE INDEX jobs_task_job ON wakeline.jobs_task (job_id, seq);
CREATE INDEX jobs_task_ended ON wakeline.jobs_task (completed_at) WHERE status >= 3;

CREATE TABLE wakeline.jobs_provider (
    id uuid PRIMARY KEY,
    room text NOT NULL,
    category text NOT NULL,
    name text NOT NULL,
    schema text NOT NULL,
    content_type text NOT NULL,
    user_id uuid NOT NULL REFERENCES wakeline.jobs_user (id) ON DELETE CASCADE,
    worker_id uuid REFERENCES wakeline.jobs_worker (id) ON DELETE CASCADE,
    version bigint NOT NULL DEFAULT 1,
    ttl bigint,
    created_at bigint NOT NULL,
    UNIQUE (room, category, name)
);
CREATE INDEX jobs_provider_worker ON wakeline.jobs_provider (worker_id);
