//! Reading whole specifications.

use std::sync::Arc;

use serde_json::{Value, json};
use wakeline_feed::{
    fact::Reference,
    reading::{CHUNK, Error, MAX_ROWS, Plan, Reading},
    specification::Specification,
    store::Store,
};

use crate::{
    build::build,
    database::Database,
    facts::fact,
    plain_evaluator::sorted,
    random::{StoredFacts, seeds},
    saving::save,
    specifications::specification,
};

const SEEDS: usize = 5;
const SPECIFICATIONS: usize = 15;
const FACTS: usize = 20;

async fn start(
    store: &Arc<dyn Store>,
    specification: &Specification,
    given: &[Reference],
    max_rows: usize,
) -> Reading {
    let plan = Arc::new(Plan::of(specification).unwrap());
    let reading = Reading::start(store.clone(), plan, given.to_vec()).await;
    reading.unwrap().with_rows(max_rows)
}

/// The text of each chunk.
async fn chunks(mut reading: Reading) -> Vec<String> {
    let mut chunks = Vec::new();
    while let Some(chunk) = reading.next().await.unwrap() {
        chunks.push(serde_json::to_string(&chunk).unwrap());
    }
    chunks
}

fn results(chunks: &[String]) -> Value {
    let values = chunks.iter().map(|chunk| serde_json::from_str(chunk));
    let values: Result<Vec<Vec<Value>>, _> = values.collect();
    values.unwrap().concat().into()
}

pub(crate) async fn random_readings_are_those_of_the_plain_evaluator(database: Database) {
    let store = database.store().await;
    let mut found = 0;
    for seed in seeds(SEEDS) {
        let mut stored = StoredFacts::save(&*store, seed, FACTS).await;
        for case in stored.cases(SPECIFICATIONS, true) {
            let specification = &case.specification;
            let wanted = stored.plain.read(specification, &case.given);
            found += wanted.len();
            let read = start(&store, specification, &case.references, MAX_ROWS).await;
            let read = sorted(results(&chunks(read).await));
            assert_eq!(read, sorted(wanted.into()), "{specification:#?}");
        }
    }
    assert!(found > 0, "no specification has a result");
}

pub(crate) async fn a_result_has_the_shape_of_its_projection(database: Database) {
    let store = database.store().await;
    let site = build("Site", json!({ "domain": "a.com" }), Vec::new());
    let post = fact("Post", 1, &[("site", &site)]);
    let of_post = fact("Any", 0, &[("post", &post)]).predecessors;
    let titles = [json!({}), json!({ "value": 1e21 })];
    let titles = titles.map(|fields| build("Title", fields, of_post.clone()));
    let hash = post.reference.hash.to_string();
    let given = [site.reference.clone()];
    save(&*store, &[site, post]).await;
    save(&*store, &titles).await;
    let read = async |projection: &str| {
        let text = format!("(s: Site) {{ p: Post [p->site: Site = s] }} => {projection}");
        chunks(start(&store, &specification(&text), &given, MAX_ROWS).await).await
    };
    let titles = "{ t: Title [t->post: Post = p] }";
    let chunks = read(&format!(
        "{{ z = #p missing = p.none titles = {titles} => t.value none = {titles} a = p }}"
    ))
    .await;
    // In the order of the components; a field that is not there is left out, or null in an array.
    let wanted = format!(
        "[{{\"z\":\"{hash}\",\"titles\":[null,1e+21],\
         \"none\":[{{\"t\":{{}}}},{{\"t\":{{\"value\":1e+21}}}}],\
         \"a\":{{\"name\":1,\"type\":\"Post\",\"site\":{{\"domain\":\"a.com\",\"type\":\"Site\"}}}}}}]"
    );
    assert_eq!(chunks, [wanted]);
    let times = results(&read("@p").await);
    let time = times[0].as_str().unwrap();
    let is_in_milliseconds = time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".";
    assert!(is_in_milliseconds, "{time}");
}

pub(crate) async fn many_results_come_in_chunks(database: Database) {
    let store = database.store().await;
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    facts.extend((0..CHUNK + 1).map(|n| fact("Post", n, &[("site", &site)])));
    save(&*store, &facts).await;
    let names = specification("(s: Site) { p: Post [p->site: Site = s] } => p.name");
    let chunks = chunks(start(&store, &names, &[site.reference], MAX_ROWS).await).await;
    assert_eq!(chunks.len(), 2);
    assert_eq!(results(&chunks), json!(Vec::from_iter(0..CHUNK + 1)));
}

pub(crate) async fn large_results_come_in_smaller_chunks(database: Database) {
    const POSTS: usize = 40;
    const COMMENTS: usize = 5;
    let store = database.store().await;
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    for n in 0..POSTS {
        let post = fact("Post", n, &[("site", &site)]);
        facts.push(post.clone());
        facts.extend((0..COMMENTS).map(|n| fact("Comment", n, &[("post", &post)])));
    }
    save(&*store, &facts).await;
    let nested = specification(
        "(s: Site) { p: Post [p->site: Site = s] } => {
            n = p.name comments = { c: Comment [c->post: Post = p] } => c.name }",
    );
    let given = [site.reference];
    // A post with its comments, and no second one.
    let read = chunks(start(&store, &nested, &given, COMMENTS + 2).await).await;
    let comments = Vec::from_iter(0..COMMENTS);
    let wanted = (0..POSTS).map(|n| json!({ "n": n, "comments": comments }));
    assert_eq!(results(&read), Value::from_iter(wanted));
    let refused = start(&store, &nested, &given, COMMENTS).await.next().await;
    assert!(matches!(refused, Err(Error::TooLarge(COMMENTS))));
}
