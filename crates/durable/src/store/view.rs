//! The queries of a [`View`].

use tokio_postgres::{Row, types::Type};

use crate::{
    row::{count, number, text_of, unsigned},
    view::{
        Execution, Filter, HistoryEvent, HistoryPage, Instance, InstanceCounts, InstanceDetail,
        InstancePage, InstanceQueue, KeyValue, MAX_PAGE, PageToken, PrunablePage, PruneCriteria,
        QueueCounts, Status, Totals, View, ViewError,
    },
};

/// Instances that one page with a filter, or one page of prunable executions, examines.
const MAX_EXAMINED: i64 = 5_000;
/// Children, executions and values that are listed of an instance.
const MAX_LISTED: i64 = 100;
/// Bytes that are returned of an output, a custom status or a value.
const MAX_TEXT_BYTES: i32 = 64 << 10;
/// A page of history ends with the event that exceeds this.
const MAX_PAGE_BYTES: i64 = 4 << 20;

/// A time as RFC 3339 text.
fn rfc3339(column: &str) -> String {
    format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
}

fn instance(row: &Row) -> Instance {
    let status: Option<String> = row.get("status");
    Instance {
        id: row.get("id"),
        name: row.get("name"),
        version: row.get("version"),
        status: status.unwrap_or_else(|| "Unknown".into()),
        execution: count(row, "execution"),
        parent: row.get("parent"),
        created_at: row.get("created"),
        updated_at: row.get("updated"),
    }
}

/// Whether an execution `x` of the instance `i` may be pruned, as in the schema's
/// `prune_executions`: it ended before `$1`, and `$2` newer executions are kept.
const IS_PRUNABLE: &str = "x.number <> i.execution AND x.status <> 'Running'
    AND ($1::bigint IS NULL OR x.completed_at < to_timestamp($1 / 1000.0))
    AND ($2::bigint IS NULL OR (
        SELECT count(*) FROM @schema@.execution y
        WHERE y.instance = x.instance AND y.number > x.number) >= $2)";

/// Whether an instance `i` has ended with its execution `x` and has no parent.
const HAS_ENDED: &str = "x.completed_at < to_timestamp($1 / 1000.0)
    AND x.status IN ('Completed', 'Failed') AND i.parent IS NULL";

fn contains_nul(text: &str) -> bool {
    text.contains('\0')
}

impl View {
    /// Counts instances, executions, events and what is queued. One statement.
    pub async fn totals(&self) -> Result<Totals, ViewError> {
        let rows = self
            .query(
                "SELECT t.*, m.*, a.*,
                     (SELECT count(*) FROM @schema@.execution x
                      JOIN @schema@.instance i ON i.id = x.instance AND i.execution = x.number
                      WHERE x.status = 'Running') AS running,
                     (SELECT count(*) FROM @schema@.mailbox b
                      WHERE b.token IS NOT NULL AND b.ready_at > clock_timestamp()) AS leased,
                     (SELECT count(*) FROM @schema@.session s
                      WHERE s.locked_until > clock_timestamp()) AS sessions,
                     (SELECT count(*) FROM @schema@.unreadable_activity) AS unreadable
                 FROM (
                     SELECT sum(instances)::bigint AS instances, sum(executions)::bigint AS executions,
                         sum(events)::bigint AS events, sum(completed)::bigint AS completed,
                         sum(failed)::bigint AS failed
                     FROM @schema@.counters
                 ) t, (
                     SELECT count(*) FILTER (WHERE g.visible_at > clock_timestamp()) AS later,
                         count(*) AS messages
                     FROM @schema@.message g
                 ) m, (
                     SELECT count(*) FILTER (WHERE k.token IS NOT NULL
                             AND k.ready_at > clock_timestamp()) AS activities_leased,
                         count(*) AS activities
                     FROM @schema@.activity k
                 ) a",
                &[],
            )
            .await?;
        let row = &rows[0];
        let of = |column: &str| count(row, column);
        Ok(Totals {
            schema: self.schema().to_owned(),
            instances: InstanceCounts {
                total: of("instances"),
                running: of("running"),
                completed: of("completed"),
                failed: of("failed"),
            },
            executions: of("executions"),
            events: of("events"),
            queues: QueueCounts {
                messages: of("messages") - of("later"),
                later: of("later"),
                instances_leased: of("leased"),
                activities: of("activities") - of("activities_leased"),
                activities_leased: of("activities_leased"),
                sessions: of("sessions"),
                unreadable_activities: of("unreadable"),
            },
        })
    }

    /// A page of instances, the newest first. With a filter a page may have fewer rows than its limit,
    /// or none, although it has a `next`: one call examines at most 5,000 instances. (A filter for
    /// running instances examines only those.)
    pub async fn instances(&self, filter: &Filter) -> Result<InstancePage, ViewError> {
        let after = filter.after.as_deref().map(PageToken::parse).transpose()?;
        if filter.name.as_deref().is_some_and(contains_nul) {
            return Ok(InstancePage::default());
        }
        let limit = filter.limit.clamp(1, MAX_PAGE);
        // One more tells whether there is a next page.
        let wanted = i64::from(limit) + 1;
        let is_running = filter.status == Some(Status::Running);
        let (source, max_examined) = if is_running {
            // An index has the running ones alone.
            let source = "@schema@.execution r
                JOIN @schema@.instance i ON i.id = r.instance AND i.execution = r.number
                    AND r.status = 'Running' AND ($4::text IS NULL OR i.name = $4)";
            (source, wanted)
        } else if filter.status.is_some() || filter.name.is_some() {
            ("@schema@.instance i", MAX_EXAMINED.max(wanted))
        } else {
            ("@schema@.instance i", wanted)
        };
        let (created, updated) = (rfc3339("f.created_at"), rfc3339("f.updated_at"));
        let statement = format!(
            "WITH examined AS (
                 SELECT i.id, i.name, i.version, i.execution, i.parent, i.created_at, i.updated_at
                 FROM {source}
                 WHERE $1::bigint IS NULL OR (i.created_at, i.id)
                     < (timestamptz 'epoch' + $1 * interval '1 microsecond', $2)
                 ORDER BY i.created_at DESC, i.id DESC LIMIT $6
             ), edge AS (
                 SELECT l.created_at, l.id, (SELECT count(*) FROM examined) AS examined
                 FROM examined l ORDER BY l.created_at, l.id LIMIT 1
             ), found AS (
                 SELECT l.*, x.status FROM examined l
                 LEFT JOIN @schema@.execution x ON x.instance = l.id AND x.number = l.execution
                 WHERE ($3::text IS NULL OR x.status = $3) AND ($4::text IS NULL OR l.name = $4)
                 ORDER BY l.created_at DESC, l.id DESC LIMIT $5
             )
             SELECT e.examined, e.id AS edge_id,
                 (extract(epoch FROM e.created_at) * 1000000)::bigint AS edge_us,
                 (extract(epoch FROM f.created_at) * 1000000)::bigint AS created_us,
                 f.id, f.name, f.version, f.execution, f.parent, f.status,
                 {created} AS created, {updated} AS updated
             FROM edge e LEFT JOIN found f ON true ORDER BY f.created_at DESC, f.id DESC"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&after.as_ref().map(|token| token.created_us), Type::INT8),
                    (&after.as_ref().map(|token| &token.id), Type::TEXT),
                    (&filter.status.map(Status::name), Type::TEXT),
                    (&filter.name, Type::TEXT),
                    (&wanted, Type::INT8),
                    (&max_examined, Type::INT8),
                ],
            )
            .await?;
        let token = |row: &Row, created_us: &str, id: &str| {
            let (created_us, id) = (row.get(created_us), row.get(id));
            PageToken { created_us, id }.to_string()
        };
        // No row: nothing was examined. A row without an instance: none met the filter.
        let is_found = |row: &&Row| row.get::<_, Option<&str>>("id").is_some();
        let found: Vec<&Row> = rows.iter().filter(is_found).collect();
        let page = &found[..found.len().min(limit as usize)];
        let next = if found.len() > page.len() {
            page.last().map(|row| token(row, "created_us", "id"))
        } else {
            rows.first()
                .filter(|row| row.get::<_, i64>("examined") == max_examined)
                .map(|row| token(row, "edge_us", "edge_id"))
        };
        let instances = page.iter().map(|row| instance(row)).collect();
        Ok(InstancePage { instances, next })
    }

    /// One instance with all that belongs to it. Four statements, so its parts may be of slightly
    /// different times.
    pub async fn instance(&self, id: &str) -> Result<InstanceDetail, ViewError> {
        let unknown = || ViewError::UnknownInstance(id.to_owned());
        if contains_nul(id) {
            return Err(unknown());
        }
        let (created, updated) = (rfc3339("i.created_at"), rfc3339("i.updated_at"));
        let (started, completed) = (rfc3339("x.started_at"), rfc3339("x.completed_at"));
        let of_id = [(&id as _, Type::TEXT)];
        let main = format!(
            "SELECT i.id, i.name, i.version, i.execution, i.parent, x.status,
                 {created} AS created, {updated} AS updated,
                 substr(x.output, 1, {MAX_TEXT_BYTES}) AS output,
                 octet_length(x.output)::bigint AS output_bytes,
                 substr(i.custom_status, 1, {MAX_TEXT_BYTES}) AS custom_status,
                 i.custom_status_version, m.*, a.*,
                 EXISTS (SELECT FROM @schema@.mailbox b WHERE b.instance = i.id
                     AND b.token IS NOT NULL AND b.ready_at > clock_timestamp()) AS is_leased,
                 (SELECT count(*) FROM @schema@.instance c WHERE c.parent = i.id) AS children,
                 (SELECT count(*) FROM @schema@.execution y WHERE y.instance = i.id) AS executions
             FROM @schema@.instance i
             LEFT JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
             CROSS JOIN LATERAL (
                 SELECT count(*) FILTER (WHERE g.visible_at > clock_timestamp()) AS later,
                     count(*) AS messages
                 FROM @schema@.message g WHERE g.instance = i.id
             ) m
             CROSS JOIN LATERAL (
                 SELECT count(*) FILTER (WHERE k.token IS NOT NULL
                         AND k.ready_at > clock_timestamp()) AS activities_leased,
                     count(*) AS activities
                 FROM @schema@.activity k WHERE k.instance = i.id
             ) a
             WHERE i.id = $1"
        );
        let rows = self.query(&main, &of_id).await?;
        let row = rows.first().ok_or_else(unknown)?;
        let executions = format!(
            "SELECT x.number, x.status, {started} AS started, {completed} AS completed,
                 (SELECT count(*) FROM @schema@.event e
                  WHERE e.instance = x.instance AND e.execution = x.number) AS events
             FROM @schema@.execution x WHERE x.instance = $1 ORDER BY x.number DESC LIMIT {MAX_LISTED}"
        );
        let children = format!(
            "SELECT id FROM @schema@.instance WHERE parent = $1 ORDER BY id LIMIT {MAX_LISTED}"
        );
        let values = format!(
            "SELECT v.key, substr(v.value, 1, {MAX_TEXT_BYTES}) AS value,
                 octet_length(v.value)::bigint AS bytes, count(*) OVER () AS total
             FROM (
                 SELECT d.key, d.value FROM @schema@.kv_delta d
                 WHERE d.instance = $1 AND d.value IS NOT NULL
                 UNION ALL
                 SELECT k.key, k.value FROM @schema@.kv k
                 WHERE k.instance = $1 AND NOT EXISTS (
                     SELECT FROM @schema@.kv_delta d WHERE d.instance = $1 AND d.key = k.key)
             ) v ORDER BY v.key LIMIT {MAX_LISTED}"
        );
        let executions = self.query(&executions, &of_id).await?;
        let children = self.query(&children, &of_id).await?;
        let values = self.query(&values, &of_id).await?;
        let text = |column: &str| row.get::<_, Option<Vec<u8>>>(column).map(text_of);
        let of = |column: &str| count(row, column);
        Ok(InstanceDetail {
            instance: instance(row),
            output: text("output"),
            output_bytes: row.get::<_, Option<i64>>("output_bytes").map(unsigned),
            custom_status: text("custom_status"),
            custom_status_version: of("custom_status_version"),
            queue: InstanceQueue {
                messages: of("messages") - of("later"),
                later: of("later"),
                is_leased: row.get("is_leased"),
                activities: of("activities") - of("activities_leased"),
                activities_leased: of("activities_leased"),
            },
            children: children.iter().map(|row| row.get("id")).collect(),
            children_count: of("children"),
            executions: executions.iter().map(execution).collect(),
            executions_count: of("executions"),
            values_count: values.first().map_or(0, |row| count(row, "total")),
            values: values.iter().map(value).collect(),
        })
    }

    /// Whether the mailbox of an instance has messages. An instance that was started and has not had
    /// its first turn has messages and nothing else.
    pub async fn has_messages(&self, id: &str) -> Result<bool, ViewError> {
        if contains_nul(id) {
            return Ok(false);
        }
        let exists = "SELECT EXISTS (SELECT FROM @schema@.message g WHERE g.instance = $1)";
        let rows = self.query(exists, &[(&id, Type::TEXT)]).await?;
        Ok(rows[0].get(0))
    }

    /// The events of an execution after the event with the number `after`, in order; of the current
    /// execution if none is named. A page ends after `limit` events (1 to [`MAX_PAGE`]) or 4 MiB.
    pub async fn history(
        &self,
        id: &str,
        execution: Option<u64>,
        after: u64,
        limit: u32,
    ) -> Result<HistoryPage, ViewError> {
        let unknown = || ViewError::UnknownInstance(id.to_owned());
        if contains_nul(id) {
            return Err(unknown());
        }
        let rows = self
            .query(
                "SELECT i.execution AS current, EXISTS (SELECT FROM @schema@.execution x
                     WHERE x.instance = i.id AND x.number = coalesce($2, i.execution)) AS exists
                 FROM @schema@.instance i WHERE i.id = $1",
                &[(&id, Type::TEXT), (&execution.map(number), Type::INT8)],
            )
            .await?;
        let row = rows.first().ok_or_else(unknown)?;
        let execution = execution.unwrap_or_else(|| count(row, "current"));
        if !row.get::<_, bool>("exists") {
            return Err(ViewError::UnknownExecution {
                instance: id.to_owned(),
                execution,
            });
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let rows = self
            .query(
                "SELECT w.number, w.data, w.found FROM (
                     SELECT e.number, e.data, count(*) OVER () AS found,
                         sum(octet_length(e.data)) OVER (ORDER BY e.number)
                             - octet_length(e.data) AS before
                     FROM (
                         SELECT number, data FROM @schema@.event
                         WHERE instance = $1 AND execution = $2 AND number > $3
                         ORDER BY number LIMIT $4
                     ) e
                 ) w WHERE w.before < $5 ORDER BY w.number",
                &[
                    (&id, Type::TEXT),
                    (&number(execution), Type::INT8),
                    (&number(after), Type::INT8),
                    (&(i64::from(limit) + 1), Type::INT8),
                    (&MAX_PAGE_BYTES, Type::INT8),
                ],
            )
            .await?;
        let found = rows.first().map_or(0, |row| count(row, "found"));
        let page = &rows[..rows.len().min(limit as usize)];
        let events: Vec<HistoryEvent> = page.iter().map(history_event).collect();
        let has_more = found > events.len() as u64;
        let next = events.last().map(|event| event.number);
        Ok(HistoryPage {
            instance: id.to_owned(),
            execution,
            events,
            next: next.filter(|_| has_more),
        })
    }

    /// Counts the executions that may be pruned of the next 5,000 instances whose ids follow `after`;
    /// an empty `after` begins with the first.
    pub async fn prunable(
        &self,
        criteria: PruneCriteria,
        after: &str,
    ) -> Result<PrunablePage, ViewError> {
        let statement = format!(
            "WITH examined AS (
                 SELECT i.id, i.execution FROM @schema@.instance i WHERE i.id > $3
                 ORDER BY i.id LIMIT {MAX_EXAMINED}
             )
             SELECT i.id, count(x.number) AS executions,
                 (SELECT count(*) FROM examined) AS examined,
                 (SELECT max(id) FROM examined) AS last
             FROM examined i LEFT JOIN @schema@.execution x ON x.instance = i.id AND {IS_PRUNABLE}
             GROUP BY i.id HAVING count(x.number) > 0 OR i.id = (SELECT max(id) FROM examined)
             ORDER BY i.id"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&criteria.before_ms.map(number), Type::INT8),
                    (&criteria.keep_last.map(i64::from), Type::INT8),
                    (&after, Type::TEXT),
                ],
            )
            .await?;
        let first = rows.first();
        let instances = first.map_or(0, |row| count(row, "examined"));
        let executions = rows
            .iter()
            .map(|row| (row.get("id"), count(row, "executions")));
        Ok(PrunablePage {
            executions: executions.filter(|(_, count)| *count > 0).collect(),
            instances,
            next: first
                .filter(|_| instances == unsigned(MAX_EXAMINED))
                .map(|row| row.get("last")),
        })
    }

    /// Counts the executions of one instance that may be pruned.
    pub async fn prunable_of(&self, criteria: PruneCriteria, id: &str) -> Result<u64, ViewError> {
        let statement = format!(
            "SELECT count(*) AS executions FROM @schema@.instance i
             JOIN @schema@.execution x ON x.instance = i.id AND {IS_PRUNABLE} WHERE i.id = $3"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&criteria.before_ms.map(number), Type::INT8),
                    (&criteria.keep_last.map(i64::from), Type::INT8),
                    (&id, Type::TEXT),
                ],
            )
            .await?;
        Ok(count(&rows[0], "executions"))
    }

    /// The ids of at most `limit` instances without a parent that ended before a time (milliseconds
    /// since 1970); those that ended first come first.
    pub async fn ended(&self, before_ms: u64, limit: u32) -> Result<Vec<String>, ViewError> {
        let statement = format!(
            "SELECT i.id FROM @schema@.execution x
             JOIN @schema@.instance i ON i.id = x.instance AND i.execution = x.number
             WHERE {HAS_ENDED} ORDER BY x.completed_at LIMIT $2"
        );
        let parameters = [
            (&number(before_ms) as _, Type::INT8),
            (&i64::from(limit) as _, Type::INT8),
        ];
        let rows = self.query(&statement, &parameters).await?;
        Ok(rows.iter().map(|row| row.get("id")).collect())
    }

    /// Counts the instances that [`Self::ended`] returns; without a limit, all of them.
    pub async fn count_ended(&self, before_ms: u64, limit: Option<u32>) -> Result<u64, ViewError> {
        let statement = format!(
            "SELECT count(*) AS ended FROM (
                 SELECT FROM @schema@.execution x
                 JOIN @schema@.instance i ON i.id = x.instance AND i.execution = x.number
                 WHERE {HAS_ENDED} LIMIT $2
             ) e"
        );
        let parameters = [
            (&number(before_ms) as _, Type::INT8),
            (&limit.map(i64::from) as _, Type::INT8),
        ];
        let rows = self.query(&statement, &parameters).await?;
        Ok(count(&rows[0], "ended"))
    }
}

fn execution(row: &Row) -> Execution {
    Execution {
        number: count(row, "number"),
        status: row.get("status"),
        events: count(row, "events"),
        started_at: row.get("started"),
        completed_at: row.get("completed"),
    }
}

fn value(row: &Row) -> KeyValue {
    KeyValue {
        key: row.get("key"),
        value: text_of(row.get("value")),
        bytes: count(row, "bytes"),
    }
}

fn history_event(row: &Row) -> HistoryEvent {
    let data: String = row.get("data");
    let event = serde_json::from_str(&data).ok();
    HistoryEvent {
        number: count(row, "number"),
        unreadable: event.is_none().then_some(data),
        event,
    }
}
