//! The table of settings.

use std::path::PathBuf;
use std::time::Duration;

use super::ResolvedSettings;
use super::kind::{Kind, WrongValue, bytes, duration, integer, optional_text, text};
use super::listen::Listen;
use super::print::PrintedSetting;
use super::secret::{Secret, Url};
use super::units::{DAY, GIB, HOUR, KIB, MIB, MINUTE, MS, SECOND};
use super::value::{
    Algorithm, FromValue, LogFormat, ResultBackend, Store, Subscription, TimeoutStatus,
    UnknownFields, Value,
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
    /// Whether its value is hidden wherever it would be shown.
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
            pub(super) printed: Vec<PrintedSetting>,
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
            pub(super) fn build(resolved: &ResolvedSettings) -> Self {
                Self {
                    $( $top: <$top_type>::from_value(resolved.value(stringify!($top))), )*
                    $( $section: $struct {
                        $( $field: <$type>::from_value(resolved.value(
                            concat!($path, ".", stringify!($field)),
                        )), )*
                    }, )*
                    printed: PrintedSetting::all(resolved),
                }
            }
        }
    };
}

settings! {
    listen: Listen = "127.0.0.1:6632", Kind::Listen, "Address and port to listen on; of a name, all its addresses.";
    data: PathBuf = "./wakeline-data", Kind::Path, "Directory of the SQLite file and of everything else on disk.";
    store: Store = "sqlite", Kind::Url { word: "sqlite", schemes: &["postgres", "postgresql"] }, "The database: `sqlite`, a file in the data directory, or the URL of a PostgreSQL database.";
    insecure: bool = "false", Kind::Bool, "Allow a `listen` address beyond loopback without authentication.";

    [auth "auth": Auth] "Fixed tokens." {
        tokens: Vec<Secret> = "", Kind::List { min_chars: 16 }, "Bearer tokens with the role admin. These or a key of `auth.jwt` are required when `listen` is beyond loopback.", secret;
    }

    [jwt "auth.jwt": Jwt] "Signed tokens." {
        secret: Option<Secret> = "", optional_text(32), "Secret shared with the issuer of tokens signed with HS256.", secret;
        public_key: Option<String> = "", optional_text(1), "Public key of the issuer of tokens signed with RS256 or EdDSA: PEM, or the path of a file that holds it.";
        jwks_url: Option<Url> = "", Kind::Url { word: "", schemes: &["http", "https"] }, "URL of the issuer's key set (JWKS), for tokens signed with RS256 or EdDSA.";
        jwks_refresh: Duration = "1h", duration(SECOND, 7 * DAY), "Age at which the key set is fetched again.";
        jwks_timeout: Duration = "5s", duration(100 * MS, MINUTE), "Time limit for fetching the key set.";
        algorithm: Algorithm = "auto", Kind::Choice(&["auto", "HS256", "RS256", "EdDSA"]), "The only algorithm that is accepted; `auto` accepts the one of each key.";
        issuer: Option<String> = "", optional_text(1), "The `iss` that a token must have. Empty: any.";
        audience: Option<String> = "", optional_text(1), "The `aud` that a token must have. Empty: any.";
        clock_skew: Duration = "30s", duration(0, 10 * MINUTE), "Allowed difference between the issuer's clock and this machine's.";
        role_claim: String = "role", text(1), "Claim that has the role. A dot leads into an object.";
        roles_claim: String = "roles", text(1), "Claim that lists roles. A dot leads into an object.";
        role_admin: String = "admin", text(1), "The issuer's name for the role admin.";
        role_read_write: String = "read-write", text(1), "The issuer's name for the role read-write.";
        role_read_only: String = "read-only", text(1), "The issuer's name for the role read-only.";
        role_write_only: String = "write-only", text(1), "The issuer's name for the role write-only.";
        skip_paths: Vec<String> = "/,/health,/livez,/readyz,/metrics,/metrics/prometheus", Kind::List { min_chars: 1 }, "Paths that need no token when a key of `auth.jwt` is set.";
    }

    [http "http": Http] "Requests and connections." {
        max_body: usize = "10MiB", bytes(KIB, GIB), "Largest request body.";
        max_url: usize = "8KiB", bytes(256, 32 * KIB), "Longest request URL.";
        max_headers: usize = "16KiB", bytes(8 * KIB, MIB), "Largest request head (all headers together).";
        header_timeout: Duration = "75s", duration(100 * MS, 10 * MINUTE), "Time limit for sending a request head, and for a connection to be idle between two requests.";
        body_timeout: Duration = "30s", duration(100 * MS, 10 * MINUTE), "Longest pause while a client sends a request body.";
        body_rate: usize = "1KiB", bytes(1, GIB), "Least bytes per second of a request body, after the time of `http.body_timeout`.";
        write_timeout: Duration = "60s", duration(100 * MS, 10 * MINUTE), "How long a client may leave an answer unread before its connection is closed. It does not apply to a request while it is held.";
        allowed_origins: Vec<String> = "", Kind::List { min_chars: 1 }, "Origins whose web pages may call this server from a browser, such as `https://app.example.com`; `*` is any. The server's own address is always allowed.";
        allowed_hosts: Vec<String> = "", Kind::List { min_chars: 1 }, "Names with a dot by which clients may call a server without authentication, such as `wakeline.example.com`. Addresses, `localhost` and names without a dot are always allowed.";
        trusted_proxies: Vec<String> = "", Kind::List { min_chars: 2 }, "Networks of proxies, such as `10.0.0.0/8`, whose `Forwarded` or `X-Forwarded-For` names the caller's address. Empty: those headers are not read.";
        max_depth: usize = "128", integer(1, 10_000), "Levels of arrays and objects in a JSON body at most.";
        unknown_fields: UnknownFields = "refuse", Kind::Choice(&["refuse", "warn"]), "What to do with a field or parameter that no route knows: refuse the request with 400, or ignore the field and log its name once.";
        max_connections: usize = "100000", integer(1, 10_000_000), "Connections open at once.";
        http2_max_streams: u32 = "20000", integer(1, 1_000_000), "Requests open at once on one HTTP/2 connection.";
        max_hold: Duration = "10m", duration(SECOND, DAY), "Longest hold that a caller can request.";
        default_hold: Duration = "30s", duration(0, DAY), "Hold when the request does not give one.";
        drain: Duration = "10s", duration(0, 10 * MINUTE), "How long a stopping server waits for its connections to end. Writes that are under way then get further time: see operations.";
    }

    [wake "wake": Wake] "The wake engine." {
        max_waiters: usize = "1000000", integer(1, 100_000_000), "Requests held at once; further ones get 503.";
        max_waiters_per_topic: usize = "200000", integer(1, 100_000_000), "Requests held at once on one topic; further ones get 503.";
        max_timers: usize = "1000000", integer(1, 100_000_000), "Timers in memory; the fallback finds what further ones would have woken.";
        fallback: Duration = "60s", duration(SECOND, HOUR), "How often each door rechecks all its waiters, in case a wake was lost.";
        fallback_degraded: Duration = "1s", duration(100 * MS, HOUR), "The same while the bus carries nothing.";
    }

    [bus "bus": Bus] "Wakes between nodes." {
        url: Option<Url> = "", Kind::Url { word: "", schemes: &["redis", "rediss"] }, "URL of the Redis that carries wakes between nodes. Empty: PostgreSQL `NOTIFY` when the store is PostgreSQL, else memory.";
        channel: String = "wakeline", Kind::Name { max_chars: 63 }, "Channel of the bus, the same for all nodes of an installation.";
        canary: Duration = "5s", duration(100 * MS, MINUTE), "How often a node tests the bus with a message to itself.";
    }

    [sqlite "sqlite": Sqlite] "The SQLite store." {
        readers: usize = "2", integer(1, 64), "Read connections.";
        max_batch: usize = "512", integer(1, 100_000), "Operations in one commit at most.";
        busy_timeout: Duration = "5s", duration(0, 10 * MINUTE), "How long to wait while another process locks the file.";
    }

    [postgres "postgres": Postgres] "The PostgreSQL store." {
        connections: usize = "4", integer(1, 1_000), "Connections for single statements; batches have four of their own.";
        max_batch: usize = "500", integer(1, 10_000), "Operations in one commit at most.";
        connect_timeout: Duration = "5s", duration(100 * MS, 5 * MINUTE), "Time limit for making a connection.";
        statement_timeout: Duration = "30s", duration(100 * MS, HOUR), "Time limit for a statement.";
    }

    [limits "limits": Limits] "Limits of memory." {
        connections_per_address: usize = "10000", integer(1, 10_000_000), "Connections open at once from one address (of IPv6, one /64 network); further ones get 503. This machine and `http.trusted_proxies` have no such limit.";
        requests_per_address: usize = "100000", integer(1, 100_000_000), "Requests under way at once from one address, held ones included; further ones get 429. The same exceptions.";
        requests_per_identity: usize = "100000", integer(1, 100_000_000), "Requests under way at once with tokens of one subject; further ones get 429.";
        body_memory: usize = "256MiB", bytes(MIB, 1_024 * GIB), "Memory for request bodies that are being read; further bodies wait, at most `http.body_timeout`, and then get 503.";
        body_memory_per_caller: usize = "64MiB", bytes(MIB, 1_024 * GIB), "Of this, for the bodies of one address, and for those with tokens of one subject; further ones wait as long and then get 429. A longer body takes all of it. This machine and `http.trusted_proxies` have no such limit by address.";
        pending_operations: usize = "100000", integer(1, 10_000_000), "Operations that wait for a commit; further requests get 503.";
    }

    [queue "queue": Queue] "The queue door." {
        max_batch: usize = "10000", integer(1, 100_000), "Messages in one pop at most.";
        max_items: usize = "10000", integer(1, 100_000), "Messages in one push at most.";
        max_name: usize = "255", integer(1, 1_024), "Characters in the name of a queue, partition or consumer group at most.";
        max_transaction_id: usize = "255", integer(1, 1_024), "Characters in a transaction id at most.";
        default_batch: usize = "200", integer(1, 100_000), "Messages in a pop that gives no `batch`.";
        max_partitions: usize = "1000", integer(1, 100_000), "Partitions in one pop at most.";
        lease: Duration = "300s", duration(SECOND, DAY), "Lease of popped messages of a queue that was not configured with a leaseTime.";
        max_lease: Duration = "24h", duration(SECOND, 30 * DAY), "Longest time by which a lease can be extended at once.";
        default_subscription: Subscription = "all", Kind::Choice(&["all", "new"]), "Where a new consumer group begins when its first pop does not say: with all messages, or with those pushed from then on.";
        encryption_key: Option<Secret> = "", optional_text(64), "Keys of queues with `encryptionEnabled`, separated by commas, 64 hexadecimal digits each: the first one encrypts, all of them decrypt. Empty: on SQLite a key is made in the data directory for the first such queue.", secret;
        sweep_interval: Duration = "30s", duration(100 * MS, DAY), "How often messages past their retention are removed.";
    }

    [jobs "jobs": Jobs] "The jobs and providers door." {
        secret: Option<Secret> = "", optional_text(32), "Secret that signs users' tokens. Empty: a random one, made once and kept in the store.", secret;
        token_lifetime: Duration = "1h", duration(SECOND, 30 * DAY), "Lifetime of a user's token.";
        admin_email: Option<String> = "", optional_text(3), "Email of a superuser, created at the first start and reset to the configured values at every start. On loopback with no login and no `admin_email`, everyone is a superuser, callers without a token included.";
        admin_password: Option<Secret> = "", optional_text(1), "Password of that superuser; at least `jobs.min_password`.", secret;
        min_password: usize = "0", integer(0, 1_024), "Fewest characters of a user's password. 0: 8 where the server listens beyond loopback, and 1, as zndraw-joblib has it, on loopback.";
        guests: bool = "false", Kind::Bool, "Allow guests (`POST /v1/auth/guest`).";
        keep_guests: Duration = "30d", duration(SECOND, 3_650 * DAY), "How long a guest without workers is kept; at least `jobs.token_lifetime`.";
        registration: bool = "false", Kind::Bool, "Allow registration (`POST /v1/auth/register`).";
        open_lists: bool = "false", Kind::Bool, "List jobs, workers, tasks and providers to callers without a token, as zndraw-joblib does.";
        categories: Vec<String> = "modifiers,selections,analysis,filesystem", Kind::List { min_chars: 1 }, "Categories that a job may have.";
        provider_categories: Vec<String> = "", Kind::List { min_chars: 1 }, "Categories that a provider may have. Empty: any.";
        worker_timeout: Duration = "60s", duration(100 * MS, DAY), "A worker without a heartbeat for this long counts as lost.";
        internal_timeout: Duration = "1h", duration(SECOND, 7 * DAY), "Time limit for a task of `@internal`.";
        internal_tasks: usize = "4", integer(1, 1_000), "Tasks of `@internal` that a node runs at once, at most.";
        keep_tasks: Duration = "7d", duration(SECOND, 3_650 * DAY), "How long completed tasks are kept.";
        require_workers: bool = "false", Kind::Bool, "Refuse a task with 409 when no worker has its job.";
        max_retries: u32 = "100", integer(0, 10_000), "Retries that a job can configure, for tasks whose worker was lost.";
        max_schema: usize = "256KiB", bytes(KIB, 16 * MIB), "Largest JSON Schema of a job or provider.";
        max_task_hold: Duration = "60s", duration(SECOND, DAY), "Longest hold of a claim or of a read of a task.";
        read_hold: Duration = "5s", duration(0, DAY), "Hold of a provider read when the request does not give one.";
        max_read_hold: Duration = "30s", duration(SECOND, DAY), "Longest hold of a provider read.";
        timeout_status: TimeoutStatus = "504", Kind::Choice(&["504", "404"]), "Status of a read that the provider did not answer in time.";
        result_ttl: Duration = "5m", duration(100 * MS, 30 * DAY), "How long a provider's result is kept when neither the upload nor the provider says.";
        error_ttl: Duration = "5s", duration(100 * MS, DAY), "How long a provider's error is kept.";
        inflight_ttl: Duration = "30s", duration(100 * MS, HOUR), "How long a provider is not sent the same request again.";
        max_result: usize = "64MiB", bytes(KIB, 16 * GIB), "Largest result of a provider.";
        upload_memory: usize = "256MiB", bytes(MIB, 64 * GIB), "Memory for results that are being uploaded to the store or Redis; further uploads wait.";
        results: ResultBackend = "store", Kind::Choice(&["store", "redis", "files"]), "Where providers' results are kept: the store, Redis, or files in the data directory.";
        results_by_category: Vec<String> = "", Kind::List { min_chars: 3 }, "The same for single categories, such as `frames=files`.";
        redis: Option<Url> = "", Kind::Url { word: "", schemes: &["redis", "rediss"] }, "URL of the Redis for results. Empty: the Redis of the bus.";
        redis_prefix: String = "wakeline:", text(1), "Prefix of the keys in that Redis.";
        files_size: usize = "1GiB", bytes(MIB, 1_024 * GIB), "Disk space for results; the least recently read ones are removed first.";
        filesystem_roots: Vec<String> = "", Kind::List { min_chars: 1 }, "Directories that the provider `@internal:filesystem:FilesystemRead` can read. Empty: no such provider.";
        filesystem_for_everybody: bool = "false", Kind::Bool, "Let users who are not superusers read those directories.";
        frame_bytes: usize = "32MiB", bytes(KIB, GIB), "Largest frame.";
        frame_keys: usize = "1000", integer(1, 65_536), "Keys of a frame at most.";
        request_frames: usize = "1000", integer(1, 100_000), "Frames in one append, or in one read by their numbers, at most.";
        room_copy: usize = "256MiB", bytes(MIB, 64 * GIB), "Size of the frames that a new room can copy from another.";
        chat_messages: usize = "1000", integer(0, 1_000_000), "Messages of a room's chat that are kept.";
        asked_frames: usize = "1000", integer(1, 100_000), "Frames of one read that can come from a provider.";
        asked_at_once: usize = "32", integer(1, 1_000), "Of these, requested at once.";
        asked_bytes: usize = "256MiB", bytes(MIB, 64 * GIB), "Size of these frames together.";
        room_frames: usize = "1000000", integer(1, 1_000_000_000), "Frames of a room at most.";
        max_sockets: usize = "10000", integer(1, 1_000_000), "Socket.IO connections at once.";
        socket_buffer: usize = "1024", integer(16, 65_536), "Events that can wait for a client; a client with more is disconnected.";
        ping_interval: Duration = "25s", duration(100 * MS, HOUR), "How often a Socket.IO client gets a ping.";
        ping_timeout: Duration = "20s", duration(100 * MS, HOUR), "How long a client can take to answer a ping.";
    }

    [feeds "feeds": Feeds] "The feed door." {
        policies: Option<String> = "", optional_text(1), "Directory with `*.policy` files (the rules who may save and see which facts), or with the empty file `no-security-policies`. Empty: every caller may save and see all facts.";
        authentication: Option<String> = "", optional_text(1), "Directory with `*.provider` files (the issuers whose tokens are accepted at `/jinaga`). Empty: the server's own login is used.";
        page_size: usize = "100", integer(1, 10_000), "Tuples in a page.";
        max_initial_pages: usize = "1000", integer(1, 1_000_000), "Pages that a stream sends before it lets other streams go on.";
        waitlist_cap: usize = "50000", integer(1, 10_000_000), "Facts that can wait for a stream; a stream with more is closed.";
        page_delay_every: usize = "10", integer(0, 1_000_000), "After this many pages a stream pauses if other streams wait. 0: never.";
        page_delay: Duration = "10ms", duration(0, MINUTE), "Length of that pause.";
        sync_delay: Duration = "500ms", duration(0, MINUTE), "How long after the last live page SYNC is sent.";
        heartbeat: Duration = "30s", duration(100 * MS, HOUR), "How often an idle stream sends a blank line.";
        slow_reader: Duration = "1m", duration(100 * MS, DAY), "How long a client can leave a stream unread before it is closed.";
        max_age: Duration = "0s", duration(0, 30 * DAY), "Longest life of a stream. 0: no limit.";
        max_body: usize = "64MiB", bytes(KIB, 4 * GIB), "Largest body of JSON or text at `/jinaga`.";
        max_graph: usize = "512MiB", bytes(KIB, 16 * GIB), "Largest graph of facts in one save.";
        max_facts: usize = "1000000", integer(1, 100_000_000), "Facts in one save at most.";
        max_references: usize = "100000", integer(1, 10_000_000), "Facts requested in one load at most.";
        keep_definitions: Duration = "90d", duration(DAY, 3_650 * DAY), "How long a feed's definition is kept after its last use.";
    }

    [durable "durable": Durable] "The view of a durable schema." {
        schema: Option<String> = "", optional_text(1), "Schema of `wakeline-durable` that is shown under `/v1/durable`. Empty: none, or `durable` where `durable.database` is given.";
        database: Option<Url> = "", Kind::Url { word: "", schemes: &["postgres", "postgresql"] }, "URL of the PostgreSQL database with that schema. Empty: the store's database.";
    }

    [log "log": Log] "The log." {
        format: LogFormat = "text", Kind::Choice(&["text", "json"]), "Format of log lines.";
        level: String = "info", Kind::LogLevel, "A level, or directives such as `info,wakeline_wake=debug`.";
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

    /// How a mistake describes a wrong value of this setting.
    pub(super) fn describe(&self, wrong: WrongValue) -> String {
        match wrong {
            WrongValue::Value(_) if self.secret => "a value that is not shown".to_owned(),
            WrongValue::Value(text) | WrongValue::Described(text) => text,
        }
    }
}

/// By its key, in snake case or as Jinaga writes it: `feeds.maxInitialPages`.
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
