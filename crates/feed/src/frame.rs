//! Events of a stream as bytes: Jinaga's lines, and server-sent events.

use std::fmt::Write;

use bytes::Bytes;

use crate::{fact::Reference, session::Event};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `application/x-jinaga-feed-stream`: a line of JSON and a blank one.
    Jinaga,
    /// `text/event-stream`: the bookmark is the event's id.
    Events,
}

impl Form {
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jinaga => "application/x-jinaga-feed-stream",
            Self::Events => "text/event-stream",
        }
    }

    #[must_use]
    pub fn encode(self, event: &Event) -> Bytes {
        let mut text = String::new();
        match event {
            Event::Page { page, is_synced } => {
                let bookmark = page.reached.to_string();
                self.frame(
                    &mut text,
                    "page",
                    &bookmark,
                    &body(&page.references, &bookmark),
                );
                if *is_synced {
                    self.frame(&mut text, "sync", &bookmark, &body(&[], &bookmark));
                }
            }
            Event::Sync(bookmark) => {
                self.frame(&mut text, "sync", bookmark, &body(&[], bookmark));
            }
            Event::Denied { denial, bookmark } => {
                let mut said = body(&[], bookmark);
                said.pop();
                said.push_str(",\"decision\":\"denied\",\"code\":");
                string(&mut said, denial.code);
                said.push_str(",\"reason\":");
                string(&mut said, &denial.reason);
                said.push('}');
                self.frame(&mut text, "denied", bookmark, &said);
            }
            // Jinaga's clients skip blank lines; a line that begins with a colon is a comment.
            Event::Heartbeat => text.push_str(match self {
                Self::Jinaga => "\n",
                Self::Events => ":\n\n",
            }),
        }
        text.into()
    }

    fn frame(self, text: &mut String, event: &str, bookmark: &str, body: &str) {
        match self {
            Self::Jinaga => {
                text.push_str(body);
                text.push_str("\n\n");
            }
            Self::Events => {
                let _ = write!(text, "event: {event}\nid: {bookmark}\ndata: {body}\n\n");
            }
        }
    }
}

/// `{"references":[…],"bookmark":"…"}`
#[must_use]
pub fn body(references: &[Reference], bookmark: &str) -> String {
    let mut text = String::with_capacity(40 + references.len() * 140);
    text.push_str("{\"references\":[");
    for (index, reference) in references.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str("{\"type\":");
        string(&mut text, &reference.kind);
        let _ = write!(text, ",\"hash\":\"{}\"}}", reference.hash);
    }
    text.push_str("],\"bookmark\":");
    string(&mut text, bookmark);
    text.push('}');
    text
}

fn string(text: &mut String, value: &str) {
    text.push_str(&serde_json::Value::from(value).to_string());
}
