//! Statements that need no function of their own. `@schema@` stands for the schema.

pub(crate) const INSTANCE_STATS: &str = "\
    SELECT h.count AS events, h.bytes AS event_bytes, v.count AS keys, v.bytes AS value_bytes,
        (SELECT e.data FROM @schema@.event e
         WHERE e.instance = i.id AND e.execution = i.execution AND e.number = 1) AS started
    FROM @schema@.instance i
    CROSS JOIN LATERAL (
        SELECT count(*), coalesce(sum(octet_length(e.data)), 0)::bigint AS bytes
        FROM @schema@.event e WHERE e.instance = i.id AND e.execution = i.execution
    ) h
    CROSS JOIN LATERAL (
        SELECT count(*), coalesce(sum(octet_length(a.value)), 0)::bigint AS bytes FROM (
            SELECT d.value FROM @schema@.kv_delta d WHERE d.instance = i.id AND d.value IS NOT NULL
            UNION ALL
            SELECT k.value FROM @schema@.kv k WHERE k.instance = i.id AND NOT EXISTS (
                SELECT FROM @schema@.kv_delta d WHERE d.instance = i.id AND d.key = k.key)
        ) a
    ) v
    WHERE i.id = $1";

pub(crate) const LIST_INSTANCES: &str = "\
    SELECT id FROM @schema@.instance ORDER BY created_at DESC, id";

pub(crate) const LIST_INSTANCES_BY_STATUS: &str = "\
    SELECT i.id FROM @schema@.instance i
    JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
    WHERE x.status = $1 ORDER BY i.created_at DESC, i.id";

pub(crate) const LIST_EXECUTIONS: &str = "\
    SELECT number FROM @schema@.execution WHERE instance = $1 ORDER BY number";

pub(crate) const LATEST_EXECUTION_ID: &str = "\
    SELECT coalesce(max(number), 1) AS number FROM @schema@.execution WHERE instance = $1";

pub(crate) const GET_INSTANCE_INFO: &str = "\
    SELECT i.id, i.name, i.version, i.execution, i.parent, x.status, x.output,
        (extract(epoch FROM i.created_at) * 1000)::bigint AS created,
        (extract(epoch FROM i.updated_at) * 1000)::bigint AS updated
    FROM @schema@.instance i
    LEFT JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
    WHERE i.id = $1";

pub(crate) const GET_EXECUTION_INFO: &str = "\
    SELECT x.number, x.status, x.output,
        (extract(epoch FROM x.started_at) * 1000)::bigint AS started,
        (extract(epoch FROM x.completed_at) * 1000)::bigint AS completed,
        (SELECT count(*) FROM @schema@.event e
         WHERE e.instance = x.instance AND e.execution = x.number) AS events
    FROM @schema@.execution x WHERE x.instance = $1 AND x.number = $2";

pub(crate) const GET_SYSTEM_METRICS: &str = "\
    SELECT sum(instances)::bigint AS instances, sum(executions)::bigint AS executions,
        sum(events)::bigint AS events, sum(completed)::bigint AS completed,
        sum(failed)::bigint AS failed,
        (SELECT count(*) FROM @schema@.execution x
         JOIN @schema@.instance i ON i.id = x.instance AND i.execution = x.number
         WHERE x.status = 'Running') AS running
    FROM @schema@.counters";

pub(crate) const GET_QUEUE_DEPTHS: &str = "\
    SELECT
    (SELECT count(*) FROM @schema@.message g
     LEFT JOIN @schema@.mailbox m ON m.instance = g.instance AND m.token IS NOT NULL
         AND g.number <= m.leased_through
         AND (g.visible_at IS NULL OR g.visible_at <= m.leased_at)
     WHERE m.instance IS NULL) AS messages,
    (SELECT count(*) FROM @schema@.activity t WHERE t.token IS NULL) AS activities";

pub(crate) const READ_WITH_EXECUTION: &str = "\
    SELECT data FROM @schema@.event WHERE instance = $1 AND execution = $2
    ORDER BY number";

pub(crate) const APPEND_WITH_EXECUTION: &str = "SELECT @schema@.append_events($1, $2, $3, $4)";

pub(crate) const RENEW_SESSION_LOCK: &str = "\
    WITH renewed AS (
        UPDATE @schema@.session SET
            locked_until = clock_timestamp() + $2 * interval '1 microsecond'
        WHERE owner = ANY ($1) AND locked_until > clock_timestamp()
            AND active_at + $3 * interval '1 microsecond' > clock_timestamp()
        RETURNING 1
    ) SELECT count(*) AS sessions FROM renewed";

pub(crate) const CLEANUP_ORPHANED_SESSIONS: &str = "\
    WITH deleted AS (
        DELETE FROM @schema@.session s WHERE s.locked_until < clock_timestamp()
            AND NOT EXISTS (SELECT FROM @schema@.activity t WHERE t.session = s.id)
        RETURNING 1
    ) SELECT count(*) AS sessions FROM deleted";

pub(crate) const GET_KV_VALUE: &str = "\
    SELECT value FROM (
        SELECT value, 0 AS layer FROM @schema@.kv_delta WHERE instance = $1 AND key = $2
        UNION ALL
        SELECT value, 1 FROM @schema@.kv WHERE instance = $1 AND key = $2
    ) v ORDER BY layer LIMIT 1";

pub(crate) const GET_KV_ALL_VALUES: &str = "\
    SELECT key, value FROM @schema@.kv_delta WHERE instance = $1 AND value IS NOT NULL
    UNION ALL
    SELECT v.key, v.value FROM @schema@.kv v WHERE v.instance = $1 AND NOT EXISTS (
        SELECT FROM @schema@.kv_delta d WHERE d.instance = $1 AND d.key = v.key)";

pub(crate) const SET_ASIDE_ACTIVITY: &str = "SELECT @schema@.set_aside_activity($1, $2, $3, $4)";

pub(crate) const RELEASE_INSTANCE: &str = "SELECT * FROM @schema@.release_instance($1, $2, $3, $4)";

pub(crate) const RELEASE_ACTIVITY: &str = "SELECT * FROM @schema@.release_activity($1, $2, $3, $4)";

pub(crate) const RENEW_INSTANCE: &str = "SELECT @schema@.renew_instance($1, $2, $3)";

pub(crate) const RENEW_ACTIVITY: &str = "SELECT @schema@.renew_activity($1, $2, $3)";
