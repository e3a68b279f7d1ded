use wakeline_queue::browse::MessageFilter;

use crate::fixture::{ALL, Fixture, of_queue, page};

pub(crate) async fn letters_have_pages_filters_and_a_total(fixture: Fixture) {
    fixture.push("q", "p", &["a", "b", "c"]).await;
    fixture.push("r", "p", &["x"]).await;
    for _ in 0..3 {
        fixture.make_next_dead_letter("q", "g").await;
    }
    fixture.make_next_dead_letter("q", "h").await;
    fixture.make_next_dead_letter("r", "g").await;
    let found = async |filter: MessageFilter, limit, offset| {
        let found = fixture
            .queue
            .dead_letters(&filter, page(limit, offset))
            .await;
        let found = found.unwrap();
        let names: Vec<String> = found
            .rows
            .iter()
            .map(|letter| format!("{}{}", letter.group, letter.message.transaction_id))
            .collect();
        (names.join(" "), found.total)
    };
    let text = |text: &str, total: i64| (text.to_owned(), total);
    assert_eq!(
        found(MessageFilter::default(), 9, 0).await,
        text("gx ha gc gb ga", 5)
    );
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
    let all = fixture.queue.dead_letters(&of_queue("q"), ALL).await;
    let all = all.unwrap().rows;
    assert_eq!(all[0].message.payload, "\"a\"");
    assert_eq!(all[0].location.queue, "q");
    let since = MessageFilter {
        from_us: Some(all[1].failed_us),
        to_us: Some(all[0].failed_us),
        ..of_queue("q")
    };
    assert_eq!(found(since, 9, 0).await, text("gc", 1));
}
