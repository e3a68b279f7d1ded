//! Converts work items and events between the runtime's types and the stored form.

use duroxide::{Event, EventKind, providers::ProviderError, providers::WorkItem};

use super::{error::refuse_nul, topics::stored_tag};
use crate::{
    row::number,
    store::{
        apply_changes::Message,
        changes::{Activity, CustomStatusChange, ValueChange},
    },
};

/// The instance whose mailbox an item goes to; none for an activity.
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

/// An item for an orchestration. A timer becomes visible when it fires.
pub(crate) fn message(operation: &str, item: &WorkItem) -> Result<Message, ProviderError> {
    let Some(instance) = recipient(item) else {
        let message = "an activity cannot be sent to an orchestration";
        return Err(ProviderError::permanent(operation, message));
    };
    refuse_nul(operation, "the instance's id", instance)?;
    let at_ms = match item {
        WorkItem::TimerFired { fire_at_ms, .. } => Some(number(*fire_at_ms)),
        _ => None,
    };
    Ok(Message {
        instance: instance.to_owned(),
        item: text(operation, item)?,
        after_us: None,
        at_ms,
    })
}

/// Whether sending the item twice is the same as sending it once: the runtime recognises its id.
pub(crate) fn is_repeatable(item: &WorkItem) -> bool {
    !matches!(
        item,
        WorkItem::ExternalRaised { .. } | WorkItem::QueueMessage { .. }
    )
}

pub(crate) fn activity(operation: &str, item: &WorkItem) -> Result<Activity, ProviderError> {
    let WorkItem::ActivityExecute {
        instance,
        execution_id,
        id,
        session_id,
        tag,
        ..
    } = item
    else {
        let message = "only an activity can be sent to a worker";
        return Err(ProviderError::permanent(operation, message));
    };
    refuse_nul(operation, "the instance's id", instance)?;
    refuse_nul(
        operation,
        "the session's id",
        session_id.as_deref().unwrap_or_default(),
    )?;
    refuse_nul(operation, "the tag", tag.as_deref().unwrap_or_default())?;
    Ok(Activity {
        instance: instance.clone(),
        execution: number(*execution_id),
        number: number(*id),
        session: session_id.clone(),
        tag: stored_tag(tag.as_deref()),
        item: text(operation, item)?,
    })
}

fn text<T: serde::Serialize>(operation: &str, value: &T) -> Result<String, ProviderError> {
    serde_json::to_string(value).map_err(|error| {
        ProviderError::permanent(
            operation,
            format!("the item cannot be written as JSON: {error}"),
        )
    })
}

/// The events' numbers and their stored form.
pub(crate) fn events(
    operation: &str,
    events: &[Event],
) -> Result<Vec<(i64, String)>, ProviderError> {
    events
        .iter()
        .map(|event| {
            if event.event_id() == 0 {
                let message = "an event has no id";
                return Err(ProviderError::permanent(operation, message));
            }
            Ok((number(event.event_id()), text(operation, event)?))
        })
        .collect()
}

/// Reads stored events; the error names the index of the first that cannot be read.
pub(crate) fn read_events(texts: &[String]) -> Result<Vec<Event>, String> {
    texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            serde_json::from_str(text)
                .map_err(|error| format!("the event at index {index} cannot be read: {error}"))
        })
        .collect()
}

/// The last custom status that `events` set or clear.
pub(crate) fn custom_status(events: &[Event]) -> Option<CustomStatusChange> {
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => {
            Some(status.as_ref().map_or(CustomStatusChange::Clear, |status| {
                CustomStatusChange::Set(status.clone().into_bytes())
            }))
        }
        _ => None,
    })
}

/// The changes of values in `events`, in their order.
pub(crate) fn value_changes(
    operation: &str,
    events: &[Event],
) -> Result<Vec<ValueChange>, ProviderError> {
    let mut changes = Vec::new();
    for event in events {
        let change = match &event.kind {
            EventKind::KeyValueSet {
                key,
                value,
                last_updated_at_ms,
            } => ValueChange {
                key: Some(key.clone()),
                value: Some(value.clone().into_bytes()),
                updated_ms: number(*last_updated_at_ms),
            },
            EventKind::KeyValueCleared { key } => ValueChange {
                key: Some(key.clone()),
                value: None,
                updated_ms: number(event.timestamp_ms),
            },
            EventKind::KeyValuesCleared => ValueChange {
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

/// A version as one number; numbers compare as the versions do.
pub(crate) fn packed(version: &semver::Version) -> i64 {
    let part = |number: u64, bits: u32| i64::try_from(number.min((1 << bits) - 1)).unwrap_or(0);
    (part(version.major, 20) << 42) | (part(version.minor, 21) << 21) | part(version.patch, 21)
}
