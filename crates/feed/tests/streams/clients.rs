//! Many clients and writers at once, on several nodes where there can be.

use std::{collections::BTreeSet, sync::Arc};

use wakeline_feed::fact::Reference;
use wakeline_testkit::soon;

use crate::{
    database::Database,
    facts::{POSTS, post, posts, references, site},
    node::Node,
    stream_fixture::received,
};

const CLIENTS: usize = 20;
const WRITERS: usize = 4;
const SAVES: usize = 40;

pub(crate) async fn multiple_concurrent_clients(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 250);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let path = node.declare(POSTS, &[&home]).await;
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
        assert_eq!(received(&frames), references(&old));
        streams.push(stream);
    }
    let new = post(&home, "new");
    node.add(&new).await;
    for mut stream in streams {
        let frames = stream.until_sync().await;
        assert_eq!(received(&frames), references(std::slice::from_ref(&new)));
    }
    node.is_left().await;
}

/// Whatever the writers save is what every client has, wherever it listens and whenever it came.
pub(crate) async fn twenty_clients_have_what_four_writers_saved(database: Database) {
    let nodes: Vec<_> = Node::several(&database, 2).await;
    let nodes: Arc<[Node]> = nodes.into();
    let home = site("home");
    nodes[0].save(std::slice::from_ref(&home)).await;
    let path = nodes[0].declare(POSTS, &[&home]).await;
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
                let mut had: Vec<Reference> = Vec::new();
                let mut bookmark = String::new();
                let mut request_text = 0;
                while had.len() < WRITERS * SAVES {
                    // Some come again and again, to the one node and to the other.
                    let node = &nodes[(client + request_text) % nodes.len()];
                    request_text += 1;
                    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
                    let comes_again = client % 2 == 0 && request_text < 10;
                    let wanted = if comes_again { 1 } else { WRITERS * SAVES };
                    let mut received = 0;
                    while received < wanted && had.len() < WRITERS * SAVES {
                        let frame = stream.next().await.unwrap();
                        received += frame.references.len();
                        had.extend(frame.references);
                        bookmark = frame.bookmark;
                    }
                }
                had
            })
        })
        .collect();
    let mut saved = BTreeSet::new();
    for writer in writers {
        saved.extend(soon("a writer", writer).await.unwrap());
    }
    for client in clients {
        let had = soon("a client", client).await.unwrap();
        // Each once: no bookmark goes back.
        assert_eq!(had.len(), saved.len());
        assert_eq!(had.into_iter().collect::<BTreeSet<_>>(), saved);
    }
}
