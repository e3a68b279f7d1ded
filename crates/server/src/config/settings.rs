//! The table of settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Settled;
use super::kind::{Found, Kind, bytes, duration, integer, optional_text, text};
use super::print::Shown;
use super::secret::{Secret, Url};
use super::units::{DAY, GIB, HOUR, KIB, MIB, MINUTE, MS, SECOND};
use super::value::{
    Algorithm, FromValue, LogFormat, Results, Store, Subscription, TimeoutStatus, Value,
};

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The full name, such as `http.max_body`.
    pub key: &'static str,
    /// The TOML table it belongs to; empty at the top.
    pub section: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The default, written as one would in the environment.
    pub default: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
    /// One line for `--help` and the docs.
    pub help: &'static str,
}

/// Makes the typed structs, [`SETTINGS`] and [`Config::build`] from the same rows, so that none of
/// them can miss a setting.
macro_rules! settings {
    (@secret) => { false };
    (@secret secret) => { true };
    (
        $( $top:ident: $top_type:ty = $top_default:literal, $top_kind:expr, $top_help:literal; )*
        $( [$section:ident $path:literal: $struct:ident] $about:literal {
            $( $field:ident: $type:ty = $default:literal, $kind:expr, $help:literal $(, $secret:ident)?; )*
        } )*
    ) => {
        /// The whole configuration, read and checked. Its `Debug` hides secrets.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( #[doc = $top_help] pub $top: $top_type, )*
            $( #[doc = $about] pub $section: $struct, )*
            pub(super) shown: Vec<Shown>,
        }

        $(
            #[doc = $about]
            #[derive(Clone, Debug)]
            pub struct $struct {
                $( #[doc = $help] pub $field: $type, )*
            }
        )*

        /// All settings, in the order in which they are printed.
        pub static SETTINGS: &[Setting] = &[
            $( Setting {
                key: stringify!($top),
                section: "",
                kind: $top_kind,
                default: $top_default,
                secret: false,
                help: $top_help,
            }, )*
            $( $( Setting {
                key: concat!($path, ".", stringify!($field)),
                section: $path,
                kind: $kind,
                default: $default,
                secret: settings!(@secret $($secret)?),
                help: $help,
            }, )* )*
        ];

        impl Config {
            pub(super) fn build(settled: &Settled) -> Self {
                Self {
                    $( $top: <$top_type>::from_value(settled.value(stringify!($top))), )*
                    $( $section: $struct {
                        $( $field: <$type>::from_value(settled.value(
                            concat!($path, ".", stringify!($field)),
                        )), )*
                    }, )*
                    shown: Shown::all(settled),
                }
            }
        }
    };
}

settings! {
    listen: SocketAddr = "127.0.0.1:6632", Kind::Address, "Address and port to listen on.";
    data: PathBuf = "./wakeline-data", Kind::Path, "Directory for the SQLite file and everything else kept on disk.";
    store: Store = "sqlite", Kind::Url { word: "sqlite", schemes: &["postgres", "postgresql"] }, "The database: `sqlite`, a file in the data directory, or the URL of a PostgreSQL database.";
    insecure: bool = "false", Kind::Bool, "Listen beyond loopback without authentication.";

    [auth "auth": Auth] "Who may call." {
        tokens: Vec<Secret> = "", Kind::List { min_chars: 16 }, "Bearer tokens that are let in, as admin. These or a key of `auth.jwt` are required when listening beyond loopback.", secret;
    }

    [jwt "auth.jwt": Jwt] "Signed tokens that are let in." {
        secret: Option<Secret> = "", optional_text(32), "Secret shared with the issuer of tokens signed with HS256.", secret;
        public_key: Option<String> = "", optional_text(1), "Public key of the issuer of tokens signed with RS256 or EdDSA: PEM, or the path of a file that holds it.";
        jwks_url: Option<Url> = "", Kind::Url { word: "", schemes: &["http", "https"] }, "URL of the key set (JWKS) of the issuer of tokens signed with RS256 or EdDSA.";
        jwks_refresh: Duration = "1h", duration(SECOND, 7 * DAY), "How old the key set may become before it is fetched anew.";
        jwks_timeout: Duration = "5s", duration(100 * MS, MINUTE), "How long fetching the key set may take.";
        algorithm: Algorithm = "auto", Kind::Choice(&["auto", "HS256", "RS256", "EdDSA"]), "The only algorithm that is let in; `auto` takes each key's own.";
        issuer: Option<String> = "", optional_text(1), "The `iss` that a token must have. Empty: any.";
        audience: Option<String> = "", optional_text(1), "The `aud` that a token must have. Empty: any.";
        clock_skew: Duration = "30s", duration(0, 10 * MINUTE), "How far the issuer's clock may be off.";
        role_claim: String = "role", text(1), "Claim that names the role. A dot leads into an object.";
        roles_claim: String = "roles", text(1), "Claim that lists roles. A dot leads into an object.";
        role_admin: String = "admin", text(1), "What the issuer calls the role admin.";
        role_read_write: String = "read-write", text(1), "What the issuer calls the role read-write.";
        role_read_only: String = "read-only", text(1), "What the issuer calls the role read-only.";
        role_write_only: String = "write-only", text(1), "What the issuer calls the role write-only.";
        skip_paths: Vec<String> = "/,/health,/livez,/readyz,/metrics,/metrics/prometheus", Kind::List { min_chars: 1 }, "Paths that are open to everybody when a key of `auth.jwt` is given.";
    }

    [http "http": Http] "How requests are read and held." {
        max_body: usize = "10MiB", bytes(KIB, GIB), "Largest request body.";
        max_url: usize = "8KiB", bytes(256, 32 * KIB), "Longest request URL.";
        max_headers: usize = "16KiB", bytes(8 * KIB, MIB), "Largest request head: all headers together.";
        header_timeout: Duration = "75s", duration(100 * MS, 10 * MINUTE), "How long a client may take to send a request head; also how long a connection may be idle between two requests.";
        body_timeout: Duration = "30s", duration(100 * MS, 10 * MINUTE), "How long a client may pause while it sends a request body.";
        write_timeout: Duration = "60s", duration(100 * MS, 10 * MINUTE), "How long a client may leave an answer unread; then its connection is closed. Requests that are held have no answer yet.";
        max_connections: usize = "100000", integer(1, 10_000_000), "Connections open at once.";
        http2_max_streams: u32 = "20000", integer(1, 1_000_000), "Requests open at once on one HTTP/2 connection.";
        max_hold: Duration = "10m", duration(SECOND, DAY), "Longest hold a caller may ask for.";
        default_hold: Duration = "30s", duration(0, DAY), "Hold when the caller names none.";
        drain: Duration = "10s", duration(0, 10 * MINUTE), "How long a stopping server waits for its last answers to be sent.";
    }

    [wake "wake": Wake] "The wake engine." {
        max_waiters: usize = "1000000", integer(1, 100_000_000), "Waiters held at once; past it, a new hold is refused with 503.";
        max_waiters_per_topic: usize = "200000", integer(1, 100_000_000), "Waiters held at once on one topic.";
        max_timers: usize = "1000000", integer(1, 100_000_000), "Timers kept in memory.";
        fallback: Duration = "60s", duration(SECOND, HOUR), "How often each door asks its store what has become ready, in case a hint was lost.";
        fallback_degraded: Duration = "1s", duration(100 * MS, HOUR), "The same while the bus is down.";
    }

    [bus "bus": Bus] "Wakes between nodes." {
        url: Option<Url> = "", Kind::Url { word: "", schemes: &["redis", "rediss"] }, "URL of the Redis that carries wakes between nodes. Empty: PostgreSQL `NOTIFY` when the store is PostgreSQL, else memory.";
        channel: String = "wakeline", Kind::Name { max_chars: 63 }, "Channel that the nodes of one installation share.";
        canary: Duration = "5s", duration(100 * MS, MINUTE), "How often the bus is tried with a message to itself.";
    }

    [sqlite "sqlite": Sqlite] "The SQLite store." {
        readers: usize = "2", integer(1, 64), "Reading connections.";
        max_batch: usize = "512", integer(1, 100_000), "Operations that may share one commit.";
        busy_timeout: Duration = "5s", duration(0, 10 * MINUTE), "How long to wait for a lock that another process holds on the file.";
    }

    [postgres "postgres": Postgres] "The PostgreSQL store." {
        connections: usize = "4", integer(1, 1_000), "Connections for single statements; batches have four of their own.";
        max_batch: usize = "500", integer(1, 10_000), "Operations that may share one commit.";
        connect_timeout: Duration = "5s", duration(100 * MS, 5 * MINUTE), "How long to wait for a connection.";
        statement_timeout: Duration = "30s", duration(100 * MS, HOUR), "How long one statement may run.";
    }

    [limits "limits": Limits] "What may pile up." {
        pending_operations: usize = "100000", integer(1, 10_000_000), "Operations waiting for a commit; past it, a request is refused with 503.";
    }

    [queue "queue": Queue] "The queue door." {
        max_batch: usize = "10000", integer(1, 100_000), "Messages in one pop.";
        max_items: usize = "10000", integer(1, 100_000), "Messages in one push.";
        max_name: usize = "255", integer(1, 1_024), "Characters in the name of a queue, partition or consumer group.";
        max_transaction_id: usize = "255", integer(1, 1_024), "Characters in a transaction id.";
        default_batch: usize = "200", integer(1, 100_000), "Messages in a pop that does not say.";
        max_partitions: usize = "1000", integer(1, 100_000), "Partitions in one pop.";
        lease: Duration = "300s", duration(SECOND, DAY), "Lease of a popped message when neither queue nor caller names one.";
        max_lease: Duration = "24h", duration(SECOND, 30 * DAY), "How long a lease may be extended at once.";
        default_subscription: Subscription = "all", Kind::Choice(&["all", "new"]), "Where a consumer group begins that does not say: with everything, or with what comes from then on.";
        encryption_key: Option<Secret> = "", optional_text(64), "Key of queues with encryptionEnabled: 64 hexadecimal digits.", secret;
        sweep_interval: Duration = "30s", duration(100 * MS, DAY), "How often what is too old is removed.";
    }

    [jobs "jobs": Jobs] "The jobs and providers door." {
        secret: Option<Secret> = "", optional_text(32), "Secret that tokens of users are signed with. Empty: one is made and kept in the store.", secret;
        token_lifetime: Duration = "1h", duration(SECOND, 30 * DAY), "How long a token of a user lasts.";
        admin_email: Option<String> = "", optional_text(3), "Email of a superuser that is made at the start. Without one and on a loopback address without a login, every user is a superuser, and so is who sends no token.";
        admin_password: Option<Secret> = "", optional_text(8), "Its password.", secret;
        guests: bool = "false", Kind::Bool, "Whether anybody may be a guest (`POST /v1/auth/guest`).";
        keep_guests: Duration = "30d", duration(SECOND, 3_650 * DAY), "How long a guest without workers is known, and no shorter than `jobs.token_lifetime`.";
        registration: bool = "false", Kind::Bool, "Whether anybody may register (`POST /v1/auth/register`).";
        open_lists: bool = "false", Kind::Bool, "Whether jobs, workers, tasks and providers are listed to who sends no token, as by zndraw-joblib.";
        categories: Vec<String> = "modifiers,selections,analysis,filesystem", Kind::List { min_chars: 1 }, "Categories that a job may have.";
        provider_categories: Vec<String> = "", Kind::List { min_chars: 1 }, "Categories that a provider may have. Empty: any.";
        worker_timeout: Duration = "60s", duration(100 * MS, DAY), "A worker that was silent for so long is lost.";
        internal_timeout: Duration = "1h", duration(SECOND, 7 * DAY), "How long a task of `@internal` may take.";
        internal_tasks: usize = "4", integer(1, 1_000), "Tasks of `@internal` that a node runs at once.";
        keep_tasks: Duration = "7d", duration(SECOND, 3_650 * DAY), "How long ended tasks are kept.";
        require_workers: bool = "false", Kind::Bool, "Whether a task is refused with 409 when nobody does its job.";
        max_retries: u32 = "100", integer(0, 10_000), "Retries that a job may ask for, for tasks whose worker was lost.";
        max_schema: usize = "256KiB", bytes(KIB, 16 * MIB), "Largest JSON Schema of a job or provider.";
        max_task_hold: Duration = "60s", duration(SECOND, DAY), "Longest hold of a claim, or of a read of a task.";
        read_hold: Duration = "5s", duration(0, DAY), "Hold of a provider's read when the caller names none.";
        max_read_hold: Duration = "30s", duration(SECOND, DAY), "Longest hold of a provider's read.";
        timeout_status: TimeoutStatus = "504", Kind::Choice(&["504", "404"]), "Status of a read that the provider did not answer in time.";
        result_ttl: Duration = "5m", duration(100 * MS, 30 * DAY), "How long a provider's answer is kept when neither it nor the provider says.";
        error_ttl: Duration = "5s", duration(100 * MS, DAY), "How long a provider's error is kept.";
        inflight_ttl: Duration = "30s", duration(100 * MS, HOUR), "For how long a provider is not asked the same again.";
        max_result: usize = "64MiB", bytes(KIB, 16 * GIB), "Largest answer of a provider.";
        upload_memory: usize = "256MiB", bytes(MIB, 64 * GIB), "What answers on their way into the store or Redis may take up in memory; further ones wait for their turn.";
        results: Results = "store", Kind::Choice(&["store", "redis", "files"]), "Where answers of providers are kept: the store, Redis, or files in the data directory.";
        results_by_category: Vec<String> = "", Kind::List { min_chars: 3 }, "The same for single categories, as `frames=files`.";
        redis: Option<Url> = "", Kind::Url { word: "", schemes: &["redis", "rediss"] }, "URL of the Redis for answers. Empty: that of the bus.";
        redis_prefix: String = "wakeline:", text(1), "What its keys begin with.";
        files_size: usize = "1GiB", bytes(MIB, 1_024 * GIB), "What answers on disk may take up; those that were read longest ago go first.";
        filesystem_roots: Vec<String> = "", Kind::List { min_chars: 1 }, "Directories that `@internal:filesystem:FilesystemRead` shows. Empty: there is no such provider.";
        filesystem_for_everybody: bool = "false", Kind::Bool, "Whether it shows them to users who are no superusers.";
        frame_bytes: usize = "32MiB", bytes(KIB, GIB), "Largest frame.";
        frame_keys: usize = "1000", integer(1, 65_536), "Keys that a frame may have.";
        request_frames: usize = "1000", integer(1, 100_000), "Frames that are appended, or asked for by their numbers, at once.";
        room_copy: usize = "256MiB", bytes(MIB, 64 * GIB), "What a new room may begin with, copied from another.";
        asked_frames: usize = "1000", integer(1, 100_000), "Frames of one read that a provider is asked for.";
        asked_at_once: usize = "32", integer(1, 1_000), "Of these, under way at once.";
        asked_bytes: usize = "256MiB", bytes(MIB, 64 * GIB), "What they may take up together.";
        room_frames: usize = "1000000", integer(1, 1_000_000_000), "Frames that a room may have.";
        max_sockets: usize = "10000", integer(1, 1_000_000), "Socket.IO connections at once.";
        socket_buffer: usize = "1024", integer(16, 65_536), "Events that wait for a client to take them; one that lets more wait is cut.";
        ping_interval: Duration = "25s", duration(100 * MS, HOUR), "How often a Socket.IO client is asked whether it is there.";
        ping_timeout: Duration = "20s", duration(100 * MS, HOUR), "How long it may take to answer.";
    }

    [feeds "feeds": Feeds] "The feed door." {
        policies: Option<String> = "", optional_text(1), "Directory with `*.policy` files (who may save and see what), or with the empty file `no-security-policies`. Empty: everybody may everything.";
        authentication: Option<String> = "", optional_text(1), "Directory with `*.provider` files (whose tokens are let in at `/jinaga`). Empty: the server's own login decides.";
        origins: Vec<String> = "*", Kind::List { min_chars: 1 }, "Origins whose pages may call `/jinaga`; `*` is any.";
        page_size: usize = "100", integer(1, 10_000), "Tuples of a page.";
        max_initial_pages: usize = "1000", integer(1, 1_000_000), "Pages that a stream sends in one cycle; then others have their turn, and it goes on.";
        waitlist_cap: usize = "50000", integer(1, 10_000_000), "Facts that may wait for a stream; past it, the stream is closed.";
        page_delay_every: usize = "10", integer(0, 1_000_000), "After so many pages a stream lets others go first, if some wait. 0: never.";
        page_delay: Duration = "10ms", duration(0, MINUTE), "For how long.";
        sync_delay: Duration = "500ms", duration(0, MINUTE), "How long after the last live page SYNC is sent.";
        heartbeat: Duration = "30s", duration(100 * MS, HOUR), "How often a stream sends a blank line when there is nothing else.";
        slow_reader: Duration = "1m", duration(100 * MS, DAY), "How long a client may leave a stream unread; then the stream ends.";
        max_age: Duration = "0s", duration(0, 30 * DAY), "How long a stream lives at most. 0: as long as its client.";
        max_body: usize = "64MiB", bytes(KIB, 4 * GIB), "Largest body of JSON or text at `/jinaga`.";
        max_graph: usize = "512MiB", bytes(KIB, 16 * GIB), "Largest graph of facts in one save.";
        max_facts: usize = "1000000", integer(1, 100_000_000), "Facts in one save.";
        max_references: usize = "100000", integer(1, 10_000_000), "Facts asked for in one load.";
        keep_definitions: Duration = "90d", duration(DAY, 3_650 * DAY), "How long a feed is known that nobody asks for.";
    }

    [durable "durable": Durable] "The durable door: what is shown of it." {
        schema: Option<String> = "", optional_text(1), "Schema of `wakeline-durable` that is shown under `/v1/durable`. Empty: none, or `durable` where `durable.database` is given.";
        database: Option<Url> = "", Kind::Url { word: "", schemes: &["postgres", "postgresql"] }, "URL of the PostgreSQL database that has it. Empty: the store's.";
    }

    [log "log": Log] "What is logged." {
        format: LogFormat = "text", Kind::Choice(&["text", "json"]), "How log lines are written.";
        level: String = "info", Kind::Filter, "What is logged: a level, or directives such as `info,wakeline_wake=debug`.";
    }
}

/// The variables' prefix in the environment.
pub(super) const ENV_PREFIX: &str = "WAKELINE_";

impl Setting {
    /// Its variable in the environment: `WAKELINE_HTTP_MAX_BODY`.
    #[must_use]
    pub fn env(&self) -> String {
        format!("{ENV_PREFIX}{}", self.flat().to_uppercase())
    }

    /// Its flag on the command line: `--http-max-body`.
    #[must_use]
    pub fn flag(&self) -> String {
        match self.key {
            // The setting of the bus that people give by hand.
            "bus.url" => "--bus".to_owned(),
            _ => format!("--{}", self.flat().replace('_', "-")),
        }
    }

    /// The key as one word: `http_max_body`.
    pub(super) fn flat(&self) -> String {
        self.key.replace('.', "_")
    }

    /// The key without its section: `max_body`.
    pub(super) fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    pub(super) fn default_value(&self) -> Value {
        self.kind
            .read_text(self.default)
            .unwrap_or_else(|_| panic!("the default of {} does not fit its kind", self.key))
    }

    /// What a mistake may say about a wrong value of this setting.
    pub(super) fn describe(&self, found: Found) -> String {
        match found {
            Found::Value(_) if self.secret => "a value that is not shown".to_owned(),
            Found::Value(text) | Found::About(text) => text,
        }
    }
}

/// By its key, also as the design of the feeds writes it: `feeds.maxInitialPages`.
pub(super) fn setting(key: &str) -> Option<&'static Setting> {
    let exact = SETTINGS.iter().find(|setting| setting.key == key);
    exact.or_else(|| {
        let mut snake = String::with_capacity(key.len() + 4);
        for c in key.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        SETTINGS.iter().find(|setting| setting.key == snake)
    })
}
