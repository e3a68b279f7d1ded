//! What is counted, as a sink of metrics gets it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use wakeline_feed::stream::Limits;
use wakeline_testkit::soon;

use crate::{
    database::Database,
    facts::{POSTS, feed, posts, site},
    stream_fixture::{StreamFixture, long_limits, until_sync},
};

/// What was added up, and every value that was recorded.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<HashMap<String, Vec<f64>>>>);

struct MetricValue {
    sink: Sink,
    name: String,
}

impl Sink {
    fn metric(&self, key: &Key) -> Arc<MetricValue> {
        let labels: Vec<_> = key.labels().map(metrics::Label::value).collect();
        let name = [&[key.name()], &labels[..]].concat().join(" ");
        let sink = self.clone();
        Arc::new(MetricValue { sink, name })
    }

    fn values(&self, name: &str) -> Vec<f64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().unwrap_or_default()
    }

    fn sum(&self, name: &str) -> f64 {
        self.values(name).iter().sum()
    }
}

impl MetricValue {
    fn observe(&self, value: f64) {
        let mut all = self.sink.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(self.name.clone()).or_default().push(value);
    }
}

impl CounterFn for MetricValue {
    fn increment(&self, value: u64) {
        self.observe(value as f64);
    }

    fn absolute(&self, _: u64) {
        panic!("{} is counted up", self.name);
    }
}

impl GaugeFn for MetricValue {
    fn increment(&self, value: f64) {
        self.observe(value);
    }

    fn decrement(&self, value: f64) {
        self.observe(-value);
    }

    fn set(&self, _: f64) {
        panic!("{} goes up and down", self.name);
    }
}

impl HistogramFn for MetricValue {
    fn record(&self, value: f64) {
        self.observe(value);
    }
}

impl Recorder for Sink {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

pub(crate) async fn telemetry_validation(database: Database) {
    // For this thread, which is the one that the sessions run on.
    let sink = Sink::default();
    let _guard = metrics::set_default_local_recorder(&sink);
    let narrow = Limits {
        waitlist_cap: 4,
        ..long_limits()
    };
    let fixture = StreamFixture::with(database, 10, narrow).await;
    let home = site("home");
    let mut all = vec![home.clone()];
    all.extend(posts(&home, "old", 25));
    fixture.save(&all).await;
    let mut stream = fixture.stream(&feed(POSTS, &[&home]));
    assert_eq!(sink.sum("wakeline_feed_streams"), 1.0);
    until_sync(&mut stream).await;
    assert_eq!(sink.values("wakeline_feed_time_to_sync_seconds").len(), 1);
    fixture.save_and_tell(&posts(&home, "new", 3)).await;
    until_sync(&mut stream).await;
    fixture.save_and_tell(&posts(&home, "too many", 5)).await;
    assert!(soon("the end", stream.next()).await.is_none());
    let told = stream.telemetry();
    assert_eq!((told.frames, told.pages, told.references), (6, 4, 28));
    assert_eq!((told.cycles, told.syncs, told.restarts), (2, 2, 0));
    assert!(told.seconds_to_sync.is_some());
    // While it is still there: a stream may last for days.
    for (name, expected) in [
        ("wakeline_feed_frames_total", 6.0),
        ("wakeline_feed_pages_total", 4.0),
        ("wakeline_feed_references_total", 28.0),
        ("wakeline_feed_cycles_total", 2.0),
        ("wakeline_feed_syncs_total", 2.0),
        ("wakeline_feed_restarts_total", 0.0),
    ] {
        assert_eq!(sink.sum(name), expected, "{name}");
    }
    drop(stream);
    assert_eq!(sink.sum("wakeline_feed_streams"), 0.0);
    assert_eq!(sink.sum("wakeline_feed_frames_total"), 6.0);
    assert_eq!(sink.sum("wakeline_feed_dropped_total overrun"), 1.0);
    assert_eq!(sink.values("wakeline_feed_waitlist_peak"), [4.0]);
    assert_eq!(sink.values("wakeline_feed_time_to_sync_seconds").len(), 1);
}
