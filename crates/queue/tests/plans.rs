//! What a claim reads must not grow with what is idle, also on a database without statistics,
//! where the planner guesses.

use tokio_postgres::types::Type;
use wakeline_queue::store::postgres::MIGRATIONS;
use wakeline_store::testing::PostgresDatabase;

const PARTITIONS: i64 = 5_000;
/// Not the cursors: what a claim reads there also depends on how far PostgreSQL has tidied up behind
/// the claims before it.
const TABLES: [&str; 2] = ["queue_partition", "queue_message"];

/// Index entries and rows of `table` read so far, as far as this session has not yet told others.
async fn rows_read(client: &tokio_postgres::Client, table: &str) -> i64 {
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

#[tokio::test]
async fn a_pop_a_push_and_a_recheck_read_no_idle_partition() {
    let database = PostgresDatabase::new(&[MIGRATIONS]).await;
    let postgres = database.open(&[MIGRATIONS]).await;
    let client = postgres.connector().connect().await.expect("it answers");
    let push = "SELECT count(*) FROM wakeline.queue_push(
        array(SELECT 'q' FROM generate_series(1, $1)),
        array(SELECT 'p' || n FROM generate_series(1, $1) n),
        array(SELECT gen_random_uuid() FROM generate_series(1, $1)),
        array(SELECT $2 || n FROM generate_series(1, $1) n),
        array_fill(NULL::uuid, array[$1::int]), array_fill('1'::text, array[$1::int]),
        array_fill(NULL::text, array[$1::int]))";
    let pushed = |count: i64, name: &'static str| {
        let client = &client;
        async move {
            client
                .query_typed(push, &[(&count, Type::INT8), (&name, Type::TEXT)])
                .await
                .expect("a push");
        }
    };
    let new_partition = "SELECT count(*) FROM wakeline.queue_push(
        array['q'], array[gen_random_uuid()::text], array[gen_random_uuid()], array['t'],
        array[NULL::uuid], array['1'], array[NULL::text])";
    let pop = "SELECT count(*) FROM wakeline.queue_pop(
        array['q'], array[NULL::text], array['g'], array[1::bigint], array[true],
        array[gen_random_uuid()], array[1000::bigint])";
    pushed(PARTITIONS, "first").await;
    // The group learns of all partitions and catches up with all but the few that follow.
    for _ in 0..PARTITIONS + 20 {
        client.query_typed(pop, &[]).await.expect("a pop");
    }
    for (what, statement) in [
        ("a push", "SELECT 1"),
        ("a push to a new partition", new_partition),
        ("a pop", pop),
        ("a pop in vain", pop),
        (
            "a recheck",
            "SELECT count(*) FROM wakeline.queue_recheck(array['q'], array[NULL::text], array['g'])",
        ),
    ] {
        client.batch_execute("BEGIN").await.expect("a transaction");
        for table in TABLES {
            // Within a transaction what was counted is not told to others: the difference counts.
            let before = rows_read(&client, table).await;
            if what == "a push" {
                pushed(1, table).await;
            }
            client.query_typed(statement, &[]).await.expect(what);
            let read = rows_read(&client, table).await - before;
            assert!(read < 100, "{what} read {read} rows of {table}");
        }
        client.batch_execute("COMMIT").await.expect("a commit");
    }
}
