//! What is shown. Times are texts, in UTC.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// What state an instance is in: that of its current execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    Completed,
    Failed,
    /// Between two executions.
    ContinuedAsNew,
}

impl Status {
    pub const ALL: [Self; 4] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::ContinuedAsNew,
    ];

    /// As it is stored.
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

    /// In capitals or not.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_meant = |status: &Self| status.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is no status; there are {names}")
        })
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstance))]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub id: String,
    /// The orchestration's.
    pub name: String,
    pub version: String,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`
    pub status: String,
    /// The current execution.
    pub execution: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstances))]
pub struct InstancePage {
    pub instances: Vec<Instance>,
    /// What to give as `after` for the page that follows; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One instance with all that belongs to it. Lists and texts are cut where they are long; the
/// number beside each says how long it is.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableDetail))]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    #[serde(flatten)]
    pub instance: Instance,
    /// The result, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<String>,
    /// How often the custom status was set.
    pub custom_status_version: u64,
    pub queue: InstanceQueue,
    /// The first of them by id.
    pub children: Vec<String>,
    pub children_count: u64,
    /// The newest first.
    pub executions: Vec<Execution>,
    pub executions_count: u64,
    /// The first of them by key.
    pub values: Vec<KeyValue>,
    pub values_count: u64,
}

/// What waits for or works on an instance.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableInstanceQueue))]
#[serde(rename_all = "camelCase")]
pub struct InstanceQueue {
    /// Messages that can be taken, or are taken.
    pub messages: u64,
    /// Messages for later: timers.
    pub later: u64,
    /// Whether a dispatcher has it at the moment.
    pub is_leased: bool,
    /// Activities that wait for a worker.
    pub activities: u64,
    /// Activities that a worker has.
    pub activities_leased: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableExecution))]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    pub number: u64,
    pub status: String,
    /// In its history.
    pub events: u64,
    pub started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableValue))]
pub struct KeyValue {
    pub key: String,
    pub value: String,
    /// Of the whole value.
    pub bytes: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableHistory))]
pub struct HistoryPage {
    pub instance: String,
    pub execution: u64,
    pub events: Vec<Recorded>,
    /// What to give as `after` for the page that follows; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableEvent))]
pub struct Recorded {
    pub number: u64,
    /// As duroxide wrote it; missing if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<serde_json::Value>,
    /// What is stored instead of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableTotals))]
pub struct Totals {
    pub schema: String,
    pub instances: Counts,
    pub executions: u64,
    pub events: u64,
    pub queues: Queues,
}

/// Instances by state. One that is between two executions is in none of the three.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableCounts))]
pub struct Counts {
    pub total: u64,
    pub running: u64,
    pub completed: u64,
    pub failed: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DurableQueues))]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    /// Messages for orchestrations that can be taken, or are taken.
    pub messages: u64,
    /// Messages for later: timers.
    pub later: u64,
    /// Instances that a dispatcher has at the moment.
    pub instances_leased: u64,
    /// Activities that wait for a worker.
    pub activities: u64,
    /// Activities that a worker has.
    pub activities_leased: u64,
    /// Sessions that a worker has.
    pub sessions: u64,
    /// Activities that could not be read and were set aside.
    pub spoilt: u64,
}
