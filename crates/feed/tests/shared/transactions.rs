use tokio_postgres::Client;
use wakeline_feed::fact::{Fact, Hash};

use crate::database::Database;

/// Saves a fact in the session's transaction. Its type, roles and predecessors have to be stored.
pub(crate) async fn save_in(session: &Client, fact: &Fact) {
    let bytes = |hash: &Hash| {
        let hex = hash.0.map(|byte| format!("{byte:02x}")).concat();
        format!("'\\x{hex}'::bytea")
    };
    let type_id = |name: &str| format!("(SELECT id FROM wakeline.feed_type WHERE name = '{name}')");
    let own_type = type_id(&fact.reference.kind);
    let (mut types, mut hashes, mut roles) = (Vec::new(), Vec::new(), Vec::new());
    for (role, predecessor) in fact.references() {
        types.push(type_id(&predecessor.kind));
        hashes.push(bytes(&predecessor.hash));
        roles.push(format!(
            "(SELECT id FROM wakeline.feed_role WHERE type_id = {own_type} AND name = '{role}')"
        ));
    }
    let (types, hashes, roles) = (types.join(", "), hashes.join(", "), roles.join(", "));
    let own_hash = bytes(&fact.reference.hash);
    let (fields, predecessors) = (&fact.fields, fact.predecessors_text());
    let sql = format!(
        "SELECT wakeline.feed_save(
             ARRAY[{own_type}], ARRAY[{own_hash}], ARRAY['{fields}'], ARRAY['{predecessors}'],
             ARRAY[1], outside, ARRAY[{hashes}]::bytea[],
             array_fill(1, ARRAY[cardinality(outside)]), ARRAY[{roles}]::integer[],
             ARRAY(SELECT -place FROM generate_subscripts(outside, 1) AS place),
             '{{}}', '{{}}', '{{}}', '{{}}', '{{}}')
         FROM (SELECT ARRAY[{types}]::integer[] AS outside) o"
    );
    session.batch_execute(&sql).await.unwrap();
}

/// A session in whose transaction a fact is saved.
pub(crate) async fn hold(database: &Database, fact: &Fact) -> Client {
    let session = database.session().await;
    session.batch_execute("BEGIN").await.unwrap();
    save_in(&session, fact).await;
    session
}
