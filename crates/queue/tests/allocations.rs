//! The allocations of a push must not grow with the number of sealed queues that the server knows.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use wakeline_bus::Bus;
use wakeline_queue::{
    Limits, Queue,
    message::NewMessage,
    options::Options,
    queue_admin::ConfigureRequest,
    seal::Sealer,
    store::sqlite::{MIGRATIONS, SqliteStore, system_clock},
};
use wakeline_testkit::SqliteDatabase;
use wakeline_wake::Engine;

const SEALED: usize = 1_000;
const PUSHES: usize = 20;

struct CountingAllocator;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the calls are counted.
#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn message(queue: &str) -> NewMessage {
    NewMessage {
        queue: queue.to_owned(),
        partition: "p".to_owned(),
        payload: "1".into(),
        ..NewMessage::default()
    }
}

fn sealed(queue: String) -> ConfigureRequest {
    ConfigureRequest {
        queue,
        namespace: None,
        task: None,
        options: Options {
            is_sealed: true,
            ..Options::default()
        },
        given: serde_json::Map::new(),
        made_of: None,
    }
}

#[tokio::test]
async fn a_push_does_not_copy_the_names_of_sealed_queues() {
    let file = SqliteDatabase::new();
    let store = SqliteStore::new(file.open(&[MIGRATIONS]), system_clock());
    let engine = Engine::new(wakeline_wake::Limits::default());
    let bus = Bus::local(engine.clone());
    let sealer = Sealer::from_hex(&"0a".repeat(32));
    let door = Queue::new(
        std::sync::Arc::new(store),
        engine,
        bus,
        Limits::default(),
        sealer,
    );
    let names: Vec<String> = (0..SEALED)
        .map(|number| format!("sealed-{number}"))
        .collect();
    join_all(
        names
            .iter()
            .map(|name| door.configure(sealed(name.clone()))),
    )
    .await;
    // The first pushes are refused, by which the server learns that the queues are sealed.
    let secrets = names.iter().map(|name| message(name)).collect();
    let pushed = door.push(secrets).await.unwrap();
    assert!(pushed.iter().all(Result::is_ok), "{pushed:?}");
    door.push(vec![message("plain")]).await.unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..PUSHES {
        door.push(vec![message("plain")]).await.unwrap();
    }
    let each = (ALLOCATIONS.load(Ordering::Relaxed) - before) / PUSHES;
    assert!(each < SEALED, "{each} allocations for a push");
}
