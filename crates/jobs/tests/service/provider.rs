//! A provider like that of the real client: it receives requests over Socket.IO and answers by
//! HTTP.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;
use wakeline_jobs::params::{Params, hash};
use wakeline_testkit::eventually;

use crate::{
    node::{Answer, Node},
    poller::Poller,
};

pub(crate) struct Provider {
    pub(crate) id: Uuid,
    room: String,
    socket: Poller,
}

impl Provider {
    pub(crate) async fn join(node: &Node, name: &str, id: Uuid) -> Self {
        Self::join_as(node, &node.anna, &format!("r:fs:{name}"), id).await
    }

    /// Joins with this token as the provider with this full name.
    pub(crate) async fn join_as(node: &Node, token: &str, name: &str, id: Uuid) -> Self {
        let mut socket = Poller::open(node.address).await.unwrap();
        let connected = socket.connect(token).await.unwrap();
        assert!(connected.starts_with("40"), "{connected}");
        let room = format!("providers:{name}");
        let this = Self { id, room, socket };
        this.say(node, "join", 1).await;
        this
    }

    /// Joins or leaves the room, and waits until it has one member more or less.
    pub(crate) async fn say(&self, node: &Node, what: &str, more: isize) {
        let expected = node.sockets.members(&self.room).strict_add_signed(more);
        let name = self.room.strip_prefix("providers:").unwrap();
        let packet = format!(r#"42["{what}_provider_room",{{"provider_name":"{name}"}}]"#);
        self.socket.say(&packet).await.unwrap();
        eventually("the provider to join or leave", async || {
            node.sockets.members(&self.room) == expected
        })
        .await;
    }

    /// The next request: its hash and its parameters.
    pub(crate) async fn next_request(&mut self) -> (String, Value) {
        let packet = self.socket.hear().await.unwrap();
        let event: Value = serde_json::from_str(packet.strip_prefix("42").unwrap()).unwrap();
        assert_eq!(event[0], "provider_request", "{packet}");
        let text = |field: &str| event[1][field].as_str().unwrap().to_owned();
        let params = serde_json::from_str(&text("params")).unwrap();
        (text("request_id"), params)
    }

    /// Fails if a request was sent before this call.
    pub(crate) async fn assert_no_request(&mut self, node: &Node) {
        let nothing = RawValue::from_string("{}".to_owned()).unwrap();
        node.sockets.emit(&self.room, "fence", &nothing);
        assert_eq!(self.socket.hear().await.unwrap(), r#"42["fence",{}]"#);
    }

    /// The number of requests before the last fence, which [`Self::assert_no_request`] sends.
    pub(crate) async fn requests_before_fence(&mut self) -> usize {
        let mut questions = 0;
        while self.socket.hear().await.unwrap() != r#"42["fence",{}]"# {
            questions += 1;
        }
        questions
    }

    pub(crate) async fn answer(&self, node: &Node, hash: &str, body: &'static str) {
        let answer = self.upload(node, hash, body, &[]).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    }

    pub(crate) async fn upload(
        &self,
        node: &Node,
        hash: &str,
        body: impl Into<Body>,
        more: &[(&str, &str)],
    ) -> Answer {
        let what = format!("POST /v1/joblib/providers/{}/results", self.id);
        let headers = [&[("x-request-hash", hash)], more].concat();
        node.send(&what, &node.anna, &headers, body).await
    }
}

/// The hash of a query, as clients compute it.
pub(crate) fn hash_of(query: &str) -> String {
    hash(&Params::from_query(query).unwrap().text())
}
