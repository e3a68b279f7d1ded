//! Connections that are no sockets, for `crates/fuzz`.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{Router, body::Body, response::Response};
use http::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex, split},
    sync::Semaphore,
};
use wakeline_web::{ClientAddress, UnsentAnswers};

use super::{Caller, Client, ConnectionContext, protocol, serve_http1, serve_http2};
use crate::{callers::CallerCounts, config::Config, requests::Gate, stopping::StopSignal};

/// A caller on this machine.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Bytes on their way in each direction.
const BUFFER: usize = 64 << 10;

pub(crate) struct InMemoryListener {
    shared: Arc<ConnectionContext>,
    room: Arc<Semaphore>,
    stopping: StopSignal,
}

impl InMemoryListener {
    pub(crate) fn new(router: Router, gate: Gate, config: &Config, stopping: StopSignal) -> Self {
        let most = config.limits.connections_per_address;
        Self {
            shared: Arc::new(ConnectionContext {
                router,
                gate,
                http: config.http.clone(),
                per_address: CallerCounts::new(most, most),
            }),
            room: Arc::new(Semaphore::new(config.http.max_connections)),
            stopping,
        }
    }

    pub(crate) async fn answer(&self, mut request: Request<Body>) -> Response {
        let caller = Caller {
            address: ClientAddress(ADDRESS),
            unsent: UnsentAnswers::of_connection(false),
        };
        caller.put_into(&mut request);
        self.shared.gate.pass(request, &self.shared.router).await
    }

    /// What is answered to a client that sends these bytes and then ends; the first `most` bytes.
    pub(crate) async fn connection(&self, sent: &[u8], most: usize) -> Vec<u8> {
        let (near, far) = duplex(BUFFER);
        let serving = async {
            let patience = self.shared.http.header_timeout;
            let Ok((stream, is_http2)) = protocol(near, patience).await else {
                return;
            };
            let client = Client {
                stream,
                is_http2,
                address: ADDRESS,
            };
            let (shared, stopping) = (self.shared.clone(), self.stopping.clone());
            let Ok(seat) = shared.seat(&self.room, ADDRESS) else {
                return;
            };
            if is_http2 {
                serve_http2(shared, client, stopping, seat).await;
            } else {
                serve_http1(shared, client, stopping, seat).await;
            }
        };
        let (mut reading, mut writing) = split(far);
        let sending = async {
            let _ = writing.write_all(sent).await;
            let _ = writing.shutdown().await;
        };
        let receiving = async {
            let mut answered = Vec::new();
            let mut buffer = vec![0; BUFFER];
            while let Ok(count @ 1..) = reading.read(&mut buffer).await {
                let kept = count.min(most - answered.len());
                answered.extend_from_slice(&buffer[..kept]);
            }
            answered
        };
        let ((), (), answered) = tokio::join!(serving, sending, receiving);
        answered
    }
}
