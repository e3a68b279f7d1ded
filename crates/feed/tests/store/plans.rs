//! What the steps read on PostgreSQL must not grow with what is stored, also on a database without
//! statistics, where the planner guesses.

use tokio_postgres::Client;
use wakeline_feed::fact::Fact;

use crate::{
    database::Database,
    fixture::{Fixture, fact, one},
};

const MANY: usize = 5_000;
const FEW: i64 = 100;

/// Index entries and rows of our tables read so far in the session's transaction.
async fn rows_read(session: &Client) -> i64 {
    let sql = "SELECT coalesce(sum(
            coalesce(t.seq_tup_read, 0) + coalesce(t.idx_tup_fetch, 0) + coalesce(
                (SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid))
                 FROM pg_index i WHERE i.indrelid = t.relid), 0)
        ), 0)::bigint
        FROM pg_stat_xact_user_tables t WHERE t.schemaname = 'wakeline'";
    session.query_typed(sql, &[]).await.unwrap()[0].get(0)
}

#[tokio::test]
async fn no_step_reads_what_it_is_not_asked_for() {
    let fixture = Fixture::new(Database::postgres().await).await;
    for table in ["feed_fact", "feed_edge", "feed_signature"] {
        let sql = format!("ALTER TABLE wakeline.{table} SET (autovacuum_enabled = false)");
        fixture.database.execute(&sql).await;
    }
    let site = fact("Site", "site", &[]);
    let posts: Vec<Fact> = (0..MANY)
        .map(|number| fact("Post", &number.to_string(), &[("site", one(&site))]))
        .collect();
    let all: Vec<&Fact> = std::iter::once(&site).chain(&posts).collect();
    fixture.save(&all).await;
    let session = fixture.database.session().await;
    // As the connections of batches are.
    let batches = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
    session.batch_execute(batches).await.unwrap();
    let hash = "(SELECT array_agg(hash) FROM wakeline.feed_fact WHERE seq = 77)";
    let save = format!(
        "SELECT wakeline.feed_save(ARRAY[1], ARRAY['new'::bytea], ARRAY['{{}}'], ARRAY['{{}}'],
             ARRAY[1], ARRAY[2], {hash}, ARRAY[1], ARRAY[1], ARRAY[-1],
             ARRAY['digest'::bytea], ARRAY['key'], ARRAY[1], ARRAY[1], ARRAY['signature'])"
    );
    let ids = "SELECT wakeline.feed_ids('{Site}', '{Post}', '{site}')";
    let middle = MANY / 2;
    for (what, statement) in [
        (
            "a look-up",
            format!("SELECT wakeline.feed_find(ARRAY[2], {hash})"),
        ),
        ("a save", save),
        (
            "a closure",
            "SELECT wakeline.feed_closure(ARRAY[77, 78])".to_owned(),
        ),
        (
            "facts",
            "SELECT wakeline.feed_facts(ARRAY[77, 78])".to_owned(),
        ),
        (
            "the log's end",
            format!("SELECT wakeline.feed_log({MANY} - 5, 10)"),
        ),
        ("the log", format!("SELECT wakeline.feed_log({middle}, 10)")),
        ("ids", ids.to_owned()),
    ] {
        session.batch_execute("BEGIN").await.unwrap();
        // Within a transaction what was counted is not told to others: the difference counts.
        let before = rows_read(&session).await;
        session.batch_execute(&statement).await.expect(what);
        let read = rows_read(&session).await - before;
        assert!((1..FEW).contains(&read), "{what} read {read} rows");
        session.batch_execute("COMMIT").await.unwrap();
    }
}
