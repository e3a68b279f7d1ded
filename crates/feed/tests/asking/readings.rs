//! Reading whole specifications.

use std::sync::Arc;

use serde_json::{Value, json};
use wakeline_feed::{
    fact::Reference,
    reading::{CHUNK, Error, Plan, Reading},
    specification::{Component, Projection, SingleProjection, Specification},
    store::Store,
};

use crate::{
    database::Database,
    facts::{build, fact, save},
    plain_evaluator::{PlainEvaluator, sorted},
    random::{Random, seeds},
    specifications::{found, path, posts, specification},
};

const SEEDS: usize = 5;
const SPECIFICATIONS: usize = 15;
const FACTS: usize = 20;

async fn read(
    store: &Arc<dyn Store>,
    specification: &Specification,
    given: &[Reference],
) -> (Vec<Value>, usize) {
    let plan = Arc::new(Plan::of(specification).unwrap());
    let mut reading = Reading::start(store.clone(), plan, given.to_vec())
        .await
        .unwrap();
    let (mut all, mut chunks) = (Vec::new(), 0);
    while let Some(chunk) = reading.next().await.unwrap() {
        let text = serde_json::to_string(&chunk).unwrap();
        all.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
        chunks += 1;
    }
    (all, chunks)
}

pub(crate) async fn random_readings_are_as_plain_ones(database: Database) {
    let store = database.store().await;
    let mut found = 0;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let facts = random.facts(FACTS, seed);
        save(&*store, &facts).await;
        let plain = PlainEvaluator { facts };
        for _ in 0..SPECIFICATIONS {
            let specification = random.specification(true);
            let Some(given) = random.given(&specification, &plain.facts) else {
                continue;
            };
            let references: Vec<Reference> = given
                .iter()
                .map(|number| plain.facts[*number].reference.clone())
                .collect();
            let wanted = plain.read(&specification, &given);
            found += wanted.len();
            let (read, _) = read(&store, &specification, &references).await;
            let (read, wanted) = (sorted(read.into()), sorted(wanted.into()));
            assert_eq!(read, wanted, "{specification:#?}");
        }
    }
    assert!(found > 0, "nothing was looked for that there is");
}

fn field(label: &str, field: &str) -> SingleProjection {
    SingleProjection::Field {
        label: label.into(),
        field: field.into(),
    }
}

pub(crate) async fn a_result_has_the_shape_of_its_projection(database: Database) {
    let store = database.store().await;
    let site = build("Site", "{\"domain\":\"a.com\"}", Vec::new());
    let post = fact("Post", 1, &[("site", &site)]);
    let titles = [0, 1].map(|n| {
        let fields = ["{}", "{\"value\":1e+21}"][n];
        build(
            "Title",
            fields,
            fact("x", 0, &[("post", &post)]).predecessors,
        )
    });
    let hash = post.reference.hash.to_string();
    let given = [site.reference.clone()];
    save(&*store, &[site, post]).await;
    save(&*store, &titles).await;
    let (givens, matches) = posts();
    let inner = found(
        "title",
        "Title",
        vec![path(&[("post", "Post")], "post", &[])],
    );
    let nested = |projection| Component::Collection {
        matches: vec![inner.clone()],
        projection,
    };
    let components = vec![
        (
            "z".into(),
            Component::Single(SingleProjection::Hash("post".into())),
        ),
        ("missing".into(), Component::Single(field("post", "none"))),
        (
            "titles".into(),
            nested(Projection::Single(field("title", "value"))),
        ),
        ("none".into(), nested(Projection::empty())),
        (
            "a".into(),
            Component::Single(SingleProjection::Fact("post".into())),
        ),
    ];
    let specification = specification(&givens, matches.clone(), Projection::Composite(components));
    let plan = Arc::new(Plan::of(&specification).unwrap());
    let mut reading = Reading::start(store.clone(), plan, given.to_vec())
        .await
        .unwrap();
    let chunk = reading.next().await.unwrap().unwrap();
    let text = serde_json::to_string(&chunk).unwrap();
    // In the order of the components; a field that is not there is left out, or null in an array.
    let wanted = format!(
        "[{{\"z\":\"{hash}\",\"titles\":[null,1e+21],\
         \"none\":[{{\"title\":{{}}}},{{\"title\":{{\"value\":1e+21}}}}],\
         \"a\":{{\"n\":1,\"type\":\"Post\",\"site\":{{\"domain\":\"a.com\",\"type\":\"Site\"}}}}}}]"
    );
    assert_eq!(text, wanted);
    let time = Projection::Single(SingleProjection::Time("post".into()));
    let (times, _) = read(
        &store,
        &crate::specifications::specification(&givens, matches, time),
        &given,
    )
    .await;
    let time = times[0].as_str().unwrap();
    assert!(
        time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".",
        "{time}"
    );
}

pub(crate) async fn more_than_a_chunk_comes_in_chunks(database: Database) {
    let store = database.store().await;
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    facts.extend((0..CHUNK + 1).map(|n| fact("Post", n, &[("site", &site)])));
    save(&*store, &facts).await;
    let (givens, matches) = posts();
    let projection = Projection::Single(field("post", "n"));
    let specification = specification(&givens, matches, projection);
    let (all, chunks) = read(&store, &specification, &[site.reference]).await;
    let wanted: Vec<Value> = (0..CHUNK + 1).map(|n| json!(n)).collect();
    assert_eq!((all, chunks), (wanted, 2));
}

pub(crate) async fn what_is_too_much_at_once_comes_in_smaller_chunks(database: Database) {
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
    let (givens, matches) = posts();
    let inner = found(
        "comment",
        "Comment",
        vec![path(&[("post", "Post")], "post", &[])],
    );
    let comments = Component::Collection {
        matches: vec![inner],
        projection: Projection::Single(field("comment", "n")),
    };
    let projection = Projection::Composite(vec![
        ("n".into(), Component::Single(field("post", "n"))),
        ("comments".into(), comments),
    ]);
    let specification = specification(&givens, matches, projection);
    let plan = Arc::new(Plan::of(&specification).unwrap());
    let begin = async |rows| {
        let given = vec![site.reference.clone()];
        let reading = Reading::start(store.clone(), plan.clone(), given).await;
        reading.unwrap().with_rows(rows)
    };
    // A post with its comments, and no second one.
    let mut reading = begin(COMMENTS + 2).await;
    let mut all = Vec::new();
    while let Some(chunk) = reading.next().await.unwrap() {
        all.extend(chunk);
    }
    let wanted: Vec<Value> = (0..POSTS)
        .map(|n| json!({ "n": n, "comments": (0..COMMENTS).collect::<Vec<_>>() }))
        .collect();
    assert_eq!(serde_json::to_value(&all).unwrap(), json!(wanted));
    let refused = begin(COMMENTS).await.next().await;
    assert!(matches!(refused, Err(Error::TooLarge(COMMENTS))));
}
