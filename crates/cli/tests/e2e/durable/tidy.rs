//! `wakeline durable`: cancelling, deleting and pruning.

use duroxide::OrchestrationStatus;

use super::{CHILD, Workflows};

#[tokio::test]
async fn a_running_instance_is_cancelled_with_its_reason() {
    let workflows = Workflows::with_one_of_each().await;
    let output = workflows
        .text(&["cancel", "waiting", "--reason", "the customer left"])
        .await;
    assert!(
        output.starts_with("cancellation of waiting is requested"),
        "{output}"
    );
    let ended = workflows.ended("waiting").await;
    let OrchestrationStatus::Failed { details, .. } = ended else {
        panic!("{ended:?}");
    };
    let reason = details.display_message();
    assert!(reason.contains("the customer left"), "{reason}");
    let shown = workflows.text(&["show", "waiting"]).await;
    assert!(shown.contains("the customer left"), "{shown}");
}

#[tokio::test]
async fn an_instance_that_no_runtime_has_started_can_be_cancelled() {
    let workflows = Workflows::with_one_of_each().await;
    workflows.runtime.clone().shutdown(None).await;
    workflows.start("later", "Waits", "").await;
    let shown = workflows.refusal(&["show", "later"]).await;
    assert!(shown.contains("a new one appears when"), "{shown}");
    workflows.text(&["cancel", "later", "--reason", "x"]).await;
    // Both messages wait for the next runtime.
    assert_eq!(workflows.json(&["stats"]).await["queues"]["messages"], 2);
}

#[tokio::test]
async fn an_instance_is_deleted_with_its_children() {
    let workflows = Workflows::with_one_of_each().await;
    let output = workflows.text(&["delete", "family"]).await;
    assert!(
        output.starts_with("deleted 2 instances, 2 executions, "),
        "{output}"
    );
    for gone in ["family", CHILD] {
        let refusal = workflows.refusal(&["show", gone]).await;
        assert!(refusal.contains("there is no instance"), "{refusal}");
    }
    let output = workflows.text(&["delete", "waiting", "--force"]).await;
    assert!(output.starts_with("deleted 1 instances, "), "{output}");
    let totals = workflows.json(&["stats"]).await;
    assert_eq!(totals["instances"]["total"], 3);
    assert_eq!(totals["instances"]["running"], 0);
}

#[tokio::test]
async fn old_executions_are_pruned_and_the_current_one_stays() {
    let workflows = Workflows::with_one_of_each().await;
    workflows.run("once more", "Again", "1").await;
    for arguments in [
        ["prune", "--keep-last", "2", "--dry-run"].as_slice(),
        &["prune", "--keep-last", "2", "--before", "0s", "--dry-run"],
    ] {
        let output = workflows.text(arguments).await;
        assert_eq!(output, "would delete 4 executions of 2 instances");
    }
    let before = ["prune", "--before", "2020-01-01"];
    let output = workflows.text(&before).await;
    assert_eq!(output, "deleted 0 executions of 0 instances, 0 events");

    let one = ["prune", "--keep-last", "2", "--instance", "again"];
    let output = workflows.text(&[&one[..], &["--dry-run"]].concat()).await;
    assert_eq!(output, "would delete 2 executions of 1 instances");
    let output = workflows.text(&one).await;
    assert!(
        output.starts_with("deleted 2 executions of 1 instances, "),
        "{output}"
    );
    let refusal = workflows
        .refusal(&["history", "again", "--execution", "1"])
        .await;
    assert!(refusal.contains("has no execution 1"), "{refusal}");
    let shown = workflows.json(&["show", "again"]).await;
    assert_eq!(shown["executionsCount"], 2);
    assert_eq!(shown["executions"][0]["number"], 4);

    let output = workflows.text(&["prune", "--keep-last", "0"]).await;
    assert!(
        output.starts_with("deleted 4 executions of 2 instances, "),
        "{output}"
    );
    for instance in ["again", "once more"] {
        let shown = workflows.json(&["show", instance]).await;
        assert_eq!(shown["executionsCount"], 1, "{shown}");
        assert_eq!(shown["output"], "turn 4");
    }
}

#[tokio::test]
async fn finished_instances_are_pruned_in_batches_until_none_is_left() {
    let workflows = Workflows::with_one_of_each().await;
    // More than one batch.
    for n in 0..130 {
        let instance = format!("many-{n:03}");
        workflows.start(&instance, "Broken", "").await;
    }
    for n in 0..130 {
        workflows.ended(&format!("many-{n:03}")).await;
    }
    let prune = ["prune", "instances", "--before", "0s"];
    let with = |more: &[&'static str]| [&prune[..], more].concat();
    let output = workflows.text(&with(&["--dry-run"])).await;
    assert_eq!(
        output,
        "would delete 134 instances, with their sub-orchestrations"
    );
    let output = workflows.text(&with(&["--limit", "2", "--dry-run"])).await;
    assert_eq!(
        output,
        "would delete 2 instances, with their sub-orchestrations"
    );
    let old = ["prune", "instances", "--before", "2020-01-01"];
    let output = workflows.text(&old).await;
    assert!(output.starts_with("deleted 0 instances"), "{output}");

    // The instances that ended first: one alone, and one with its child.
    let output = workflows.text(&with(&["--limit", "2"])).await;
    assert!(output.starts_with("deleted 3 instances"), "{output}");
    let output = workflows.text(&with(&[])).await;
    assert!(output.starts_with("deleted 132 instances"), "{output}");
    let totals = workflows.json(&["stats"]).await;
    assert_eq!(totals["instances"]["total"], 1);
    assert_eq!(totals["instances"]["failed"], 0);
    let left = workflows.json(&["list"]).await;
    assert_eq!(left["instances"][0]["id"], "waiting");
}
