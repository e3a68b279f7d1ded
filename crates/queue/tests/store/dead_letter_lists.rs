use wakeline_queue::browse::{DeadLetter, MessageFilter};

use crate::{
    calls::{ALL, make_next_dead, of_queue, page, push_each},
    test_store::TestStore,
};

pub(crate) async fn dead_letters_have_pages_filters_and_a_total(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b", "c"]).await;
    push_each(&*store, "r", "p", &["x"]).await;
    for _ in 0..3 {
        make_next_dead(&*store, "q", "g").await;
    }
    make_next_dead(&*store, "q", "h").await;
    make_next_dead(&*store, "r", "g").await;
    let found = async |filter: MessageFilter, limit, offset| {
        let found = door.dead_letters(&filter, page(limit, offset)).await;
        let found = found.unwrap();
        let name =
            |letter: &DeadLetter| format!("{}{}", letter.group, letter.message.transaction_id);
        let names: Vec<String> = found.rows.iter().map(name).collect();
        (names.join(" "), found.total)
    };
    let text = |text: &str, total: i64| (text.to_owned(), total);
    let all = MessageFilter::default();
    assert_eq!(found(all, 9, 0).await, text("gx ha gc gb ga", 5));
    assert_eq!(found(of_queue("q"), 2, 1).await, text("gc gb", 4));
    assert_eq!(found(of_queue("q"), 2, 4).await, text("", 4));
    assert_eq!(found(of_queue("none"), 9, 0).await, text("", 0));
    let of_group = MessageFilter {
        group: Some("h".into()),
        ..of_queue("q")
    };
    assert_eq!(found(of_group, 9, 0).await, text("ha", 1));
    let elsewhere = MessageFilter {
        partition: Some("none".into()),
        ..of_queue("q")
    };
    assert_eq!(found(elsewhere, 9, 0).await, text("", 0));
    let all = door.dead_letters(&of_queue("q"), ALL).await.unwrap().rows;
    assert_eq!(all[0].message.payload, "\"a\"");
    assert_eq!(all[0].location.queue, "q");
    let since = MessageFilter {
        from_us: Some(all[1].failed_us),
        to_us: Some(all[0].failed_us),
        ..of_queue("q")
    };
    assert_eq!(found(since, 9, 0).await, text("gc", 1));
}
