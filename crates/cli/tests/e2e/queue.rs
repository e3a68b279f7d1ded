//! The queue door as a client sees it, on both stores. The shapes are Queen 1.3.0's.

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, on_both_stores},
    redact::redacted,
    wire::{get, with_header},
};

on_both_stores! {
    a_held_pop_is_answered_by_a_push,
    a_pop_waits_as_long_as_its_prefer_header_says,
    a_pop_without_a_message_by_its_deadline_gets_204,
    a_pop_of_one_partition_gets_no_message_of_another,
    names_of_queues_and_partitions_may_have_any_character,
    consumer_groups_are_independent,
    an_auto_acked_message_is_not_delivered_again,
    a_leased_partition_is_not_popped_again_until_the_ack,
    a_payload_is_delivered_unchanged,
    a_push_is_answered_as_queen_does,
    a_pop_is_answered_as_queen_does,
    an_ack_is_answered_as_queen_does,
}

async fn a_held_pop_is_answered_by_a_push(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let held = server.hold("/api/v1/pop/queue/q?wait=true&timeout=60000");
    server.until_waiting(1).await;
    server.until_store_checks(1).await;
    server.push("q", json!({"n": 1})).await;
    let answer = held.await.unwrap();
    assert_eq!(answer.payloads(), [json!({"n": 1})]);
    let timing = answer.header("server-timing");
    let parts: Vec<&str> = timing.split(", ").collect();
    assert_eq!(parts.len(), 3, "{timing}");
    assert!(parts[0].starts_with("hold;dur="), "{timing}");
    assert_eq!(parts[1], "wake;desc=\"notify\"");
    assert!(parts[2].starts_with("db;dur="), "{timing}");
    assert_eq!(answer.header("preference-applied"), "");
    server.until_waiting(0).await;
}

async fn a_pop_waits_as_long_as_its_prefer_header_says(fixture: Fixture) {
    let server = fixture
        .serve()
        .flags(&["--http-max-hold", "60s"])
        .start()
        .await;
    let pop = async |wait: &str| {
        let request = with_header(get("/api/v1/pop/queue/q?autoAck=true"), "prefer", wait);
        server.call(request).await
    };
    let held = pop("wait=50");
    let push = async {
        server.until_waiting(1).await;
        server.until_store_checks(1).await;
        server.push("q", json!("held")).await;
    };
    let (answer, ()) = tokio::join!(held, push);
    assert_eq!(answer.payloads(), [json!("held")]);
    assert_eq!(answer.header("preference-applied"), "wait=50");
    assert!(answer.header("server-timing").contains("desc=\"notify\""));

    // Longer than the server holds: the wait is shortened, and the answer says to how much.
    server.push("q", json!("there")).await;
    let answer = pop("respond-async, wait=4000").await;
    assert_eq!(answer.payloads(), [json!("there")]);
    assert_eq!(answer.header("preference-applied"), "wait=60");
    assert!(answer.header("server-timing").contains("desc=\"check\""));

    let answer = pop("wait=1").await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("preference-applied"), "wait=1");
}

async fn a_pop_without_a_message_by_its_deadline_gets_204(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for query in [
        "",
        "?wait=false&timeout=60000",
        "?wait=true&timeout=300",
        "?wait=1&timeout=0",
    ] {
        for path in [
            "/api/v1/pop/queue/none",
            "/api/v1/pop/queue/none/partition/x",
        ] {
            let answer = server.get(&format!("{path}{query}")).await;
            assert_eq!(
                (answer.status, answer.body.len()),
                (204, 0),
                "{path}{query}"
            );
            assert!(answer.header("server-timing").starts_with("hold;dur="));
        }
    }
    let waits = server.get("/v1/waits").await.json();
    assert_eq!(waits["total"], 0);
}

async fn a_pop_of_one_partition_gets_no_message_of_another(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let held = server.hold("/api/v1/pop/queue/q/partition/b?wait=true&timeout=60000");
    server.until_waiting(1).await;
    let push = async |partition: &str| {
        let item = json!({"queue": "q", "partition": partition, "payload": partition});
        let answer = server.post("/api/v1/push", &json!({"items": [item]})).await;
        assert_eq!(answer.status, 201);
    };
    push("a").await;
    assert_eq!(server.get("/v1/waits").await.json()["total"], 1);
    push("b").await;
    let answer = held.await.unwrap();
    assert_eq!(answer.payloads(), [json!("b")]);
    assert_eq!(answer.json()["partition"], "b");
    assert_eq!(
        server.get("/api/v1/pop/queue/q/partition/b").await.status,
        204
    );
    let rest = server.get("/api/v1/pop/queue/q").await;
    assert_eq!(rest.payloads(), [json!("a")]);
}

async fn names_of_queues_and_partitions_may_have_any_character(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let names = [
        ("sp ace", "sp%20ace"),
        ("sl/ash", "sl%2Fash"),
        ("üñ", "%C3%BC%C3%B1"),
        ("a%b", "a%25b"),
        ("100%25", "100%2525"),
        ("dot.name", "dot.name"),
        ("q?x=1&y#z", "q%3Fx%3D1%26y%23z"),
        ("plus+", "plus+"),
        ("..", "%2E%2E"),
        ("\u{1f980}\n\"'\\", "%F0%9F%A6%80%0A%22%27%5C"),
    ];
    for (name, encoded) in names {
        // Held first: the wake's name must be the same as the store's.
        let path = format!(
            "/api/v1/pop/queue/{encoded}/partition/{encoded}?wait=true&timeout=60000&autoAck=true"
        );
        let held = server.hold(&path);
        server.until_waiting(1).await;
        let item = json!({"queue": name, "partition": name, "payload": name});
        let pushed = server.post("/api/v1/push", &json!({"items": [item]})).await;
        assert_eq!(pushed.json()[0]["queueName"], name);
        let answer = held.await.unwrap();
        assert_eq!(answer.payloads(), [json!(name)]);
        let json = answer.json();
        assert_eq!(
            (&json["queue"], &json["partition"]),
            (&json!(name), &json!(name))
        );
    }
    // In a query a plus is a blank, in a path it is itself.
    server.push("q", json!(1)).await;
    let answer = server
        .get("/api/v1/pop/queue/q?consumerGroup=a+b%2Bc")
        .await;
    assert_eq!(answer.json()["consumerGroup"], "a b+c");
}

async fn consumer_groups_are_independent(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let pop = |group: &str| format!("/api/v1/pop/queue/q?batch=10&wait=true&timeout=60000{group}");
    let held = [
        server.hold(&pop("&consumerGroup=a")),
        server.hold(&pop("&consumerGroup=b")),
        server.hold(&pop("")),
    ];
    server.until_waiting(3).await;
    server.push("q", json!(1)).await;
    for (held, group) in held.into_iter().zip(["a", "b", "__QUEUE_MODE__"]) {
        let answer = held.await.unwrap();
        assert_eq!(answer.payloads(), [json!(1)], "{group}");
        assert_eq!(answer.json()["consumerGroup"], group);
    }
    // Within a group the lease keeps a second consumer away.
    assert_eq!(
        server
            .get("/api/v1/pop/queue/q?consumerGroup=a")
            .await
            .status,
        204
    );
}

async fn an_auto_acked_message_is_not_delivered_again(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for n in 1..=3 {
        server.push("q", json!(n)).await;
    }
    let path = "/api/v1/pop/queue/q?autoAck=true&batch=2";
    let first = server.get(path).await;
    assert_eq!(first.payloads(), [json!(1), json!(2)]);
    assert_eq!(first.json()["leaseId"], "");
    // No lease blocks the next pop.
    assert_eq!(server.get(path).await.payloads(), [json!(3)]);
    assert_eq!(server.get(path).await.status, 204);
}

async fn a_leased_partition_is_not_popped_again_until_the_ack(fixture: Fixture) {
    let server = fixture
        .serve()
        .flags(&["--queue-lease", "1h"])
        .start()
        .await;
    for n in 1..=2 {
        server.push("q", json!(n)).await;
    }
    let first = server.get("/api/v1/pop/queue/q?batch=1").await;
    assert_eq!(first.payloads(), [json!(1)]);
    assert_eq!(server.get("/api/v1/pop/queue/q").await.status, 204);
    let held = server.hold("/api/v1/pop/queue/q?wait=true&timeout=60000");
    server.until_waiting(1).await;

    let message = first.json()["messages"][0].clone();
    let ack = |lease: &Value| {
        json!({
            "transactionId": message["transactionId"],
            "partitionId": message["partitionId"],
            "leaseId": lease,
            "status": "completed",
        })
    };
    let stranger = json!("01a1e199-0000-7000-87ac-a13083110f56");
    let refused = server.post("/api/v1/ack", &ack(&stranger)).await;
    assert_eq!(refused.status, 200);
    assert_eq!(refused.json()[0]["success"], false);
    assert_eq!(server.get("/v1/waits").await.json()["total"], 1);

    let acked = server.post("/api/v1/ack", &ack(&message["leaseId"])).await;
    assert_eq!(acked.json()[0]["success"], true);
    // The ack makes the partition available, which wakes the next pop.
    assert_eq!(held.await.unwrap().payloads(), [json!(2)]);
}

async fn a_payload_is_delivered_unchanged(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let payloads = [
        r#"{"big":12345678901234567890123,"f":1.10,"k2":1,"k1":2,"k2":3}"#,
        r#""nul\u0000x""#,
        r#""\ud800 alone""#,
        r#"[1e400, -0, {"a" : [ ] }]"#,
        "null",
        "\"\u{1f980}\"",
    ];
    for payload in payloads {
        let body = format!(r#"{{"items":[{{"queue":"q","payload":{payload}}}]}}"#);
        let pushed = server.call(crate::wire::post("/api/v1/push", body)).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text());
        let popped = server.get("/api/v1/pop/queue/q?autoAck=true").await.text();
        assert!(popped.contains(&format!("\"data\":{payload},")), "{popped}");
    }
}

async fn a_push_is_answered_as_queen_does(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let trace = "2dfa3891-d7e1-4c8a-8630-4e74ab943073";
    let items = json!({"items": [
        {"queue": "p", "payload": {"n": 1}},
        {"queue": "p", "partition": "x", "payload": {"n": 2}, "transactionId": "t-1", "traceId": trace},
        {"queue": "p", "partition": "x", "payload": {"n": 3}, "transactionId": "t-1"},
        {"queue": "p", "partition": "y", "payload": null, "transactionId": "t-1"},
    ]});
    let answer = server.post("/api/v1/push", &items).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("content-type"), "application/json");
    insta::assert_json_snapshot!(redacted(&answer.json()), @r#"
    [
      {
        "index": 0,
        "message_id": "<id 1>",
        "partition_id": "<id 2>",
        "queueName": "p",
        "status": "queued",
        "transaction_id": "<id 1>"
      },
      {
        "index": 1,
        "message_id": "<id 3>",
        "partition_id": "<id 4>",
        "queueName": "p",
        "status": "queued",
        "transaction_id": "t-1"
      },
      {
        "index": 2,
        "message_id": "<id 3>",
        "queueName": "p",
        "status": "duplicate",
        "transaction_id": "t-1"
      },
      {
        "index": 3,
        "message_id": "<id 5>",
        "partition_id": "<id 6>",
        "queueName": "p",
        "status": "queued",
        "transaction_id": "t-1"
      }
    ]
    "#);

    let none = server.post("/api/v1/push", &json!({"items": []})).await;
    assert_eq!((none.status, none.text().as_str()), (201, "[]"));
}

async fn a_pop_is_answered_as_queen_does(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let trace = "2dfa3891-d7e1-4c8a-8630-4e74ab943073";
    let items = json!({"items": [
        {"queue": "p", "partition": "x", "payload": {"n": 1}, "transactionId": "t-1", "traceId": trace},
        {"queue": "p", "partition": "x", "payload": "two", "transactionId": "t-2"},
        {"queue": "p", "partition": "y", "payload": 3},
    ]});
    server.post("/api/v1/push", &items).await;
    let leased = server
        .get("/api/v1/pop/queue/p/partition/x?batch=10&consumerGroup=g")
        .await;
    assert_eq!(leased.header("content-type"), "application/json");
    let auto = server
        .get("/api/v1/pop/queue/p/partition/y?autoAck=true")
        .await;
    insta::assert_json_snapshot!(redacted(&json!([leased.json(), auto.json()])), @r#"
    [
      {
        "consumerGroup": "g",
        "leaseId": "<id 1>",
        "messages": [
          {
            "consumerGroup": "g",
            "createdAt": "<time>",
            "data": {
              "n": 1
            },
            "deliveryAttempt": 1,
            "id": "<id 2>",
            "leaseId": "<id 1>",
            "partition": "x",
            "partitionId": "<id 3>",
            "producerSub": null,
            "traceId": "<id 4>",
            "transactionId": "t-1"
          },
          {
            "consumerGroup": "g",
            "createdAt": "<time>",
            "data": "two",
            "deliveryAttempt": 1,
            "id": "<id 5>",
            "leaseId": "<id 1>",
            "partition": "x",
            "partitionId": "<id 3>",
            "producerSub": null,
            "traceId": null,
            "transactionId": "t-2"
          }
        ],
        "partition": "x",
        "partitionId": "<id 3>",
        "partitionsClaimed": 1,
        "queue": "p",
        "success": true
      },
      {
        "consumerGroup": "__QUEUE_MODE__",
        "leaseId": "",
        "messages": [
          {
            "consumerGroup": "__QUEUE_MODE__",
            "createdAt": "<time>",
            "data": 3,
            "deliveryAttempt": 1,
            "id": "<id 6>",
            "leaseId": "",
            "partition": "y",
            "partitionId": "<id 7>",
            "producerSub": null,
            "traceId": null,
            "transactionId": "<id 6>"
          }
        ],
        "partition": "y",
        "partitionId": "<id 7>",
        "partitionsClaimed": 1,
        "queue": "p",
        "success": true
      }
    ]
    "#);
}

async fn an_ack_is_answered_as_queen_does(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let item = json!({"queue": "p", "payload": 1, "transactionId": "t-1"});
    server.post("/api/v1/push", &json!({"items": [item]})).await;
    let popped = server.get("/api/v1/pop/queue/p").await.json();
    let (partition, lease) = (&popped["partitionId"], &popped["leaseId"]);
    let mut answers = Vec::new();
    for ack in [
        json!({"transactionId": "t-1", "partitionId": partition, "leaseId": "wrong"}),
        json!({"transactionId": "nope", "partitionId": partition, "leaseId": lease}),
        json!({"transactionId": "t-1", "partitionId": partition, "leaseId": lease, "status": "completed"}),
        json!({"transactionId": "t-1", "partitionId": partition, "leaseId": lease, "status": "completed"}),
        json!({"transactionId": "t-1", "partitionId": partition, "status": "completed"}),
        json!({"transactionId": "t-1", "partitionId": partition, "status": "failed", "error": "late"}),
    ] {
        let answer = server.post("/api/v1/ack", &ack).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answers.push(answer.json());
    }
    insta::assert_json_snapshot!(answers, @r#"
    [
      [
        {
          "code": "lease_lost",
          "dlq": false,
          "error": "invalid or expired lease",
          "index": 0,
          "leaseReleased": false,
          "noop": false,
          "success": false,
          "transactionId": "t-1"
        }
      ],
      [
        {
          "code": "unresolvable",
          "dlq": false,
          "error": "unresolvable: the group has no such message in this partition (never pushed, or removed); if it is leased, it is redelivered",
          "index": 0,
          "leaseReleased": false,
          "noop": false,
          "success": false,
          "transactionId": "nope"
        }
      ],
      [
        {
          "dlq": false,
          "error": null,
          "index": 0,
          "leaseReleased": true,
          "noop": false,
          "success": true,
          "transactionId": "t-1"
        }
      ],
      [
        {
          "dlq": false,
          "error": null,
          "index": 0,
          "leaseReleased": false,
          "noop": true,
          "success": true,
          "transactionId": "t-1"
        }
      ],
      [
        {
          "dlq": false,
          "error": null,
          "index": 0,
          "leaseReleased": false,
          "noop": true,
          "success": true,
          "transactionId": "t-1"
        }
      ],
      [
        {
          "code": "committed",
          "dlq": false,
          "error": "the message is committed: the group has completed it already, or it is a dead letter; it is not redelivered",
          "index": 0,
          "leaseReleased": false,
          "noop": false,
          "success": false,
          "transactionId": "t-1"
        }
      ]
    ]
    "#);
}
