//! Many clients and writers at once, on several nodes where there can be.

use std::{collections::BTreeSet, sync::Arc};

use wakeline_feed::fact::Reference;
use wakeline_testkit::soon;

use crate::{
    blog::{post, references},
    database::Database,
    node::{Blog, Node},
    stream_fixture::received,
};

const CLIENTS: usize = 20;
const WRITERS: usize = 4;
const SAVES: usize = 40;

pub(crate) async fn multiple_concurrent_clients(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, path } = node.blog(250).await;
    let node = Arc::new(node);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (node, path) = (node.clone(), path.clone());
            tokio::spawn(async move {
                let mut stream = node.stream(&path).await;
                let frames = stream.until_sync().await;
                (stream, frames)
            })
        })
        .collect();
    let mut streams = Vec::new();
    for client in clients {
        let (stream, frames) = soon("a client's SYNC", client).await.unwrap();
        let sizes: Vec<usize> = frames.iter().map(|frame| frame.references.len()).collect();
        assert_eq!(sizes, [100, 100, 50, 0]);
        assert_eq!(received(&frames), references(&posts));
        streams.push(stream);
    }
    let new = post(&home, "new");
    node.add(&new).await;
    for mut stream in streams {
        let frames = stream.until_sync().await;
        assert_eq!(received(&frames), references(std::slice::from_ref(&new)));
    }
    node.no_streams_left().await;
}

/// Every client gets all that the writers save, on either node and whenever it connects.
pub(crate) async fn twenty_clients_get_the_facts_of_four_writers(database: Database) {
    let nodes: Arc<[Node]> = Node::several(&database, 2).await.into();
    let Blog { home, path, .. } = nodes[0].blog(0).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (nodes, home) = (nodes.clone(), home.clone());
            tokio::spawn(async move {
                let mut saved = Vec::new();
                for number in 0..SAVES {
                    let node = &nodes[(writer + number) % nodes.len()];
                    let new = post(&home, &format!("{writer} {number}"));
                    node.add(&new).await;
                    saved.push(new.reference);
                }
                saved
            })
        })
        .collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (nodes, path) = (nodes.clone(), path.clone());
            tokio::spawn(async move {
                let mut all: Vec<Reference> = Vec::new();
                let mut bookmark = String::new();
                let mut connections = 0;
                while all.len() < WRITERS * SAVES {
                    // Half of the clients connect several times, to one node and to the other.
                    let node = &nodes[(client + connections) % nodes.len()];
                    connections += 1;
                    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
                    let reconnects = client % 2 == 0 && connections < 10;
                    let wanted = if reconnects { 1 } else { WRITERS * SAVES };
                    let mut received = 0;
                    while received < wanted && all.len() < WRITERS * SAVES {
                        let frame = stream.next().await.unwrap();
                        received += frame.references.len();
                        all.extend(frame.references);
                        bookmark = frame.bookmark;
                    }
                }
                all
            })
        })
        .collect();
    let mut saved = BTreeSet::new();
    for writer in writers {
        saved.extend(soon("a writer", writer).await.unwrap());
    }
    for client in clients {
        let all = soon("a client", client).await.unwrap();
        // Each once: no bookmark goes back.
        assert_eq!(all.len(), saved.len());
        assert_eq!(BTreeSet::from_iter(all), saved);
    }
}
