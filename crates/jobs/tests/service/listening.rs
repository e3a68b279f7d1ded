//! Connections as `crates/server` serves them.

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

pub(crate) async fn accept(listener: TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, router.clone()));
    }
}

async fn serve(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let _ = connection.with_upgrades().await;
}
