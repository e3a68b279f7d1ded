//! The statements of the reads, in the SQL that both databases share; see [`read`](super::read).

use std::{fmt::Write, sync::LazyLock};

use crate::counters::columns;

/// How many rows there are, and a page of them.
#[derive(Clone, Copy, Debug)]
pub struct PagedStatement {
    pub count: &'static str,
    pub rows: &'static str,
}

macro_rules! paged {
    ($columns:literal, $from:expr, $page:literal) => {
        PagedStatement {
            count: concat!("SELECT count(*) AS total ", $from),
            rows: concat!("SELECT ", $columns, " ", $from, " ", $page),
        }
    };
}

pub const NOW: &str = "SELECT {now} AS now_us";

pub const QUEUES: PagedStatement = paged!(
    "q.id, q.public_id, q.name, q.namespace, q.task, q.priority,
     CAST(q.options AS text) AS options, {us q.created_at} AS created_us, q.lease_ms",
    "FROM wakeline.queue q
     WHERE ($1 IS NULL OR q.name = $1) AND ($2 IS NULL OR q.namespace = $2)
         AND ($3 IS NULL OR q.task = $3)",
    "ORDER BY q.id DESC LIMIT $4 OFFSET $5"
);

/// As callers gave them.
pub const QUEUE_OPTIONS: &str =
    "SELECT CAST(q.options AS text) AS options FROM wakeline.queue q WHERE q.name = $1";

pub const QUEUE_ID: &str = "SELECT q.id FROM wakeline.queue q WHERE q.name = $1";

/// Of the queues from id `$1` to `$2`.
pub const QUEUE_TOTALS: &str = "
    SELECT t.queue_id, CAST(sum(t.total) AS bigint) AS total, CAST(sum(t.ahead) AS bigint) AS ahead,
        CAST(sum(CASE WHEN t.ready_us > {now} THEN t.leased ELSE 0 END) AS bigint) AS leased,
        CAST(sum(t.letters) AS bigint) AS letters,
        CAST(sum(t.all_letters) AS bigint) AS all_letters, count(*) AS partitions,
        CAST(sum(t.consumed) AS bigint) AS consumed,
        min(CASE WHEN t.ahead > 0 THEN t.oldest_us END) AS oldest_us
    FROM wakeline.queue_partition_totals t WHERE t.queue_id >= $1 AND t.queue_id <= $2
    GROUP BY t.queue_id";

/// Of all groups. One lease may be on several partitions, and a partition has one for each group.
pub const LEASES: &str = "
    SELECT count(DISTINCT c.lease_id) AS leases, count(DISTINCT c.partition_id) AS partitions
    FROM wakeline.queue_cursor c
    JOIN wakeline.queue_partition p ON p.id = c.partition_id
    JOIN wakeline.queue q ON q.id = p.queue_id
    WHERE c.lease_id IS NOT NULL AND {us c.ready_at} > {now} AND ($1 IS NULL OR q.name = $1)
        AND ($2 IS NULL OR q.namespace = $2) AND ($3 IS NULL OR q.task = $3)";

pub const PARTITIONS: PagedStatement = PagedStatement {
    count: "SELECT count(*) AS total
            FROM wakeline.queue_partition p JOIN wakeline.queue q ON q.id = p.queue_id
            WHERE p.queue_id >= $1 AND p.queue_id <= $2",
    rows: "SELECT t.partition_id, t.queue, t.partition, t.created_us, t.last_us, t.consumed,
               t.oldest_us, t.total, t.ahead,
               CASE WHEN t.ready_us > {now} THEN t.leased ELSE 0 END AS leased, t.letters,
               t.all_letters
           FROM wakeline.queue_partition_totals t WHERE t.queue_id >= $1 AND t.queue_id <= $2
           ORDER BY t.queue_id, t.ordinal LIMIT $3 OFFSET $4",
};

pub const NAMES: &str = "
    SELECT count(*) AS queues, count(DISTINCT nullif(q.namespace, '')) AS namespaces,
        count(DISTINCT nullif(q.task, '')) AS tasks, {now} AS now_us
    FROM wakeline.queue q";

pub const OVERVIEW: &str = "
    SELECT CAST(sum(o.total) AS bigint) AS total, CAST(sum(o.ahead) AS bigint) AS ahead,
        CAST(sum(o.leased) AS bigint) AS leased, CAST(sum(o.letters) AS bigint) AS letters,
        CAST(sum(o.all_letters) AS bigint) AS all_letters, count(*) AS partitions,
        min(o.ahead) AS min_ahead, max(o.ahead) AS max_ahead,
        CAST(avg(o.ahead) AS bigint) AS mean_ahead,
        min(CASE WHEN o.by_ahead = (o.count + 1) / 2 THEN o.ahead END) AS median_ahead,
        min(o.wait) AS min_wait, max(o.wait) AS max_wait, CAST(avg(o.wait) AS bigint) AS mean_wait,
        min(CASE WHEN o.by_wait = (o.count + 1) / 2 THEN o.wait END) AS median_wait
    FROM (
        SELECT o.*, row_number() OVER (ORDER BY o.ahead) AS by_ahead,
            row_number() OVER (ORDER BY o.wait) AS by_wait, count(*) OVER () AS count
        FROM (
            SELECT t.total, t.ahead, t.letters, t.all_letters,
                CASE WHEN t.ready_us > {now} THEN t.leased ELSE 0 END AS leased,
                CASE WHEN t.ahead > 0 THEN {now} - t.oldest_us ELSE 0 END AS wait
            FROM wakeline.queue_partition_totals t) o) o";

pub const GROUPS: &str = "
    SELECT g.id, g.name, q.name AS queue, q.namespace, q.task, g.mode, {us g.begin_at} AS begin_us,
        {us g.created_at} AS created_us
    FROM wakeline.queue_group g JOIN wakeline.queue q ON q.id = g.queue_id
    ORDER BY g.name, q.name LIMIT $1";

pub const GROUP_TOTALS: &str = "
    SELECT r.group_id, count(*) AS cursors, CAST(sum(r.ahead) AS bigint) AS lag,
        CAST(sum(CASE WHEN r.ahead > 0 THEN 1 ELSE 0 END) AS bigint) AS lagging,
        CAST(sum(CASE WHEN r.ready_us > {now} AND r.leased > 0 THEN 1 ELSE 0 END) AS bigint)
            AS leased,
        count(DISTINCT CASE WHEN r.ready_us > {now} THEN r.lease_id END) AS leases,
        min(CASE WHEN r.ahead > 0 THEN r.oldest_us END) AS oldest_us
    FROM wakeline.queue_reader r GROUP BY r.group_id";

pub const GROUP_NAMES: &str = "
    SELECT DISTINCT g.name FROM wakeline.queue_group g
    WHERE g.queue_id >= $1 AND g.queue_id <= $2 ORDER BY g.name LIMIT $3";

macro_rules! readers {
    ($oldest:literal, $from:literal) => {
        concat!(
            "SELECT r.group_name, r.queue, r.partition, r.partition_id, r.position, r.ahead,
                 CASE WHEN r.ready_us > {now} THEN r.lease_id END AS lease_id, r.leased_to,
                 r.ready_us, r.consumed, ",
            $oldest,
            " AS oldest_us ",
            $from
        )
    };
}

/// A group in the partitions of the queues from id `$2` to `$3`.
pub const GROUP_READERS: &str = readers!(
    "CASE WHEN r.ahead > 0 THEN r.oldest_us END",
    "FROM wakeline.queue_group g
     JOIN wakeline.queue_partition p ON p.queue_id = g.queue_id
     JOIN wakeline.queue_reader r ON r.partition_id = p.id AND r.group_id = g.id
     WHERE g.name = $1 AND g.queue_id >= $2 AND g.queue_id <= $3
     ORDER BY r.queue, p.ordinal LIMIT $4"
);

pub const LAGGING_READERS: &str = readers!(
    "r.oldest_us",
    "FROM wakeline.queue_reader r
     WHERE r.next > r.position AND r.oldest_us <= {now} - $1 AND r.ahead > 0
     ORDER BY r.oldest_us LIMIT $2"
);

/// Queue mode comes first.
pub const PARTITION_READERS: &str = readers!(
    "r.oldest_us",
    "FROM wakeline.queue_reader r WHERE r.partition_id = $1
     ORDER BY r.group_name <> '__QUEUE_MODE__', r.position, r.group_name"
);

macro_rules! listed_partitions {
    ($totals:literal, $from:literal) => {
        concat!(
            "SELECT t.partition_id, t.queue, t.namespace, t.task, t.priority, t.partition, t.first,
                 t.next, t.last_us, t.group_id, t.group_name, t.position, t.leased_to,
                 CASE WHEN t.leased_to IS NOT NULL AND t.ready_us > {now} THEN 1 ELSE 0 END
                     AS is_leased,
                 t.total, t.ahead, t.letters",
            $totals,
            " FROM wakeline.queue_partition_totals t ",
            $from
        )
    };
}

pub const LISTED_PARTITION: &str = listed_partitions!("", "WHERE t.partition_id = $1");

/// Each row has the sums of all partitions too.
pub const LISTED_PARTITIONS: &str = listed_partitions!(
    ", CAST(sum(t.total) OVER () AS bigint) AS sum_total,
     CAST(sum(t.ahead) OVER () AS bigint) AS sum_ahead,
     CAST(sum(CASE WHEN t.ready_us > {now} THEN t.leased ELSE 0 END) OVER () AS bigint)
         AS sum_leased,
     CAST(sum(t.letters) OVER () AS bigint) AS sum_letters",
    "WHERE t.queue_id >= $1 AND t.queue_id <= $2 AND t.next > t.first AND t.last_us >= $3
         AND ($4 IS NULL OR t.partition = $4) AND ($5 IS NULL OR t.namespace = $5)
         AND ($6 IS NULL OR t.task = $6)
     ORDER BY t.last_us DESC, t.partition_id DESC LIMIT $7"
);

/// Positions from `$2` to before `$3` that are dead for group `$4`, were deleted, or are dead
/// letters of the group named `$5`.
pub const FLAGGED_POSITIONS: &str = "
    SELECT f.position FROM wakeline.queue_message_flag f
    WHERE f.partition_id = $1 AND f.group_id IN (0, $4) AND f.is_dead
        AND f.position >= $2 AND f.position < $3
    UNION SELECT d.position FROM wakeline.queue_dead_letter d
    WHERE d.partition_id = $1 AND d.group_name = $5 AND d.position >= $2 AND d.position < $3";

/// Of a segment's positions: `is_letter` is 0 where a message is dead for group `$4`, and 1 where
/// the group named `$5` has a dead letter of it, which comes last.
pub const DEAD_POSITIONS: &str = "
    SELECT f.position, 0 AS is_letter FROM wakeline.queue_message_flag f
    WHERE f.partition_id = $1 AND f.group_id = $4 AND f.is_dead
        AND f.position >= $2 AND f.position <= $3
    UNION ALL SELECT d.position, 1 FROM wakeline.queue_dead_letter d
    WHERE d.partition_id = $1 AND d.group_name = $5 AND d.position >= $2 AND d.position <= $3
    ORDER BY is_letter";

/// The segment that has position `$2`, or the next one.
pub const SEGMENT: &str = "
    SELECT s.partition_id, s.first, s.last, {us s.created_at} AS created_us, s.only_group, s.body
    FROM wakeline.queue_segment s WHERE s.partition_id = $1 AND s.last >= $2
    ORDER BY s.last LIMIT 1";

/// Of a message that has not been deleted: at `$2`, or found by the hash `$3`.
pub const MESSAGE_POSITION: &str = "
    SELECT a.position FROM (
        SELECT coalesce($2, (
            SELECT t.position FROM wakeline.queue_transaction t
            WHERE t.partition_id = $1 AND t.hash = $3)) AS position) a
    JOIN wakeline.queue_partition p ON p.id = $1
    WHERE a.position >= p.first_position AND a.position < p.next_position
        AND NOT EXISTS (
            SELECT 1 FROM wakeline.queue_message_flag f
            WHERE f.partition_id = $1 AND f.group_id = 0 AND f.position = a.position)";

macro_rules! dead_letter_columns {
    () => {
        "d.id, q.name AS queue, q.namespace, q.task, q.priority, d.partition_id,
         p.name AS partition, d.group_name, d.position, d.failures, d.error,
         {us d.failed_at} AS failed_us, {us d.created_at} AS created_us, d.transaction_id, d.message"
    };
}

macro_rules! dead_letters {
    () => {
        "FROM wakeline.queue_dead_letter d
         JOIN wakeline.queue q ON q.id = d.queue_id
         JOIN wakeline.queue_partition p ON p.id = d.partition_id "
    };
}

macro_rules! filtered_dead_letters {
    () => {
        concat!(
            dead_letters!(),
            "WHERE d.queue_id >= $1 AND d.queue_id <= $2
                 AND d.failed_at >= {at $3} AND d.failed_at < {at $4}
                 AND ($5 IS NULL OR p.name = $5) AND ($6 IS NULL OR d.group_name = $6)
                 AND ($7 IS NULL OR q.namespace = $7) AND ($8 IS NULL OR q.task = $8)"
        )
    };
}

pub const DEAD_LETTERS: PagedStatement = PagedStatement {
    count: concat!("SELECT count(*) AS total ", filtered_dead_letters!()),
    rows: concat!(
        "SELECT ",
        dead_letter_columns!(),
        " ",
        filtered_dead_letters!(),
        " ORDER BY d.failed_at DESC, d.id DESC LIMIT $9 OFFSET $10"
    ),
};

/// Of the message with transaction id `$2`, at position `$4` or found by the hash `$5`.
pub const DEAD_LETTERS_OF_MESSAGE: &str = concat!(
    "SELECT ",
    dead_letter_columns!(),
    " ",
    dead_letters!(),
    "WHERE d.partition_id = $1 AND (d.transaction_id = $2 OR d.position = coalesce($4, (
         SELECT t.position FROM wakeline.queue_transaction t
         WHERE t.partition_id = $1 AND t.hash = $5)))
     ORDER BY d.id LIMIT $3"
);

macro_rules! traces {
    ($names:literal, $from:literal) => {
        concat!(
            "SELECT t.id, t.partition_id, t.transaction_id, t.group_name, t.event, t.data, t.worker,
                 {us t.created_at} AS created_us, ",
            $names,
            $from
        )
    };
}

pub const TRACES_OF_MESSAGE: &str = traces!(
    "NULL AS queue, NULL AS partition ",
    "FROM wakeline.queue_trace t WHERE t.partition_id = $1 AND t.transaction_id = $2
     ORDER BY t.created_at, t.id LIMIT $3"
);

pub const TRACE_NAMES_OF_MESSAGE: &str = "
    SELECT n.trace_id, n.name FROM wakeline.queue_trace t
    JOIN wakeline.queue_trace_name n ON n.trace_id = t.id AND n.created_at = t.created_at
    WHERE t.partition_id = $1 AND t.transaction_id = $2 ORDER BY n.name";

pub const TRACES_NAMED: PagedStatement = PagedStatement {
    count: "SELECT count(*) AS total FROM wakeline.queue_trace_name n
            WHERE n.name = $1 AND n.created_at >= {at $2} AND n.created_at < {at $3}",
    rows: traces!(
        "q.name AS queue, p.name AS partition ",
        "FROM (
             SELECT n.trace_id, n.created_at FROM wakeline.queue_trace_name n
             WHERE n.name = $1 AND n.created_at >= {at $2} AND n.created_at < {at $3}
             ORDER BY n.created_at DESC, n.trace_id DESC LIMIT $4 OFFSET $5) n
         JOIN wakeline.queue_trace t ON t.id = n.trace_id
         LEFT JOIN wakeline.queue_partition p ON p.id = t.partition_id
         LEFT JOIN wakeline.queue q ON q.id = p.queue_id
         ORDER BY n.created_at DESC, n.trace_id DESC"
    ),
};

pub const TRACE_NAMES: PagedStatement = PagedStatement {
    count: "SELECT count(DISTINCT n.name) AS total FROM wakeline.queue_trace_name n",
    rows: "SELECT o.name, o.traces, {us o.last_at} AS last_us, (
               SELECT count(*) FROM (
                   SELECT DISTINCT t.partition_id, t.transaction_id
                   FROM wakeline.queue_trace_name n
                   JOIN wakeline.queue_trace t ON t.id = n.trace_id
                   WHERE n.name = o.name) m) AS messages
           FROM (
               SELECT n.name, count(*) AS traces, max(n.created_at) AS last_at
               FROM wakeline.queue_trace_name n GROUP BY n.name
               ORDER BY 3 DESC, 1 LIMIT $1 OFFSET $2) o
           ORDER BY o.last_at DESC, o.name",
};

/// Counters per time step: by queue if `$5` is 1. If `$6` is 1, the server's own row counts for the
/// numbers of calls, because a call may concern several queues or none.
pub static COUNTERS: LazyLock<String> = LazyLock::new(|| {
    let mut sums = String::new();
    for column in columns() {
        let name = column.name;
        let counted = match column.is_servers {
            true => format!("CASE WHEN (c.queue = '') = ($6 = 1) THEN c.{name} ELSE 0 END"),
            false => format!("c.{name}"),
        };
        let _ = write!(sums, ", CAST(sum({counted}) AS bigint) AS {name}");
    }
    format!(
        "SELECT ({{us c.minute}} / $3) * $3 AS bucket_us,
             CASE WHEN $5 = 1 THEN c.queue ELSE '' END AS queue_name,
             max(c.max_lag_us) AS longest_us, max(c.partitions) AS most_partitions{sums}
         FROM wakeline.queue_counters c
         WHERE c.minute >= {{at $1}} AND c.minute < {{at $2}} AND ($4 IS NULL OR c.queue = $4)
             AND ($6 = 1 OR c.queue <> '')
         GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $7"
    )
});

pub const HELD_POPS_BY_NODE: &str = "
    SELECT ({us h.minute} / $3) * $3 AS bucket_us, h.queue AS queue_name,
        CAST(sum(h.held * 1000 / h.samples) AS bigint) AS thousandths, count(*) AS minutes,
        h.hostname AS host, h.port AS host_port
    FROM wakeline.queue_held_pops h
    WHERE h.minute >= {at $1} AND h.minute < {at $2} AND ($4 IS NULL OR h.queue = $4)
    GROUP BY 1, 2, 5, 6 ORDER BY 1, 2, 5, 6 LIMIT $5";

/// All nodes together.
pub const HELD_POPS_BY_QUEUE: &str = "
    SELECT ({us h.minute} / $3) * $3 AS bucket_us, h.queue AS queue_name,
        CAST(sum(h.held * 1000 / h.samples) AS bigint) AS thousandths,
        count(DISTINCT h.minute) AS minutes, NULL AS host, NULL AS host_port
    FROM wakeline.queue_held_pops h
    WHERE h.minute >= {at $1} AND h.minute < {at $2} AND ($4 IS NULL OR h.queue = $4)
    GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $5";

macro_rules! gauges {
    ($($name:literal),+) => {
        concat!($(
            ", CAST(sum(n.", $name, ") AS bigint) AS ", $name, "_sum, count(n.", $name, ") AS ",
            $name, "_count, min(n.", $name, ") AS ", $name, "_min, max(n.", $name, ") AS ", $name,
            "_max, max(CASE WHEN n.minute = s.last_minute THEN n.", $name, " END) AS ", $name,
            "_last"
        ),+)
    };
}

pub const NODE_STATS: &str = concat!(
    "SELECT s.bucket_us AS bucket, s.hostname AS host, s.port AS host_port,
         max(s.minutes) AS minutes_told, max({us s.last_minute}) AS last_us,
         CAST(sum(n.messages) AS bigint) AS messages_sum",
    gauges!(
        "cpu_user",
        "cpu_system",
        "resident_bytes",
        "virtual_bytes",
        "connections",
        "busy_connections",
        "held",
        "late_us",
        "max_late_us"
    ),
    " FROM (
         SELECT ({us n.minute} / $3) * $3 AS bucket_us, n.hostname, n.port, count(*) AS minutes,
             max(n.minute) AS last_minute
         FROM wakeline.queue_node_stats n
         WHERE n.minute >= {at $1} AND n.minute < {at $2} AND ($4 IS NULL OR n.hostname = $4)
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $5) s
     JOIN wakeline.queue_node_stats n ON n.hostname = s.hostname AND n.port = s.port
         AND ({us n.minute} / $3) * $3 = s.bucket_us
     WHERE n.minute >= {at $1} AND n.minute < {at $2}
     GROUP BY 1, 2, 3 ORDER BY 2, 3, 1"
);
