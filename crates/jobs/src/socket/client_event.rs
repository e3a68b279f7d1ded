//! What clients send, parsed before it is queued: the queue is small, however long the packets
//! were.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::name::{FullName, MAX_CHARS};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientEvent {
    Join(OfferKind, FullName, Option<Uuid>),
    Leave(OfferKind, FullName),
    Room {
        room: String,
        frontend: bool,
    },
    /// `room_join` without a room. Unlike the other events it has an answer that the client waits
    /// for.
    NoRoom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferKind {
    Job,
    Provider,
}

impl OfferKind {
    pub(super) fn room(self, name: &FullName) -> String {
        match self {
            Self::Job => format!("jobs:{name}"),
            Self::Provider => format!("{PROVIDERS}{name}"),
        }
    }
}

const PROVIDERS: &str = "providers:";

/// The provider of a room.
pub(super) fn provider(room: &str) -> Option<FullName> {
    FullName::parse(room.strip_prefix(PROVIDERS)?)
}

impl ClientEvent {
    /// Parses `["event", argument, …]`. `None`: an unknown event, or one of another form.
    pub(super) fn read(packet: &str) -> Option<Self> {
        let parts: Vec<&RawValue> = serde_json::from_str(packet).ok()?;
        let event: String = serde_json::from_str(parts.first()?.get()).ok()?;
        // Python sends None as no argument.
        let argument = parts.get(1).map_or("null", |argument| argument.get());
        match event.as_str() {
            "join_job_room" => read::<Job>(argument)?.join(),
            "leave_job_room" => read::<Job>(argument)?.leave(),
            "join_provider_room" => read::<Provider>(argument)?.join(),
            "leave_provider_room" => read::<Provider>(argument)?.leave(),
            "room_join" => Some(read::<Room>(argument).map_or(Self::NoRoom, Room::join)),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Job {
    job_name: String,
    worker_id: Option<Uuid>,
}

impl Job {
    fn join(self) -> Option<ClientEvent> {
        Some(ClientEvent::Join(
            OfferKind::Job,
            full(&self.job_name)?,
            self.worker_id,
        ))
    }

    fn leave(self) -> Option<ClientEvent> {
        Some(ClientEvent::Leave(OfferKind::Job, full(&self.job_name)?))
    }
}

#[derive(Deserialize)]
struct Provider {
    provider_name: String,
    worker_id: Option<Uuid>,
}

impl Provider {
    fn join(self) -> Option<ClientEvent> {
        let name = full(&self.provider_name)?;
        Some(ClientEvent::Join(OfferKind::Provider, name, self.worker_id))
    }

    fn leave(self) -> Option<ClientEvent> {
        Some(ClientEvent::Leave(
            OfferKind::Provider,
            full(&self.provider_name)?,
        ))
    }
}

#[derive(Deserialize)]
struct Room {
    room_id: String,
    client_type: Option<String>,
}

impl Room {
    fn join(self) -> ClientEvent {
        if !fits(&self.room_id) {
            return ClientEvent::NoRoom;
        }
        ClientEvent::Room {
            room: self.room_id,
            frontend: self.client_type.as_deref() == Some("frontend"),
        }
    }
}

fn read<T: DeserializeOwned>(argument: &str) -> Option<T> {
    serde_json::from_str(argument).ok()
}

fn full(name: &str) -> Option<FullName> {
    let name = FullName::parse(name)?;
    let fit = fits(&name.room) && fits(&name.category) && fits(&name.name);
    fit.then_some(name)
}

fn fits(part: &str) -> bool {
    !part.is_empty() && part.chars().count() <= MAX_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_and_leaves_are_read() {
        let worker = "39ff4b01-4574-46fb-89f5-4a51b9a4bc84";
        let job = format!(r#"["join_job_room",{{"job_name":"r:m:Rot","worker_id":"{worker}"}}]"#);
        assert_eq!(
            ClientEvent::read(&job),
            Some(ClientEvent::Join(
                OfferKind::Job,
                FullName::new("r", "m", "Rot"),
                worker.parse().ok()
            ))
        );
        assert_eq!(
            ClientEvent::read(
                r#"["leave_provider_room",{"provider_name":"r:f:a:b","worker_id":null}]"#
            ),
            Some(ClientEvent::Leave(
                OfferKind::Provider,
                FullName::new("r", "f", "a:b")
            ))
        );
    }

    #[test]
    fn a_room_is_read() {
        assert_eq!(
            ClientEvent::read(r#"["room_join",{"room_id":"r","client_type":"frontend"},1]"#),
            Some(ClientEvent::Room {
                room: "r".to_owned(),
                frontend: true
            })
        );
        for none in [r#"["room_join"]"#, r#"["room_join",{"room_id":""}]"#] {
            assert_eq!(ClientEvent::read(none), Some(ClientEvent::NoRoom), "{none}");
        }
    }

    #[test]
    fn packets_of_another_form_are_no_event() {
        let long = "x".repeat(MAX_CHARS + 1);
        for packet in [
            "[]".to_owned(),
            r#"["join_job_room"]"#.to_owned(),
            r#"["join_job_room",null]"#.to_owned(),
            r#"["join_job_room",{"job_name":"only:two"}]"#.to_owned(),
            r#"["join_job_room",{"job_name":"a:b:c","worker_id":"7"}]"#.to_owned(),
            format!(r#"["join_job_room",{{"job_name":"a:b:{long}"}}]"#),
            r#"["unheard_of",{}]"#.to_owned(),
        ] {
            assert_eq!(ClientEvent::read(&packet), None, "{packet}");
        }
    }

    #[test]
    fn the_provider_of_a_room_is_read_from_its_name() {
        let name = FullName::new("r", "f", "a:b");
        assert_eq!(
            provider(&OfferKind::Provider.room(&name)),
            Some(name.clone())
        );
        assert_eq!(provider(&OfferKind::Job.room(&name)), None);
    }
}
