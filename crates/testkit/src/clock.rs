use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

/// Where a stopped clock begins: anything but zero.
const BEGINNING: i64 = 1_700_000_000_000_000;
const RUNNING: i64 = 0;

/// The clock of a store on SQLite, in microseconds since 1970. It stands still until a test moves it
/// on or lets it run.
#[derive(Clone, Debug)]
pub struct TestClock {
    micros: Arc<AtomicI64>,
    step: i64,
}

impl TestClock {
    #[must_use]
    pub fn stopped() -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(BEGINNING)),
            step: 0,
        }
    }

    /// Each reading is a microsecond later, so that what is made later is newer, as on PostgreSQL.
    #[must_use]
    pub fn stepping() -> Self {
        Self {
            step: 1,
            ..Self::stopped()
        }
    }

    #[must_use]
    pub fn now(&self) -> i64 {
        match self.micros.load(Ordering::Relaxed) {
            RUNNING => {
                let time = SystemTime::UNIX_EPOCH.elapsed();
                let micros = time.expect("it is after 1970").as_micros();
                i64::try_from(micros).expect("it is before the year 290000")
            }
            _ => self.micros.fetch_add(self.step, Ordering::Relaxed),
        }
    }

    pub fn advance(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).expect("a time in a test is short");
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// From here on it is the real clock, as PostgreSQL's always is.
    pub fn let_run(&self) {
        self.micros.store(RUNNING, Ordering::Relaxed);
    }

    /// As a store takes it.
    #[must_use]
    pub fn reader(&self) -> Arc<dyn Fn() -> i64 + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
