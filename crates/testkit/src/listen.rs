//! Routes on a listener of the test's own.

use std::net::SocketAddr;

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

/// Serves the routes on a free loopback port as `wakeline-server` does: HTTP/1.1 with upgrades.
pub async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a loopback port is free");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, router.clone()));
        }
    });
    address
}

async fn serve(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // A client that hangs up is no failure of the test.
    let _ = connection.with_upgrades().await;
}
