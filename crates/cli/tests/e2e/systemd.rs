//! The messages that the server sends to systemd, on a socket of the test.

use std::os::unix::net::UnixDatagram;

use crate::{fixture::Fixture, server::PATIENCE};

#[tokio::test]
async fn systemd_is_notified_when_the_server_is_ready_and_when_it_stops() {
    let fixture = Fixture::sqlite();
    let path = fixture.data().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut text = [0; 200];
        let length = socket.recv(&mut text).expect("a word to systemd");
        String::from_utf8_lossy(&text[..length]).trim().to_owned()
    };
    let path = path.display().to_string();
    let mut server = fixture.serve().env("NOTIFY_SOCKET", &path).start().await;
    assert_eq!(hear(), "READY=1");
    assert_eq!(server.get("/readyz").await.status, 200);
    server.signal("TERM");
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(server.exit().await.code(), Some(0));
}
