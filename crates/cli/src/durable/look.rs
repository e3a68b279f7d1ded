//! The commands that only look.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use wakeline_durable::view::{
    Detail, Filter, HistoryPage, Instance, InstancePage, MAX_PAGE, Recorded, Status, Totals,
};

use super::{
    Place,
    text::{plain, print, seconds, table},
};

/// Characters of an event that are shown of its own fields.
const SHOWN: usize = 160;

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those that are Running, Completed, Failed or ContinuedAsNew.
    #[arg(long)]
    status: Option<Status>,
    /// Only those of this orchestration.
    #[arg(long)]
    name: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Go on where a list before ended: what it said, or its `next`.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// As one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl List {
    pub(crate) async fn run(self) -> Result<()> {
        let view = self.place.view();
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
    place: Place,
}

impl Show {
    pub(crate) async fn run(self) -> Result<()> {
        let detail = self.place.view().instance(&self.instance).await?;
        if self.json {
            return print(&format!("{}\n", serde_json::to_string_pretty(&detail)?));
        }
        print(&shown(&detail))
    }
}

fn shown(detail: &Detail) -> String {
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
        "; a dispatcher has it"
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
    rest(&mut line, "value", detail.values.len(), detail.values_count);
    for child in &detail.children {
        line("child", child);
    }
    rest(
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
    rest(
        &mut line,
        "execution",
        detail.executions.len(),
        detail.executions_count,
    );
    text
}

fn rest(line: &mut impl FnMut(&str, &str), name: &str, shown: usize, there: u64) {
    let more = there.saturating_sub(shown as u64);
    if more > 0 {
        line(name, &format!("… and {more} more"));
    }
}

#[derive(Debug, Args)]
pub(crate) struct History {
    instance: String,
    /// The execution; the current one by default.
    #[arg(long)]
    execution: Option<u32>,
    /// As one JSON object per event and line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl History {
    pub(crate) async fn run(self) -> Result<()> {
        let view = self.place.view();
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
            // Of the same execution, should it continue as a new one meanwhile.
            execution = Some(page.execution);
            after = next;
        }
    }
}

fn event_line(recorded: &Recorded) -> String {
    let number = recorded.number;
    let Some(Value::Object(event)) = &recorded.event else {
        let found = match (&recorded.unreadable, &recorded.event) {
            (Some(text), _) => text.clone(),
            (None, event) => serde_json::to_string(event).unwrap_or_default(),
        };
        return format!("{number:5}  unreadable: {}", cut(&plain(&found)));
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
    match text.char_indices().nth(SHOWN) {
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
    place: Place,
}

impl Stats {
    pub(crate) async fn run(self) -> Result<()> {
        let totals = self.place.view().totals().await?;
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
             messages    {} ready or taken, {} for later; {} instances with a dispatcher\n\
             activities  {} waiting, {} with a worker; {} spoilt\n\
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
            queues.spoilt,
            queues.sessions,
        ))
    }
}
