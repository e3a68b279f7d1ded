//! The commands that only read.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use wakeline_durable::view::{
    Filter, HistoryEvent, HistoryPage, Instance, InstanceDetail, InstancePage, MAX_PAGE, Status,
    Totals,
};

use super::{
    SchemaArgs,
    text::{plain, print, seconds, table},
};

/// How many characters are shown of the fields of an event.
const MAX_FIELD_CHARS: usize = 160;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only instances in this state: Running, Completed, Failed or ContinuedAsNew.
    #[arg(long)]
    status: Option<Status>,
    /// Only instances of the orchestration with this name.
    #[arg(long)]
    name: Option<String>,
    /// The largest number of instances.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Continue after an earlier list: what that printed after --after, or its `next`.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    /// As one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl List {
    pub(crate) async fn run(self) -> Result<()> {
        let view = self.schema.view();
        let mut found = InstancePage {
            instances: Vec::new(),
            next: self.after.clone(),
        };
        loop {
            let have = u32::try_from(found.instances.len()).unwrap_or(u32::MAX);
            let filter = Filter {
                status: self.status,
                name: self.name.clone(),
                limit: self.limit.saturating_sub(have).min(MAX_PAGE),
                after: found.next.take(),
            };
            let page = view.instances(&filter).await?;
            found.instances.extend(page.instances);
            found.next = page.next;
            let is_full = found.instances.len() >= usize::try_from(self.limit)?;
            if is_full || found.next.is_none() {
                break;
            }
        }
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(&found)?));
        }
        print(&instances(&found.instances))?;
        if let Some(next) = &found.next {
            eprintln!("there are more: --after '{}'", plain(next));
        }
        Ok(())
    }
}

fn instances(instances: &[Instance]) -> String {
    let headings = [
        "ID",
        "NAME",
        "VERSION",
        "STATUS",
        "EXECUTION",
        "CREATED",
        "UPDATED",
    ];
    let rows = instances.iter().map(|instance| {
        [
            plain(&instance.id),
            plain(&instance.name),
            plain(&instance.version),
            instance.status.clone(),
            instance.execution.to_string(),
            seconds(&instance.created_at),
            seconds(&instance.updated_at),
        ]
    });
    table(headings, &rows.collect::<Vec<_>>())
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    instance: String,
    /// As one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl Show {
    pub(crate) async fn run(self) -> Result<()> {
        let detail = self.schema.view().instance(&self.instance).await?;
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(&detail)?));
        }
        print(&detail_lines(&detail))
    }
}

fn detail_lines(detail: &InstanceDetail) -> String {
    let instance = &detail.instance;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:14}{}", plain(value));
    };
    line("id", &instance.id);
    line("name", &format!("{} {}", instance.name, instance.version));
    line(
        "status",
        &format!("{}, execution {}", instance.status, instance.execution),
    );
    line("created", &instance.created_at);
    line("updated", &instance.updated_at);
    if let Some(parent) = &instance.parent {
        line("parent", parent);
    }
    if let Some(output) = &detail.output {
        line("output", output);
    }
    if let Some(status) = &detail.custom_status {
        line("custom status", status);
    }
    let queue = &detail.queue;
    let leased = if queue.is_leased {
        "; leased by a dispatcher"
    } else {
        ""
    };
    line(
        "queue",
        &format!(
            "{} messages, {} for later, {} activities waiting, {} with a worker{leased}",
            queue.messages, queue.later, queue.activities, queue.activities_leased
        ),
    );
    for value in &detail.values {
        line("value", &format!("{} = {}", value.key, value.value));
    }
    remaining(&mut line, "value", detail.values.len(), detail.values_count);
    for child in &detail.children {
        line("child", child);
    }
    remaining(
        &mut line,
        "child",
        detail.children.len(),
        detail.children_count,
    );
    for execution in &detail.executions {
        let ended = execution.completed_at.as_deref();
        line(
            "execution",
            &format!(
                "{} {}, {} events, {} to {}",
                execution.number,
                execution.status,
                execution.events,
                execution.started_at,
                ended.unwrap_or("now")
            ),
        );
    }
    remaining(
        &mut line,
        "execution",
        detail.executions.len(),
        detail.executions_count,
    );
    text
}

fn remaining(line: &mut impl FnMut(&str, &str), name: &str, shown: usize, total: u64) {
    let more = total.saturating_sub(shown as u64);
    if more > 0 {
        line(name, &format!("… and {more} more"));
    }
}

#[derive(Debug, Args)]
pub(crate) struct History {
    instance: String,
    /// The execution's number; the current execution by default.
    #[arg(long)]
    execution: Option<u32>,
    /// As one JSON object per event and line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl History {
    pub(crate) async fn run(self) -> Result<()> {
        let view = self.schema.view();
        let mut execution = self.execution.map(u64::from);
        let mut after = 0;
        loop {
            let page: HistoryPage = view
                .history(&self.instance, execution, after, MAX_PAGE)
                .await?;
            let mut text = String::new();
            for event in &page.events {
                if self.json {
                    let _ = writeln!(text, "{}", serde_json::to_string(event)?);
                } else {
                    let _ = writeln!(text, "{}", event_line(event));
                }
            }
            print(&text)?;
            let Some(next) = page.next else {
                return Ok(());
            };
            // Of the same execution, even if the instance continues as new meanwhile.
            execution = Some(page.execution);
            after = next;
        }
    }
}

fn event_line(recorded: &HistoryEvent) -> String {
    let number = recorded.number;
    let Some(Value::Object(event)) = &recorded.event else {
        let text = match (&recorded.unreadable, &recorded.event) {
            (Some(text), _) => text.clone(),
            (None, event) => serde_json::to_string(event).unwrap_or_default(),
        };
        return format!("{number:5}  unreadable: {}", cut(&plain(&text)));
    };
    let at = event.get("timestamp_ms").and_then(Value::as_i64);
    let at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
    let at = at.map_or("-".to_owned(), |at| {
        at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    });
    let kind = event.get("type").and_then(Value::as_str).unwrap_or("?");
    let mut line = format!("{number:5}  {at}  {}", plain(kind));
    if let Some(source) = event.get("source_event_id").and_then(Value::as_u64) {
        let _ = write!(line, "  of {source}");
    }
    let common = [
        "type",
        "event_id",
        "source_event_id",
        "instance_id",
        "execution_id",
        "timestamp_ms",
        "duroxide_version",
    ];
    let own = event
        .iter()
        .filter(|(name, value)| !common.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join(" ");
    if !own.is_empty() {
        let _ = write!(line, "  {}", cut(&plain(&own)));
    }
    line
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_FIELD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// As one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl Stats {
    pub(crate) async fn run(self) -> Result<()> {
        let totals = self.schema.view().totals().await?;
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(&totals)?));
        }
        let Totals {
            instances, queues, ..
        } = &totals;
        print(&format!(
            "schema      {}\n\
             instances   {}: {} running, {} completed, {} failed\n\
             executions  {}\n\
             events      {}\n\
             messages    {} ready or leased, {} for later; {} instances with a dispatcher\n\
             activities  {} waiting, {} with a worker; {} unreadable\n\
             sessions    {}\n",
            plain(&totals.schema),
            instances.total,
            instances.running,
            instances.completed,
            instances.failed,
            totals.executions,
            totals.events,
            queues.messages,
            queues.later,
            queues.instances_leased,
            queues.activities,
            queues.activities_leased,
            queues.unreadable_activities,
            queues.sessions,
        ))
    }
}
