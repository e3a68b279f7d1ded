//! A database with providers on it, and the items that the tests send.

use std::{future::Future, time::Duration};

use duroxide::{
    Event, EventKind, INITIAL_EXECUTION_ID,
    providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, SemverRange,
        SessionFetchConfig, TagFilter, WorkItem,
    },
};
use semver::Version;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_postgres::{Client, Row};
use wakeline_durable::{LongPollConfig, MIGRATIONS, Options, PostgresProvider};
use wakeline_store::postgres::{Connector, ListenConnection, Options as PoolOptions};
use wakeline_testkit::{PostgresDatabase, url_for};

use crate::proxy::Proxy;

/// The schema that the database's template has.
pub(crate) const SCHEMA: &str = "wakeline";
/// How long a fetch is held: an item that it returns was brought by a wake.
pub(crate) const POLL: Duration = Duration::from_secs(30);
/// A lease that outlives every test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// How long a test waits for a condition: only a hang takes longer, a slow machine does not.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Orchestration = (OrchestrationItem, String, u32);
pub(crate) type Activity = (WorkItem, String, u32);

pub(crate) struct Fixture {
    pub(crate) database: PostgresDatabase,
    pub(crate) proxy: Proxy,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::of(PostgresDatabase::new(&[MIGRATIONS]).await)
    }

    /// With a provider that is connected through the proxy.
    pub(crate) async fn with_provider() -> (Self, PostgresProvider) {
        let fixture = Self::new().await;
        let provider = fixture.proxied().await;
        (fixture, provider)
    }

    /// The same after [`Self::until_live`]: the provider has made all its connections.
    pub(crate) async fn live() -> (Self, PostgresProvider) {
        let (fixture, provider) = Self::with_provider().await;
        fixture.until_live(&provider).await;
        (fixture, provider)
    }

    /// The same with a provider of another process, as it were.
    pub(crate) async fn live_pair() -> (Self, PostgresProvider, PostgresProvider) {
        let (fixture, provider) = Self::with_provider().await;
        let other = fixture.direct().await;
        fixture.until_live(&provider).await;
        (fixture, provider, other)
    }

    /// On a server that the test has started.
    pub(crate) async fn on(server: &str) -> Self {
        Self::of(PostgresDatabase::on(server, &[MIGRATIONS]).await)
    }

    fn of(database: PostgresDatabase) -> Self {
        let config: tokio_postgres::Config = database.url().parse().expect("a URL");
        let proxy = Proxy::start(config.get_ports()[0]);
        Self { database, proxy }
    }

    /// The URL through the proxy.
    pub(crate) fn proxied_url(&self) -> String {
        let server = format!(
            "postgres://postgres@127.0.0.1:{}/postgres",
            self.proxy.port()
        );
        url_for(&server, self.database.name())
    }

    /// A provider that is connected through the proxy.
    pub(crate) async fn proxied(&self) -> PostgresProvider {
        self.proxied_with(options()).await
    }

    pub(crate) async fn proxied_with(&self, options: Options) -> PostgresProvider {
        provider(&self.proxied_url(), options).await
    }

    /// A provider that shares nothing with the proxied one but the database: see [`crate::proxy`].
    pub(crate) async fn direct(&self) -> PostgresProvider {
        provider(&self.database.url(), options()).await
    }

    fn connector(&self) -> Connector {
        Connector::new(&self.database.url(), &PoolOptions::default()).expect("the URL is valid")
    }

    /// A connection without a provider.
    pub(crate) async fn client(&self) -> Client {
        self.connector().connect().await.expect("it answers")
    }

    pub(crate) async fn line(&self) -> ListenConnection {
        self.connector().listen().await.expect("it answers")
    }

    /// Runs a statement in which `@schema@` stands for the schema.
    pub(crate) async fn sql(&self, statement: &str) -> Vec<Row> {
        let statement = statement.replace("@schema@", SCHEMA);
        let client = self.client().await;
        client.query(&statement, &[]).await.expect("it can be done")
    }

    pub(crate) async fn number(&self, statement: &str) -> i64 {
        self.sql(statement).await[0].get(0)
    }

    /// As [`parked`], when the proxied provider has also asked the database in vain.
    pub(crate) async fn parked<T: Send + 'static>(
        &self,
        provider: &PostgresProvider,
        waiting: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let task = parked(provider, waiting).await;
        let mut before = 0;
        // The same number twice: in between, every task that was ready to run has run.
        until("it has asked the database", async || {
            let asked = self.proxy.statements().len();
            let is_idle = self.proxy.is_idle() && asked == before;
            before = asked;
            is_idle
        })
        .await;
        task
    }

    /// Waits until the bus of the proxied provider is live. From then on only a wake makes a dispatcher
    /// ask the database again: the short fallback interval of the start is over.
    pub(crate) async fn until_live(&self, provider: &PostgresProvider) {
        const SHORT_INTERVAL: Duration = Duration::from_millis(1_200);
        until("the bus is live", async || {
            let asked = || self.proxy.count(".fetch_") + self.proxy.count(".due()");
            let fetched = async |poll| {
                let got = provider.fetch_orchestration_item(LONG, poll, None).await;
                assert!(got.expect("it can be asked").is_none());
            };
            fetched(Duration::from_millis(20)).await;
            let before = asked();
            fetched(SHORT_INTERVAL).await;
            asked() == before
        })
        .await;
    }
}

pub(crate) fn options() -> Options {
    Options {
        schema: SCHEMA.into(),
        ..Options::default()
    }
}

/// With another interval of the fallback.
pub(crate) fn with_fallback(interval: Duration) -> Options {
    Options {
        long_poll: LongPollConfig {
            fallback_interval: interval,
            ..LongPollConfig::default()
        },
        ..options()
    }
}

pub(crate) async fn provider(url: &str, options: Options) -> PostgresProvider {
    PostgresProvider::connect_with(url, options)
        .await
        .expect("the database can be opened")
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Starts a wait, and returns when the provider has one more waiter.
pub(crate) async fn parked<T: Send + 'static>(
    provider: &PostgresProvider,
    waiting: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let before = provider.waiting();
    let task = tokio::spawn(waiting);
    until("it waits", async || provider.waiting() > before).await;
    task
}

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Work".into(),
        input: "{}".into(),
        version: Some("1.0.0".into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    tagged(instance, id, None, None)
}

pub(crate) fn tagged(
    instance: &str,
    id: u64,
    session: Option<&str>,
    tag: Option<&str>,
) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        name: "Do".into(),
        input: "{}".into(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}

/// A timer that fires in `delay`, and when that is.
pub(crate) fn timer(instance: &str, id: u64, delay: Duration) -> (WorkItem, u64) {
    let fire_at_ms = now_ms() + u64::try_from(delay.as_millis()).expect("short");
    let timer = WorkItem::TimerFired {
        instance: instance.into(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        fire_at_ms,
    };
    (timer, fire_at_ms)
}

/// The database runs on the same machine and has the same clock.
pub(crate) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(now.expect("after 1970").as_millis()).expect("before the year 500 million")
}

pub(crate) fn session(owner: &str, lock_timeout: Duration) -> SessionFetchConfig {
    SessionFetchConfig {
        owner_id: owner.into(),
        lock_timeout,
    }
}

pub(crate) async fn enqueue(provider: &PostgresProvider, item: WorkItem) {
    let sent = provider.enqueue_for_orchestrator(item, None).await;
    sent.expect("it can be sent");
}

pub(crate) async fn schedule(provider: &PostgresProvider, item: WorkItem) {
    let scheduled = provider.enqueue_for_worker(item).await;
    scheduled.expect("it can be scheduled");
}

/// Waits for an orchestration to work on.
pub(crate) fn fetch(
    provider: &PostgresProvider,
    lease: Duration,
) -> impl Future<Output = Orchestration> + Send + 'static {
    let provider = provider.clone();
    async move {
        let got = provider.fetch_orchestration_item(lease, POLL, None).await;
        got.expect("it can be fetched")
            .expect("it came before the fetch's end")
    }
}

/// Waits for an activity without a tag or a session.
pub(crate) fn fetch_activity(
    provider: &PostgresProvider,
    lease: Duration,
) -> impl Future<Output = Activity> + Send + 'static {
    fetch_activity_of(provider, lease, None, TagFilter::DefaultOnly)
}

pub(crate) fn fetch_activity_of(
    provider: &PostgresProvider,
    lease: Duration,
    session: Option<SessionFetchConfig>,
    tags: TagFilter,
) -> impl Future<Output = Activity> + Send + 'static {
    let provider = provider.clone();
    async move {
        let got = provider
            .fetch_work_item(lease, POLL, session.as_ref(), &tags)
            .await;
        got.expect("it can be fetched")
            .expect("it came before the fetch's end")
    }
}

/// Fetches without waiting.
pub(crate) async fn fetch_now(provider: &PostgresProvider) -> Option<Orchestration> {
    let got = provider
        .fetch_orchestration_item(LONG, Duration::ZERO, None)
        .await;
    got.expect("it can be fetched")
}

pub(crate) async fn fetch_activity_now(provider: &PostgresProvider) -> Option<Activity> {
    let got = provider
        .fetch_work_item(LONG, Duration::ZERO, None, &TagFilter::DefaultOnly)
        .await;
    got.expect("it can be fetched")
}

pub(crate) fn event(instance: &str, number: u64, kind: EventKind) -> Event {
    Event::with_event_id(number, instance, INITIAL_EXECUTION_ID, None, kind)
}

pub(crate) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Work".into(),
        version: "1.0.0".into(),
        input: "{}".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(instance, 1, kind)
}

pub(crate) fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Work".into()),
        orchestration_version: Some("1.0.0".into()),
        ..ExecutionMetadata::default()
    }
}

/// The arguments of an acknowledgement of a turn.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) events: Vec<Event>,
    pub(crate) activities: Vec<WorkItem>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
}

pub(crate) async fn end_turn(provider: &PostgresProvider, token: &str, turn: Turn) {
    let ended = provider
        .ack_orchestration_item(
            token,
            INITIAL_EXECUTION_ID,
            turn.events,
            turn.activities,
            turn.messages,
            turn.metadata,
            vec![],
        )
        .await;
    ended.expect("the lease is held");
}

/// The first turn of an orchestration, which schedules nothing.
pub(crate) fn first_turn(instance: &str) -> Turn {
    Turn {
        events: vec![started(instance)],
        metadata: named(),
        ..Turn::default()
    }
}

/// The only turn of an orchestration that completes.
pub(crate) fn last_turn(instance: &str, output: &str) -> Turn {
    Turn {
        events: vec![started(instance), event(instance, 2, completed(output))],
        metadata: ExecutionMetadata {
            status: Some("Completed".into()),
            output: Some(output.into()),
            ..named()
        },
        ..Turn::default()
    }
}

pub(crate) fn completed(output: &str) -> EventKind {
    let output = output.into();
    EventKind::OrchestrationCompleted { output }
}

/// Starts an instance and runs its first turn, which pins it to a version of duroxide.
pub(crate) async fn begin_pinned(provider: &PostgresProvider, instance: &str, major: u64) {
    enqueue(provider, start(instance)).await;
    let (_, token, _) = fetch_now(provider).await.expect("it was sent");
    let mut turn = first_turn(instance);
    turn.metadata.pinned_duroxide_version = Some(Version::new(major, 0, 0));
    end_turn(provider, &token, turn).await;
}

/// The filter of a dispatcher that can replay one version of duroxide.
pub(crate) fn replays(major: u64) -> DispatcherCapabilityFilter {
    let versions = SemverRange::new(Version::new(major, 0, 0), Version::new(major, 9, 9));
    DispatcherCapabilityFilter {
        supported_duroxide_versions: vec![versions],
    }
}

/// Starts an instance and runs its first turn.
pub(crate) async fn begin(provider: &PostgresProvider, instance: &str) {
    enqueue(provider, start(instance)).await;
    let (item, token, _) = fetch_now(provider).await.expect("it was sent");
    assert_eq!(item.instance, instance);
    end_turn(provider, &token, first_turn(instance)).await;
}
