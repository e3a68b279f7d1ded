//! Work items and events between the runtime's types and what is stored.

use duroxide::{Event, EventKind, providers::ProviderError, providers::WorkItem};

use crate::{
    error::refuse_nul,
    store::step::{Change, CustomStatus, Letter, Task},
    topic::stored_tag,
};

/// The instance whose mailbox an item goes to; none: it is not for an orchestration.
fn recipient(item: &WorkItem) -> Option<&str> {
    match item {
        WorkItem::StartOrchestration { instance, .. }
        | WorkItem::ActivityCompleted { instance, .. }
        | WorkItem::ActivityFailed { instance, .. }
        | WorkItem::TimerFired { instance, .. }
        | WorkItem::ExternalRaised { instance, .. }
        | WorkItem::CancelInstance { instance, .. }
        | WorkItem::ContinueAsNew { instance, .. }
        | WorkItem::QueueMessage { instance, .. } => Some(instance),
        WorkItem::SubOrchCompleted {
            parent_instance, ..
        }
        | WorkItem::SubOrchFailed {
            parent_instance, ..
        } => Some(parent_instance),
        WorkItem::ActivityExecute { .. } => None,
        #[allow(
            unreachable_patterns,
            reason = "another crate may turn on a variant for tests"
        )]
        _ => None,
    }
}

/// An item for an orchestration. A timer is visible when it fires.
pub(crate) fn letter(operation: &str, item: &WorkItem) -> Result<Letter, ProviderError> {
    let Some(instance) = recipient(item) else {
        let message = "an activity does not go to an orchestration";
        return Err(ProviderError::permanent(operation, message));
    };
    refuse_nul(operation, "the instance's id", instance)?;
    let at_ms = match item {
        WorkItem::TimerFired { fire_at_ms, .. } => Some(number(*fire_at_ms)),
        _ => None,
    };
    Ok(Letter {
        instance: instance.to_owned(),
        item: text(operation, item)?,
        after_us: None,
        at_ms,
    })
}

/// Whether sending it twice is the same as sending it once: the runtime tells by its ids.
pub(crate) fn is_repeatable(item: &WorkItem) -> bool {
    !matches!(
        item,
        WorkItem::ExternalRaised { .. } | WorkItem::QueueMessage { .. }
    )
}

pub(crate) fn task(operation: &str, item: &WorkItem) -> Result<Task, ProviderError> {
    let WorkItem::ActivityExecute {
        instance,
        execution_id,
        id,
        session_id,
        tag,
        ..
    } = item
    else {
        let message = "only activities go to workers";
        return Err(ProviderError::permanent(operation, message));
    };
    refuse_nul(operation, "the instance's id", instance)?;
    refuse_nul(
        operation,
        "the session's id",
        session_id.as_deref().unwrap_or_default(),
    )?;
    refuse_nul(operation, "the tag", tag.as_deref().unwrap_or_default())?;
    Ok(Task {
        instance: instance.clone(),
        execution: number(*execution_id),
        activity: number(*id),
        session: session_id.clone(),
        tag: stored_tag(tag.as_deref()),
        item: text(operation, item)?,
    })
}

fn text<T: serde::Serialize>(operation: &str, value: &T) -> Result<String, ProviderError> {
    serde_json::to_string(value)
        .map_err(|error| ProviderError::permanent(operation, format!("cannot be written: {error}")))
}

/// Events as they are stored, with their numbers.
pub(crate) fn events(
    operation: &str,
    events: &[Event],
) -> Result<Vec<(i64, String)>, ProviderError> {
    events
        .iter()
        .map(|event| {
            if event.event_id() == 0 {
                let message = "an event without its id";
                return Err(ProviderError::permanent(operation, message));
            }
            Ok((number(event.event_id()), text(operation, event)?))
        })
        .collect()
}

/// Reads events back. One that cannot be read is an error with its place.
pub(crate) fn read_events(texts: &[String]) -> Result<Vec<Event>, String> {
    texts
        .iter()
        .enumerate()
        .map(|(place, text)| {
            serde_json::from_str(text)
                .map_err(|error| format!("the event at place {place} cannot be read: {error}"))
        })
        .collect()
}

/// The last custom status that `events` set or clear.
pub(crate) fn custom_status(events: &[Event]) -> Option<CustomStatus> {
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => {
            Some(status.as_ref().map_or(CustomStatus::Clear, |status| {
                CustomStatus::Set(status.clone().into_bytes())
            }))
        }
        _ => None,
    })
}

/// The changes of values in `events`, in their order.
pub(crate) fn changes(operation: &str, events: &[Event]) -> Result<Vec<Change>, ProviderError> {
    let mut changes = Vec::new();
    for event in events {
        let change = match &event.kind {
            EventKind::KeyValueSet {
                key,
                value,
                last_updated_at_ms,
            } => Change {
                key: Some(key.clone()),
                value: Some(value.clone().into_bytes()),
                updated_ms: number(*last_updated_at_ms),
            },
            EventKind::KeyValueCleared { key } => Change {
                key: Some(key.clone()),
                value: None,
                updated_ms: number(event.timestamp_ms),
            },
            EventKind::KeyValuesCleared => Change {
                key: None,
                value: None,
                updated_ms: number(event.timestamp_ms),
            },
            _ => continue,
        };
        refuse_nul(
            operation,
            "a key",
            change.key.as_deref().unwrap_or_default(),
        )?;
        changes.push(change);
    }
    Ok(changes)
}

/// A version as one number that compares as versions do.
pub(crate) fn packed(version: &semver::Version) -> i64 {
    let part = |number: u64, bits: u32| i64::try_from(number.min((1 << bits) - 1)).unwrap_or(0);
    (part(version.major, 20) << 42) | (part(version.minor, 21) << 21) | part(version.patch, 21)
}

/// The runtime's numbers are far below what PostgreSQL holds.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Text that was written as bytes.
pub(crate) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
