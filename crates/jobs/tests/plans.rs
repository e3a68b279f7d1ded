//! The rows that a claim reads must not grow with the pending and the ended tasks, nor those that a
//! read needs with the stored answers and the requests in flight, whatever the planner believes of
//! the tables.

use tokio_postgres::{Client, types::Type};
use wakeline_jobs::store::postgres::MIGRATIONS;
use wakeline_testkit::PostgresDatabase;

const MANY: i64 = 5_000;
const FEW: i64 = 400;
const ANALYZE: &str = "ANALYZE wakeline.jobs_task";
const USER: &str = "00000000-0000-4000-8000-000000000001";
const WORKER: &str = "00000000-0000-4000-8000-000000000002";

/// Index entries and rows of these tables read so far in this transaction.
async fn rows_read(client: &Client, tables: &[&str]) -> i64 {
    let rows = client
        .query_typed(
            "SELECT sum(coalesce(t.seq_tup_read, 0) + coalesce(t.idx_tup_fetch, 0) + coalesce(
                 (SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid))
                  FROM pg_index i WHERE i.indrelid = t.relid), 0))::bigint
             FROM pg_stat_xact_user_tables t
             WHERE t.schemaname = 'wakeline' AND t.relname = ANY ($1)",
            &[(&tables, Type::TEXT_ARRAY)],
        )
        .await
        .expect("the statistics can be read");
    rows[0].get(0)
}

/// Adds tasks of the worker's jobs, each in the state with this number.
fn tasks(status: i16) -> String {
    format!(
        "INSERT INTO wakeline.jobs_task (id, job_id, room, payload, status, completed_at, created_at)
         SELECT gen_random_uuid(), j.id, 'r', '{{}}', {status}, CASE WHEN {status} > 2 THEN 1 END, 0
         FROM generate_series(1, {MANY}) CROSS JOIN wakeline.jobs_job j"
    )
}

async fn a_claim_reads_few(jobs: i64, before: &str, after: &str) {
    let database = PostgresDatabase::new(&[MIGRATIONS]).await;
    let postgres = database.open(&[MIGRATIONS]).await;
    let client = postgres.connector().connect().await.expect("it answers");
    let (ended, pending) = (tasks(3), tasks(0));
    let fill = format!(
        "ALTER TABLE wakeline.jobs_task SET (autovacuum_enabled = false);
         INSERT INTO wakeline.jobs_user (id, email, created_at) VALUES ('{USER}', 'u', 0);
         INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
         VALUES ('{WORKER}', '{USER}', 0, 0);
         INSERT INTO wakeline.jobs_job (id, room, category, name, schema, max_retries, created_at)
         SELECT gen_random_uuid(), 'r', 'c', 'j' || n, '{{}}', 0, 0 FROM generate_series(1, {jobs}) n;
         INSERT INTO wakeline.jobs_link (worker_id, job_id, created_at)
         SELECT '{WORKER}', id, 0 FROM wakeline.jobs_job;
         {ended}; {before}; {pending}; {after};"
    );
    client.batch_execute(&fill).await.expect("a full database");
    client.batch_execute("BEGIN").await.expect("a transaction");
    let read = rows_read(&client, &["jobs_task"]).await;
    let claim = format!("SELECT outcome FROM wakeline.jobs_task_claim('{WORKER}', '{USER}')");
    let claimed = client.query_typed(&claim, &[]).await.expect("a claim");
    assert_eq!(claimed[0].get::<_, i16>(0), 0, "a task is claimed");
    let read = rows_read(&client, &["jobs_task"]).await - read;
    assert!(read < FEW, "a claim of {jobs} jobs read {read} rows");
    client.batch_execute("COMMIT").await.expect("a commit");
}

#[tokio::test]
async fn a_claim_without_statistics() {
    a_claim_reads_few(1, "", "").await;
    a_claim_reads_few(3, "", "").await;
}

#[tokio::test]
async fn a_claim_with_statistics_from_before_the_tasks_were_pending() {
    a_claim_reads_few(1, ANALYZE, "").await;
    a_claim_reads_few(3, ANALYZE, "").await;
}

#[tokio::test]
async fn a_claim_with_statistics_of_the_pending_tasks() {
    a_claim_reads_few(1, "", ANALYZE).await;
    a_claim_reads_few(3, "", ANALYZE).await;
}

const ANSWERS: [&str; 2] = ["jobs_result", "jobs_inflight"];
const READS: [&str; 4] = [
    "SELECT etag, in_flight FROM wakeline.jobs_answers(
         '{r,r,r}', '{c,c,c}', '{p,p,p}', '{}', '{}', '{r4000,m4000,x}')",
    "SELECT etag, in_flight FROM wakeline.jobs_provider p CROSS JOIN LATERAL wakeline.jobs_answers(
         '{}', '{}', '{}', ARRAY[p.id, p.id], ARRAY[p.version, p.version], '{r4000,m4000}')",
    "SELECT wakeline.jobs_inflight_lock(p.id, p.version, 'm4000', gen_random_uuid(), '{}', 1)
     FROM wakeline.jobs_provider p",
    "SELECT wakeline.jobs_inflight_lock(p.id, p.version, 'r4000', gen_random_uuid(), '{}', 1)
     FROM wakeline.jobs_provider p",
];

/// The cost of reads of a provider with many answers and many requests in flight, in a session that
/// planned these reads before, when the tables were empty.
async fn an_answer_costs_few_rows(before: &[&str], after: &[&str]) {
    let database = PostgresDatabase::new(&[MIGRATIONS]).await;
    let postgres = database.open(&[MIGRATIONS]).await;
    let client = postgres.connector().connect().await.expect("it answers");
    let fill = format!(
        "INSERT INTO wakeline.jobs_result (provider_id, version, hash, is_error, etag, body, expires_at)
         SELECT p.id, p.version, 'r' || n, false, 'e', 'x', 9e15
         FROM wakeline.jobs_provider p CROSS JOIN generate_series(1, {MANY}) n;
         INSERT INTO wakeline.jobs_inflight (provider_id, version, hash, token, params, expires_at, created_at)
         SELECT p.id, p.version, 'm' || n, gen_random_uuid(), '{{}}', 9e15, 0
         FROM wakeline.jobs_provider p CROSS JOIN generate_series(1, {MANY}) n"
    );
    let prepare = format!(
        "ALTER TABLE wakeline.jobs_result SET (autovacuum_enabled = false);
         ALTER TABLE wakeline.jobs_inflight SET (autovacuum_enabled = false);
         INSERT INTO wakeline.jobs_user (id, email, created_at) VALUES ('{USER}', 'u', 0);
         INSERT INTO wakeline.jobs_provider
             (id, room, category, name, schema, content_type, user_id, created_at)
         VALUES ('{WORKER}', 'r', 'c', 'p', '{{}}', 'text/plain', '{USER}', 0);
         {fill}; {EMPTY}"
    );
    // A VACUUM is no part of a transaction, nor of several statements that are sent as one.
    let statements = [&*prepare].into_iter().chain(before.iter().copied());
    let statements = statements.chain(READS).chain([EMPTY, &fill]);
    for statement in statements.chain(after.iter().copied()) {
        let done = client.batch_execute(statement).await;
        done.expect("a full database");
    }
    for statement in READS {
        client.batch_execute("BEGIN").await.expect("a transaction");
        let read = rows_read(&client, &ANSWERS).await;
        client.query_typed(statement, &[]).await.expect("an answer");
        let read = rows_read(&client, &ANSWERS).await - read;
        assert!(read < FEW, "{statement} read {read} rows");
        client.batch_execute("COMMIT").await.expect("a commit");
    }
}

const EMPTY: &str = "DELETE FROM wakeline.jobs_result; DELETE FROM wakeline.jobs_inflight";

#[tokio::test]
async fn an_answer_without_statistics() {
    an_answer_costs_few_rows(&[], &[]).await;
}

#[tokio::test]
async fn an_answer_with_statistics_of_emptied_tables() {
    let vacuum = [
        "VACUUM ANALYZE wakeline.jobs_result",
        "VACUUM ANALYZE wakeline.jobs_inflight",
    ];
    an_answer_costs_few_rows(&vacuum, &[]).await;
}

#[tokio::test]
async fn an_answer_with_statistics_of_full_tables() {
    let analyze = [
        "ANALYZE wakeline.jobs_result",
        "ANALYZE wakeline.jobs_inflight",
    ];
    an_answer_costs_few_rows(&[], &analyze).await;
}
