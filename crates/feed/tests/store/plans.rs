//! The rows that a statement reads on PostgreSQL must not grow with the stored facts, also on a
//! database without statistics, where the planner guesses.

use tokio_postgres::Client;
use wakeline_feed::fact::Fact;

use crate::{facts::fact, fixture::Fixture};

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
async fn no_statement_reads_more_than_it_needs() {
    let fixture = Fixture::postgres().await;
    for table in ["feed_fact", "feed_edge", "feed_signature"] {
        let sql = format!("ALTER TABLE wakeline.{table} SET (autovacuum_enabled = false)");
        fixture.database.execute(&sql).await;
    }
    let site = fact("Site", "site", &[]);
    let posts: Vec<Fact> = (0..MANY)
        .map(|number| fact("Post", number, &[("site", &site)]))
        .collect();
    let all: Vec<&Fact> = std::iter::once(&site).chain(&posts).collect();
    fixture.save(&all).await;
    let session = fixture.database.session().await;
    // As the connections of batches are.
    let batches = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
    session.batch_execute(batches).await.unwrap();
    let hash = "(SELECT array_agg(hash) FROM wakeline.feed_fact WHERE seq = 77)";
    let save = format!(
        "feed_save(ARRAY[1], ARRAY['new'::bytea], ARRAY['{{}}'], ARRAY['{{}}'],
             ARRAY[1], ARRAY[2], {hash}, ARRAY[1], ARRAY[1], ARRAY[-1],
             ARRAY['digest'::bytea], ARRAY['key'], ARRAY[1], ARRAY[1], ARRAY['signature'])"
    );
    let ids = "feed_ids('{Site}', '{Post}', '{site}')";
    let middle = MANY / 2;
    for (what, statement) in [
        ("a look-up", format!("feed_find(ARRAY[2], {hash})")),
        ("a save", save),
        ("a closure", "feed_closure(ARRAY[77, 78])".to_owned()),
        ("facts", "feed_facts(ARRAY[77, 78])".to_owned()),
        ("the log's end", format!("feed_log({MANY} - 5, 10)")),
        ("the log", format!("feed_log({middle}, 10)")),
        ("ids", ids.to_owned()),
    ] {
        let statement = format!("SELECT wakeline.{statement}");
        session.batch_execute("BEGIN").await.unwrap();
        // Within a transaction the counts are only the session's.
        let before = rows_read(&session).await;
        session.batch_execute(&statement).await.expect(what);
        let read = rows_read(&session).await - before;
        assert!((1..FEW).contains(&read), "{what} read {read} rows");
        session.batch_execute("COMMIT").await.unwrap();
    }
}
