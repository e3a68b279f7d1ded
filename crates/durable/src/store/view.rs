//! What an operator's look asks. Every list has an end.

use tokio_postgres::{Row, types::Type};
use wakeline_store::{Error, Postgres};

use super::Parameter;
use crate::{
    item::{number, text_of, unsigned},
    view::{
        Counts, Detail, Execution, Filter, Instance, InstanceQueue, KeyValue, Looked, Place,
        Prunable, Queues, Recorded, Status, Totals,
    },
};

/// Instances that one page looks at for a filter, or one look for executions to prune.
const LOOKED_AT: i64 = 5_000;
/// Children, executions and values that are shown of an instance.
const LISTED: i64 = 100;
/// Of an output, a custom status or a value.
const SHOWN_BYTES: i32 = 64 << 10;
/// A page of history ends with the event that passes it.
const PAGE_BYTES: i64 = 4 << 20;

/// A schema of an open database.
pub(crate) struct Schema {
    postgres: Postgres,
    /// Quoted.
    name: String,
}

/// A page of the list before it is cut.
pub(crate) struct Found {
    pub(crate) instances: Vec<(Place, Instance)>,
    /// The last one that was looked at, if there may be more behind it.
    pub(crate) goes_on_after: Option<Place>,
}

/// A time as it is shown.
fn shown(column: &str) -> String {
    format!("to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
}

fn count(row: &Row, column: &str) -> u64 {
    unsigned(row.get::<_, Option<i64>>(column).unwrap_or(0))
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

/// Before which an execution `x` must have ended, and after which others of its instance `i` it
/// must come, to be prunable: as the schema's `prune` has it. `$1` is the time, `$2` what is kept.
const IS_PRUNABLE: &str = "x.number <> i.execution AND x.status <> 'Running'
    AND ($1::bigint IS NULL OR x.completed_at < to_timestamp($1 / 1000.0))
    AND ($2::bigint IS NULL OR (
        SELECT count(*) FROM @schema@.execution y
        WHERE y.instance = x.instance AND y.number > x.number) >= $2)";

/// An instance `i` that has ended with its execution `x`, and can be deleted.
const HAS_ENDED: &str = "x.completed_at < to_timestamp($1 / 1000.0)
    AND x.status IN ('Completed', 'Failed') AND i.parent IS NULL";

impl Schema {
    pub(crate) fn new(postgres: Postgres, name: String) -> Self {
        Self { postgres, name }
    }

    async fn query(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        let statement = statement.replace("@schema@", &self.name);
        self.postgres
            .query("durable_view", &statement, parameters)
            .await
    }

    pub(crate) async fn totals(&self, schema: &str) -> Result<Totals, Error> {
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
                     (SELECT count(*) FROM @schema@.spoilt) AS spoilt
                 FROM (
                     SELECT sum(instances)::bigint AS instances, sum(executions)::bigint AS executions,
                         sum(events)::bigint AS events, sum(completed)::bigint AS completed,
                         sum(failed)::bigint AS failed
                     FROM @schema@.tally
                 ) t, (
                     SELECT count(*) FILTER (WHERE g.visible_at > clock_timestamp()) AS later,
                         count(*) AS messages
                     FROM @schema@.message g
                 ) m, (
                     SELECT count(*) FILTER (WHERE k.token IS NOT NULL
                             AND k.ready_at > clock_timestamp()) AS activities_leased,
                         count(*) AS activities
                     FROM @schema@.task k
                 ) a",
                &[],
            )
            .await?;
        let row = &rows[0];
        let of = |column: &str| count(row, column);
        Ok(Totals {
            schema: schema.to_owned(),
            instances: Counts {
                total: of("instances"),
                running: of("running"),
                completed: of("completed"),
                failed: of("failed"),
            },
            executions: of("executions"),
            events: of("events"),
            queues: Queues {
                messages: of("messages") - of("later"),
                later: of("later"),
                instances_leased: of("leased"),
                activities: of("activities") - of("activities_leased"),
                activities_leased: of("activities_leased"),
                sessions: of("sessions"),
                spoilt: of("spoilt"),
            },
        })
    }

    /// One more than `limit`, where there are more.
    pub(crate) async fn instances(
        &self,
        filter: &Filter,
        limit: u32,
        after: Option<&Place>,
    ) -> Result<Found, Error> {
        let wanted = i64::from(limit) + 1;
        let is_running = filter.status == Some(Status::Running);
        let (source, looked_at) = if is_running {
            // They are found by an index of their own, however many have ended.
            let source = "@schema@.execution r
                JOIN @schema@.instance i ON i.id = r.instance AND i.execution = r.number
                    AND r.status = 'Running' AND ($4::text IS NULL OR i.name = $4)";
            (source, wanted)
        } else if filter.status.is_some() || filter.name.is_some() {
            ("@schema@.instance i", LOOKED_AT.max(wanted))
        } else {
            ("@schema@.instance i", wanted)
        };
        let (created, updated) = (shown("f.created_at"), shown("f.updated_at"));
        let statement = format!(
            "WITH looked AS (
                 SELECT i.id, i.name, i.version, i.execution, i.parent, i.created_at, i.updated_at
                 FROM {source}
                 WHERE $1::bigint IS NULL OR (i.created_at, i.id)
                     < (timestamptz 'epoch' + $1 * interval '1 microsecond', $2)
                 ORDER BY i.created_at DESC, i.id DESC LIMIT $6
             ), edge AS (
                 SELECT l.created_at, l.id, (SELECT count(*) FROM looked) AS looked
                 FROM looked l ORDER BY l.created_at, l.id LIMIT 1
             ), found AS (
                 SELECT l.*, x.status FROM looked l
                 LEFT JOIN @schema@.execution x ON x.instance = l.id AND x.number = l.execution
                 WHERE ($3::text IS NULL OR x.status = $3) AND ($4::text IS NULL OR l.name = $4)
                 ORDER BY l.created_at DESC, l.id DESC LIMIT $5
             )
             SELECT e.looked, e.id AS edge_id,
                 (extract(epoch FROM e.created_at) * 1000000)::bigint AS edge_at,
                 (extract(epoch FROM f.created_at) * 1000000)::bigint AS made_at,
                 f.id, f.name, f.version, f.execution, f.parent, f.status,
                 {created} AS created, {updated} AS updated
             FROM edge e LEFT JOIN found f ON true ORDER BY f.created_at DESC, f.id DESC"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&after.map(|place| place.made_at), Type::INT8),
                    (&after.map(|place| place.id.as_str()), Type::TEXT),
                    (&filter.status.map(Status::name), Type::TEXT),
                    (&filter.name, Type::TEXT),
                    (&wanted, Type::INT8),
                    (&looked_at, Type::INT8),
                ],
            )
            .await?;
        let place = |row: &Row, at: &str, id: &str| Place {
            made_at: row.get(at),
            id: row.get(id),
        };
        // No row: nothing was looked at. A row without an instance: nothing was found.
        let is_found = |row: &&Row| row.get::<_, Option<&str>>("id").is_some();
        let instances = rows.iter().filter(is_found);
        Ok(Found {
            instances: instances
                .map(|row| (place(row, "made_at", "id"), instance(row)))
                .collect(),
            goes_on_after: rows
                .first()
                .filter(|row| row.get::<_, i64>("looked") == looked_at)
                .map(|row| place(row, "edge_at", "edge_id")),
        })
    }

    pub(crate) async fn instance(&self, id: &str) -> Result<Option<Detail>, Error> {
        let (created, updated) = (shown("i.created_at"), shown("i.updated_at"));
        let (started, completed) = (shown("x.started_at"), shown("x.completed_at"));
        let of_id = [(&id as _, Type::TEXT)];
        let main = format!(
            "SELECT i.id, i.name, i.version, i.execution, i.parent, x.status,
                 {created} AS created, {updated} AS updated,
                 substr(x.output, 1, {SHOWN_BYTES}) AS output,
                 octet_length(x.output)::bigint AS output_bytes,
                 substr(i.custom_status, 1, {SHOWN_BYTES}) AS custom_status,
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
                 FROM @schema@.task k WHERE k.instance = i.id
             ) a
             WHERE i.id = $1"
        );
        let rows = self.query(&main, &of_id).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let executions = format!(
            "SELECT x.number, x.status, {started} AS started, {completed} AS completed,
                 (SELECT count(*) FROM @schema@.event e
                  WHERE e.instance = x.instance AND e.execution = x.number) AS events
             FROM @schema@.execution x WHERE x.instance = $1 ORDER BY x.number DESC LIMIT {LISTED}"
        );
        let children = format!(
            "SELECT id FROM @schema@.instance WHERE parent = $1 ORDER BY id LIMIT {LISTED}"
        );
        let values = format!(
            "SELECT v.key, substr(v.value, 1, {SHOWN_BYTES}) AS value,
                 octet_length(v.value)::bigint AS bytes, count(*) OVER () AS total
             FROM (
                 SELECT d.key, d.value FROM @schema@.kv_delta d
                 WHERE d.instance = $1 AND d.value IS NOT NULL
                 UNION ALL
                 SELECT k.key, k.value FROM @schema@.kv k
                 WHERE k.instance = $1 AND NOT EXISTS (
                     SELECT FROM @schema@.kv_delta d WHERE d.instance = $1 AND d.key = k.key)
             ) v ORDER BY v.key LIMIT {LISTED}"
        );
        let executions = self.query(&executions, &of_id).await?;
        let children = self.query(&children, &of_id).await?;
        let values = self.query(&values, &of_id).await?;
        let text = |column: &str| row.get::<_, Option<Vec<u8>>>(column).map(text_of);
        let of = |column: &str| count(row, column);
        Ok(Some(Detail {
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
        }))
    }

    pub(crate) async fn has_mail(&self, id: &str) -> Result<bool, Error> {
        let asked = "SELECT EXISTS (SELECT FROM @schema@.message g WHERE g.instance = $1)";
        let rows = self.query(asked, &[(&id, Type::TEXT)]).await?;
        Ok(rows[0].get(0))
    }

    /// The current execution of an instance, and whether the given one is there.
    pub(crate) async fn execution(
        &self,
        id: &str,
        execution: Option<u64>,
    ) -> Result<Option<(u64, bool)>, Error> {
        let rows = self
            .query(
                "SELECT i.execution, EXISTS (SELECT FROM @schema@.execution x
                     WHERE x.instance = i.id AND x.number = coalesce($2, i.execution))
                 FROM @schema@.instance i WHERE i.id = $1",
                &[(&id, Type::TEXT), (&execution.map(number), Type::INT8)],
            )
            .await?;
        Ok(rows.first().map(|row| (unsigned(row.get(0)), row.get(1))))
    }

    /// Events after a number, and whether there are more.
    pub(crate) async fn events(
        &self,
        id: &str,
        execution: u64,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<Recorded>, bool), Error> {
        let rows = self
            .query(
                "SELECT w.number, w.data, w.looked FROM (
                     SELECT e.number, e.data, count(*) OVER () AS looked,
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
                    (&PAGE_BYTES, Type::INT8),
                ],
            )
            .await?;
        let there = rows.first().map_or(0, |row| count(row, "looked"));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let events: Vec<Recorded> = rows.iter().take(limit).map(recorded).collect();
        let is_more = there > events.len() as u64;
        Ok((events, is_more))
    }

    pub(crate) async fn prunable(&self, what: Prunable, after: &str) -> Result<Looked, Error> {
        let statement = format!(
            "WITH looked AS (
                 SELECT i.id, i.execution FROM @schema@.instance i WHERE i.id > $3
                 ORDER BY i.id LIMIT {LOOKED_AT}
             )
             SELECT i.id, count(x.number) AS executions,
                 (SELECT count(*) FROM looked) AS looked, (SELECT max(id) FROM looked) AS last
             FROM looked i LEFT JOIN @schema@.execution x ON x.instance = i.id AND {IS_PRUNABLE}
             GROUP BY i.id HAVING count(x.number) > 0 OR i.id = (SELECT max(id) FROM looked)
             ORDER BY i.id"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&what.before_ms.map(number), Type::INT8),
                    (&what.keep_last.map(i64::from), Type::INT8),
                    (&after, Type::TEXT),
                ],
            )
            .await?;
        let first = rows.first();
        let instances = first.map_or(0, |row| count(row, "looked"));
        let executions = rows
            .iter()
            .map(|row| (row.get("id"), count(row, "executions")));
        Ok(Looked {
            executions: executions.filter(|(_, count)| *count > 0).collect(),
            instances,
            next: first
                .filter(|_| instances == unsigned(LOOKED_AT))
                .map(|row| row.get("last")),
        })
    }

    pub(crate) async fn prunable_of(&self, what: Prunable, id: &str) -> Result<u64, Error> {
        let statement = format!(
            "SELECT count(*) AS executions FROM @schema@.instance i
             JOIN @schema@.execution x ON x.instance = i.id AND {IS_PRUNABLE} WHERE i.id = $3"
        );
        let rows = self
            .query(
                &statement,
                &[
                    (&what.before_ms.map(number), Type::INT8),
                    (&what.keep_last.map(i64::from), Type::INT8),
                    (&id, Type::TEXT),
                ],
            )
            .await?;
        Ok(count(&rows[0], "executions"))
    }

    pub(crate) async fn ended(&self, before_ms: u64, limit: u32) -> Result<Vec<String>, Error> {
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
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    pub(crate) async fn count_ended(
        &self,
        before_ms: u64,
        limit: Option<u32>,
    ) -> Result<u64, Error> {
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

fn recorded(row: &Row) -> Recorded {
    let data: String = row.get("data");
    let event = serde_json::from_str(&data).ok();
    Recorded {
        number: count(row, "number"),
        unreadable: event.is_none().then_some(data),
        event,
    }
}
