//! The rows that a write or a claim reads must not grow with idle partitions or consumed messages,
//! also on a database without statistics, where the planner guesses.

use tokio_postgres::{Client, types::Type};
use wakeline_queue::store::postgres::MIGRATIONS;
use wakeline_testkit::PostgresDatabase;

/// Idle partitions, and segments of one partition of which most are behind or far ahead.
const MANY: i64 = 5_000;
/// Not the cursors: what a claim reads there also depends on how far PostgreSQL has tidied up behind
/// the claims before it.
const TABLES: [&str; 6] = [
    "queue",
    "queue_group",
    "queue_partition",
    "queue_segment",
    "queue_transaction",
    "queue_message_flag",
];
const FEW: i64 = 100;

/// Index entries and rows of `table` read so far, as far as this session has not reported them yet.
async fn rows_read(client: &Client, table: &str) -> i64 {
    let rows = client
        .query_typed(
            "SELECT coalesce(t.seq_tup_read, 0) + coalesce(t.idx_tup_fetch, 0) + coalesce(
                 (SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid))
                  FROM pg_index i WHERE i.indrelid = t.relid), 0)::bigint
             FROM pg_stat_xact_user_tables t WHERE t.schemaname = 'wakeline' AND t.relname = $1",
            &[(&table, Type::TEXT)],
        )
        .await
        .expect("the statistics can be read");
    rows[0].get(0)
}

async fn read_few(client: &Client, what: &str, statement: &str) {
    client.batch_execute("BEGIN").await.expect("a transaction");
    // Within a transaction the statistics are not reset: the difference counts.
    let mut before = Vec::new();
    for table in TABLES {
        before.push(rows_read(client, table).await);
    }
    client.batch_execute(statement).await.expect(what);
    for (table, before) in TABLES.iter().zip(before) {
        let read = rows_read(client, table).await - before;
        assert!(read < FEW, "{what} read {read} rows of {table}");
    }
    client.batch_execute("COMMIT").await.expect("a commit");
}

/// Queue `q` has many partitions, all of which group `g` has consumed but `ready` and `long`;
/// `long` has many segments, and the group is in their middle.
async fn fill(client: &Client) {
    let half = MANY / 2;
    let fill = format!(
        "
        DO $$ DECLARE t text; BEGIN
            FOR t IN SELECT relname FROM pg_class
                WHERE relnamespace = 'wakeline'::regnamespace AND relkind = 'r'
            LOOP
                EXECUTE format('ALTER TABLE wakeline.%I SET (autovacuum_enabled = false)', t);
            END LOOP;
        END $$;
        SELECT wakeline.queue_find_or_make_partitions(
            array(SELECT 'q' FROM generate_series(1, {MANY})),
            array(SELECT 'p' || n FROM generate_series(1, {MANY}) n));
        SELECT wakeline.queue_find_or_make_partitions(array['q', 'q'], array['ready', 'long']);
        INSERT INTO wakeline.queue (name, namespace, task)
        SELECT 'idle' || n, 'idle' || n, '' FROM generate_series(1, {MANY}) n;
        INSERT INTO wakeline.queue_group (queue_id, name)
        SELECT q.id, 'g' FROM wakeline.queue q WHERE q.name <> 'q';
        WITH p AS (SELECT id FROM wakeline.queue_partition)
        SELECT wakeline.queue_append(
            array(SELECT id FROM p), array(SELECT 1::bigint FROM p),
            array(SELECT 1000::bigint FROM p), array(SELECT 1000::bigint FROM p),
            array(SELECT id FROM p), array(SELECT 0::bigint FROM p),
            array(SELECT 0::bigint FROM p), array(SELECT NULL::bigint FROM p),
            array(SELECT '[{{\"p\":1,\"t\":\"a\"}}]' FROM p), array(SELECT id FROM p),
            array(SELECT wakeline.queue_hash('a') FROM p), array(SELECT 0::bigint FROM p));
        WITH n AS (SELECT n::bigint FROM generate_series(1, {MANY}) n), p AS (
            SELECT id FROM wakeline.queue_partition WHERE name = 'long')
        SELECT wakeline.queue_append(
            array(SELECT id FROM p), array[{MANY}::bigint + 1], array[1000::bigint], array[1000::bigint],
            array(SELECT p.id FROM p, n), array(SELECT n FROM n), array(SELECT n FROM n),
            array(SELECT NULL::bigint FROM n),
            array(SELECT '[{{\"p\":1,\"t\":\"t' || n || '\"}}]' FROM n),
            array(SELECT p.id FROM p, n), array(SELECT wakeline.queue_hash('t' || n) FROM n),
            array(SELECT n FROM n));
        SELECT wakeline.queue_find_or_make_group(q.id, 'g', 'all', NULL) FROM wakeline.queue q WHERE q.name = 'q';
        SELECT wakeline.queue_discover(g.id)
        FROM wakeline.queue q JOIN wakeline.queue_group g ON g.queue_id = q.id,
            generate_series(1, {MANY} / 500 + 1)
        WHERE q.name = 'q';
        UPDATE wakeline.queue_cursor SET position = 1, ready_at = NULL;
        UPDATE wakeline.queue_cursor SET position = 0, ready_at = to_timestamp(1)
        WHERE partition_id = (SELECT id FROM wakeline.queue_partition WHERE name = 'ready');
        UPDATE wakeline.queue_cursor SET position = {half}, ready_at = to_timestamp(2)
        WHERE partition_id = (SELECT id FROM wakeline.queue_partition WHERE name = 'long');
        INSERT INTO wakeline.queue_message_flag
        SELECT c.partition_id, c.group_id, n, 1, false
        FROM wakeline.queue_cursor c, generate_series(1, {half} + 4) n WHERE c.position = {half};
        UPDATE wakeline.queue_cursor SET flags_end = {half} + 5 WHERE position = {half};
        CREATE FUNCTION pg_temp.id(p text) RETURNS bigint LANGUAGE sql STABLE AS
            'SELECT id FROM wakeline.queue_partition
             WHERE queue_id = (SELECT id FROM wakeline.queue WHERE name = ''q'') AND name = p';
        CREATE FUNCTION pg_temp.gid() RETURNS bigint LANGUAGE sql STABLE AS
            'SELECT id FROM wakeline.queue_group
             WHERE queue_id = (SELECT id FROM wakeline.queue WHERE name = ''q'')';"
    );
    client.batch_execute(&fill).await.expect("a full database");
}

const CLAIM: &str = "SELECT wakeline.queue_claim(array['q'], array[NULL::text], array['g'],
    array['all'], array[NULL::bigint], array[1], array[1::bigint])";

#[tokio::test]
async fn no_statement_reads_idle_partitions_or_consumed_messages() {
    let database = PostgresDatabase::new(&[MIGRATIONS]).await;
    let postgres = database.open(&[MIGRATIONS]).await;
    let client = postgres.connector().connect().await.expect("it answers");
    fill(&client).await;
    let acks = |partition: &str, transaction: &str| {
        format!(
            "SELECT wakeline.queue_lock_partitions(array[pg_temp.id('{partition}')], array[false],
                 array[NULL::bigint], array[wakeline.queue_hash('{transaction}')]);
             SELECT wakeline.queue_positions(array[pg_temp.id('{partition}')],
                 array[wakeline.queue_hash('{transaction}')]);
             SELECT wakeline.queue_lock_cursors(array[pg_temp.id('{partition}')], array['g'])"
        )
    };
    let push = |partition: &str| {
        format!(
            "SELECT wakeline.queue_lock_partitions(array[pg_temp.id('{partition}')], array[true],
                 array[NULL::bigint], array[NULL::uuid]);
             SELECT wakeline.queue_duplicates(array[pg_temp.id('{partition}')], array[wakeline.queue_hash('new')]);
             SELECT wakeline.queue_append(array[p.id], array[p.next_position + 1], array[1000::bigint],
                 array[1000::bigint], array[p.id], array[p.next_position], array[p.next_position],
                 array[NULL::bigint], array['[1]'], array[p.id], array[wakeline.queue_hash('new')],
                 array[p.next_position])
             FROM wakeline.queue_partition p WHERE p.id = pg_temp.id('{partition}')"
        )
    };
    let claim_long = CLAIM.replace("NULL::text", "'long'");
    let move_on =
        "SELECT wakeline.queue_write_cursors(array[pg_temp.id('ready')], array[pg_temp.gid()],
            array[1::bigint], array[NULL::bigint], array[NULL::uuid], array[NULL::bigint],
            array[0::bigint], array[1::bigint], array[NULL::text]);
        SELECT wakeline.queue_check_end(array[pg_temp.id('ready')], array[pg_temp.gid()])";
    let recheck = "SELECT wakeline.queue_recheck(array['q', 'q', 'q'], array[NULL, 'p7', 'long'],
        array['g', 'g', 'g'])";
    let half = MANY / 2;
    for (what, statement) in [
        ("a claim", CLAIM.to_owned()),
        ("a claim of many messages", CLAIM.replace("1::bigint", "40::bigint")),
        ("a claim in the middle", claim_long),
        ("a claim of a partition in vain", CLAIM.replace("NULL::text", "'p7'")),
        ("an acknowledgement at the end", acks("ready", "a")),
        ("an acknowledgement in the middle", acks("long", &format!("t{half}"))),
        ("an acknowledgement behind", acks("long", "t7")),
        ("catching up", move_on.to_owned()),
        ("a push", push("p9")),
        ("a push to a long partition", push("long")),
        (
            "a known key",
            "SELECT wakeline.queue_find_or_make_partitions(array['q'], array['p77'])".to_owned(),
        ),
        (
            "a new partition",
            "SELECT wakeline.queue_find_or_make_partitions(array['q'], array['new'])".to_owned(),
        ),
        ("a recheck", recheck.to_owned()),
        (
            "a choice",
            "SELECT wakeline.queue_choose_queue(array['q', NULL], array[NULL, 'q'], array['g', 'g'], 10)"
                .to_owned(),
        ),
        (
            "handing back",
            "SELECT wakeline.queue_release_claim(array[pg_temp.id('long')], pg_temp.gid(),
                 gen_random_uuid(), array[1::bigint], array[2::bigint])"
                .to_owned(),
        ),
        (
            "a longer lease",
            "SELECT wakeline.queue_extend_lease(gen_random_uuid(), 5)".to_owned(),
        ),
        (
            "a mark",
            format!(
                "SELECT wakeline.queue_write_flags(1000, array[pg_temp.id('long')], array[pg_temp.gid()],
                     array[{half}::bigint], array[2], array[true], array[true], array['t'], array['e'],
                     '{{}}', '{{}}', '{{}}')"
            ),
        ),
    ] {
        read_few(&client, what, &statement).await;
    }
    client
        .batch_execute("UPDATE wakeline.queue_cursor SET ready_at = NULL")
        .await
        .expect("a change");
    read_few(&client, "a claim in vain", CLAIM).await;
}
