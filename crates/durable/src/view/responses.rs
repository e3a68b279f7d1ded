//! The rows that a view returns, as the server and the command line write them. Times are RFC 3339 in
//! UTC, with microseconds.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// The state of an instance, which is that of its current execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not ended.
    Running,
    /// It ended with a result.
    Completed,
    /// It ended with an error, or was cancelled.
    Failed,
    /// It is between two executions.
    ContinuedAsNew,
}

impl Status {
    /// Every state.
    pub const ALL: [Self; 4] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::ContinuedAsNew,
    ];

    /// The name as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::ContinuedAsNew => "ContinuedAsNew",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Status {
    type Err = String;

    /// Upper and lower case are the same.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_same = |status: &Self| status.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_same).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is not a status; there are {names}")
        })
    }
}

/// One instance.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstance))]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The instance's id.
    pub id: String,
    /// The orchestration's name.
    pub name: String,
    /// The orchestration's version.
    pub version: String,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`
    pub status: String,
    /// The number of the current execution, from 1.
    pub execution: u64,
    /// The id of the instance that started it; missing if a client did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// When its first turn ended.
    pub created_at: String,
    /// When its last turn ended.
    pub updated_at: String,
}

/// A page of instances, the newest first.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstances))]
pub struct InstancePage {
    /// The instances of this page.
    pub instances: Vec<Instance>,
    /// Pass this as `after` for the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One instance with all that belongs to it. Each list has at most 100 entries and each text at most
/// 64 KiB; the number beside it is the whole length.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableDetail))]
#[serde(rename_all = "camelCase")]
pub struct InstanceDetail {
    /// The instance itself.
    #[serde(flatten)]
    pub instance: Instance,
    /// The result, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The bytes of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// The custom status, if the orchestration has set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<String>,
    /// How often the custom status was set or cleared.
    pub custom_status_version: u64,
    /// Its messages and activities that have not been processed.
    pub queue: InstanceQueue,
    /// The ids of the first sub-orchestrations by id.
    pub children: Vec<String>,
    /// The number of sub-orchestrations.
    pub children_count: u64,
    /// The newest executions, the newest first.
    pub executions: Vec<Execution>,
    /// The number of executions.
    pub executions_count: u64,
    /// The first values by key.
    pub values: Vec<KeyValue>,
    /// The number of values.
    pub values_count: u64,
}

/// The messages and activities of an instance that have not been processed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstanceQueue))]
#[serde(rename_all = "camelCase")]
pub struct InstanceQueue {
    /// Messages that are visible, leased ones included.
    pub messages: u64,
    /// Messages that become visible later: timers.
    pub later: u64,
    /// Whether a dispatcher has leased the instance.
    pub is_leased: bool,
    /// Activities that wait for a worker.
    pub activities: u64,
    /// Activities that a worker has leased.
    pub activities_leased: u64,
}

/// One execution of an instance. An instance that continues as new begins another.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableExecution))]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Its number, from 1.
    pub number: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`
    pub status: String,
    /// The number of events in its history.
    pub events: u64,
    /// When its first turn ended.
    pub started_at: String,
    /// When its last turn ended; missing while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

/// A value that an orchestration has set.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableValue))]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// The value, at most 64 KiB of it.
    pub value: String,
    /// The bytes of the whole value.
    pub bytes: u64,
}

/// A page of the history of an execution, in order.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableHistory))]
pub struct HistoryPage {
    /// The instance's id.
    pub instance: String,
    /// The execution's number.
    pub execution: u64,
    /// The events of this page.
    pub events: Vec<HistoryEvent>,
    /// Pass this as `after` for the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One event of a history.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableEvent))]
pub struct HistoryEvent {
    /// Its number in the execution, from 1.
    pub number: u64,
    /// The event as duroxide wrote it; missing if that is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<serde_json::Value>,
    /// The stored text if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// The totals of a durable schema.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableTotals))]
pub struct Totals {
    /// The schema's name.
    pub schema: String,
    /// Instances by state.
    pub instances: InstanceCounts,
    /// The number of executions of all instances.
    pub executions: u64,
    /// The number of events of all executions.
    pub events: u64,
    /// Messages, activities and sessions.
    pub queues: QueueCounts,
}

/// Instances by state. An instance between two executions counts in `total` alone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableCounts))]
pub struct InstanceCounts {
    /// All instances.
    pub total: u64,
    /// Instances that have not ended.
    pub running: u64,
    /// Instances that ended with a result.
    pub completed: u64,
    /// Instances that ended with an error or were cancelled.
    pub failed: u64,
}

/// The messages, activities and sessions of a schema.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableQueues))]
#[serde(rename_all = "camelCase")]
pub struct QueueCounts {
    /// Messages for orchestrations that are visible, leased ones included.
    pub messages: u64,
    /// Messages that become visible later: timers.
    pub later: u64,
    /// Instances that a dispatcher has leased.
    pub instances_leased: u64,
    /// Activities that wait for a worker.
    pub activities: u64,
    /// Activities that a worker has leased.
    pub activities_leased: u64,
    /// Sessions that a worker has.
    pub sessions: u64,
    /// Activities that could not be read and were set aside.
    #[serde(rename = "spoilt")]
    pub unreadable_activities: u64,
}
