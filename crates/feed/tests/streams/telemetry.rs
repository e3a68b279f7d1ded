//! The numbers of a stream, in its log line and in the metrics.

use metrics_exporter_prometheus::PrometheusBuilder;
use wakeline_feed::stream::Limits;
use wakeline_testkit::soon;

use crate::{
    blog::{POSTS, feed, posts, site},
    database::Database,
    stream_fixture::{StreamFixture, long_limits, until_sync},
};

pub(crate) async fn telemetry_validation(database: Database) {
    let recorder = PrometheusBuilder::new().build_recorder();
    // For this thread, on which the streams run.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let metric = |name: &str| -> f64 {
        let text = recorder.handle().render();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    };
    let narrow = Limits {
        waitlist_cap: 4,
        ..long_limits()
    };
    let fixture = StreamFixture::with(database, 10, narrow).await;
    let home = site("home");
    fixture
        .save(&[vec![home.clone()], posts(&home, "old", 25)].concat())
        .await;
    let mut stream = fixture.stream(&feed(POSTS, &[&home]));
    assert_eq!(metric("wakeline_feed_streams"), 1.0);
    until_sync(&mut stream).await;
    assert_eq!(metric("wakeline_feed_time_to_sync_seconds_count"), 1.0);
    fixture.save_and_follow(&posts(&home, "new", 3)).await;
    until_sync(&mut stream).await;
    fixture.save_and_follow(&posts(&home, "too many", 5)).await;
    assert!(soon("the end", stream.next()).await.is_none());
    let numbers = stream.telemetry();
    assert_eq!((numbers.frames, numbers.pages), (6, 4));
    assert_eq!((numbers.references, numbers.cycles), (28, 2));
    assert_eq!((numbers.syncs, numbers.restarts), (2, 0));
    assert!(numbers.seconds_to_sync.is_some());
    // Before the stream is dropped: it may last for days.
    for (name, expected) in [
        ("wakeline_feed_frames_total", 6.0),
        ("wakeline_feed_pages_total", 4.0),
        ("wakeline_feed_references_total", 28.0),
        ("wakeline_feed_cycles_total", 2.0),
        ("wakeline_feed_syncs_total", 2.0),
        ("wakeline_feed_restarts_total", 0.0),
    ] {
        assert_eq!(metric(name), expected, "{name}");
    }
    drop(stream);
    for (name, expected) in [
        ("wakeline_feed_streams", 0.0),
        ("wakeline_feed_frames_total", 6.0),
        ("wakeline_feed_dropped_total{reason=\"overrun\"}", 1.0),
        ("wakeline_feed_waitlist_peak_count", 1.0),
        ("wakeline_feed_waitlist_peak_sum", 4.0),
        ("wakeline_feed_time_to_sync_seconds_count", 1.0),
    ] {
        assert_eq!(metric(name), expected, "{name}");
    }
}
