//! The bus of the processes on one database: the door's name, the channel of its wakes, and the topic
//! of the dispatchers of orchestrations.

use std::{future::Future, io, sync::Arc, time::Duration};

use tokio::{runtime::Builder, sync::oneshot, time::Instant};
use wakeline_bus::{Bus, Options};
use wakeline_store::postgres::Connector;
use wakeline_wake::{Engine, Topic, Wake};

pub(crate) const DOOR: &str = "durable";

const CHANNEL: &str = "wakeline_durable";
/// The interval of the bus' health check. It is long because an idle process should cost next to
/// nothing; wakes that a dead connection has lost are found by the fallback.
const CANARY: Duration = Duration::from_secs(60);

/// The kind of the topic that dispatchers of orchestrations wait for.
pub(crate) const ORCHESTRATION: &str = "orchestration";

/// The thread of a bus. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BusThread {
    _running: oneshot::Sender<()>,
}

impl BusThread {
    /// A bus with its wake engine on a thread of their own, where `background` runs, too.
    pub(crate) fn start<F>(
        connector: &Connector,
        engine: &Arc<Engine>,
        background: impl FnOnce(Arc<Bus>) -> F,
    ) -> io::Result<(Arc<Bus>, Self)>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let bus = {
            let _entered = runtime.enter();
            let options = Options {
                channel: CHANNEL.into(),
                canary: CANARY,
            };
            Bus::postgres(engine.clone(), connector.clone(), &options)
        };
        runtime.spawn(engine.clone().run());
        runtime.spawn(background(bus.clone()));
        let (running, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("wakeline-durable".into())
            .spawn(move || {
                // Nothing is sent: the sender is dropped.
                let _ = runtime.block_on(ended);
            })?;
        Ok((bus, Self { _running: running }))
    }
}

/// A topic begins with the schema, because all providers of a database share one bus.
pub(crate) fn topic(schema: &str, kind: &str, name: &str) -> Topic {
    Topic::new(DOOR, [schema, kind, name])
}

/// For messages that can be fetched from `count` mailboxes of the schema.
pub(crate) fn wake_orchestrations(schema: &str, count: u32) -> Wake {
    Wake::count([topic(schema, ORCHESTRATION, "")], count)
}

/// Waits at most `timeout` until all writes of this process have ended and their wakes have been sent.
pub(crate) async fn flush(bus: &Bus, timeout: Duration) {
    let began = Instant::now();
    bus.finish_writes(timeout).await;
    bus.flush(timeout.saturating_sub(began.elapsed())).await;
}
