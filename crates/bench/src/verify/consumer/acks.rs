//! What a consumer does with the messages of a pop.

use std::time::Duration;

use rand::RngExt;
use serde::Deserialize;
use serde_json::json;
use wakeline_client::{Ack as AckBody, AckResult, AckStatus};

use super::{Consumer, PoppedBatch};
use crate::verify::history::{Ack, AckOutcome, Effect, Push, PushOutcome, Time};
use crate::verify::producer::item;
use crate::verify::run::{CallFailure, LEASE, QUEUES, partitions_of_queue};

/// More messages than this are not acknowledged one by one.
const SINGLY: usize = 20;
/// Where transactions push to. No consumer makes transactions of its messages, so that they end.
const SINK: usize = QUEUES.len() - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckStrategy {
    OneByOne,
    /// The last message, which completes all.
    Last,
    Batch,
    BatchWithFailure,
    FailFirst,
    Transaction,
    Stall,
    Abandon,
}

/// The first strategies of the consumers of a queue, so that every run has each of them, however
/// short. Taken from the end.
pub(super) fn first_strategies(consumer: usize) -> Vec<AckStrategy> {
    match consumer % 3 {
        0 => vec![AckStrategy::Transaction, AckStrategy::FailFirst],
        1 => vec![AckStrategy::Batch, AckStrategy::BatchWithFailure],
        _ => vec![AckStrategy::OneByOne, AckStrategy::Stall],
    }
}

#[derive(Deserialize)]
struct TransactionResponse {
    success: bool,
}

impl Consumer {
    pub(super) async fn acknowledge(&mut self, popped: PoppedBatch) {
        match self.strategy(popped.messages.len()) {
            AckStrategy::OneByOne => {
                for index in 0..popped.messages.len() {
                    self.ack(&popped, index, AckStatus::Completed).await;
                }
            }
            AckStrategy::Last => {
                let last = popped.messages.len() - 1;
                self.ack(&popped, last, AckStatus::Completed).await;
            }
            AckStrategy::Batch => self.ack_batch(&popped, None).await,
            AckStrategy::BatchWithFailure => {
                let failed = self.caller.random.random_range(0..popped.messages.len());
                self.ack_batch(&popped, Some(failed)).await;
            }
            AckStrategy::FailFirst => {
                let status = self.failure();
                self.ack(&popped, 0, status).await;
            }
            AckStrategy::Transaction => self.transact(&popped).await,
            AckStrategy::Stall => {
                self.record.events.count("stalls");
                let over = Duration::from_millis(self.caller.random.random_range(0..500));
                tokio::time::sleep(LEASE + over).await;
                self.complete(popped).await;
            }
            AckStrategy::Abandon => self.record.events.count("abandoned"),
        }
    }

    pub(super) async fn complete(&mut self, popped: PoppedBatch) {
        if self.caller.run.routes.ack_batch && self.caller.random.random() {
            self.ack_batch(&popped, None).await;
        } else {
            let last = popped.messages.len() - 1;
            self.ack(&popped, last, AckStatus::Completed).await;
        }
    }

    fn strategy(&mut self, messages: usize) -> AckStrategy {
        if self.caller.run.is_lease_storm() {
            return AckStrategy::Stall;
        }
        let random = &mut self.caller.random;
        let strategy =
            self.first_strategies
                .pop()
                .unwrap_or_else(|| match random.random_range(0..100) {
                    0..20 => AckStrategy::OneByOne,
                    20..45 => AckStrategy::Batch,
                    45..55 => AckStrategy::BatchWithFailure,
                    55..60 => AckStrategy::FailFirst,
                    60..75 => AckStrategy::Transaction,
                    75..78 => AckStrategy::Stall,
                    78..80 => AckStrategy::Abandon,
                    _ => AckStrategy::Last,
                });
        let routes = self.caller.run.routes;
        let fits = match strategy {
            AckStrategy::OneByOne => messages <= SINGLY,
            AckStrategy::Batch | AckStrategy::BatchWithFailure => routes.ack_batch,
            AckStrategy::Transaction => routes.transaction && self.queue != SINK,
            _ => true,
        };
        if fits { strategy } else { AckStrategy::Last }
    }

    /// A failure, which may count against the limit of retries.
    fn failure(&mut self) -> AckStatus {
        match self.caller.random.random_bool(0.3) {
            true => AckStatus::Failed,
            false => AckStatus::Retry,
        }
    }

    async fn ack(&mut self, popped: &PoppedBatch, index: usize, status: AckStatus) {
        let body = serde_json::to_string(&AckBody::of(&popped.messages[index].1, status));
        let body = body.expect("an ack is JSON");
        let begin = self.caller.run.now();
        let response = self.caller.post("/api/v1/ack", body).await;
        let outcomes = self.outcomes(response, 1);
        self.acked(popped, index, effect(status), outcomes[0], begin);
    }

    async fn ack_batch(&mut self, popped: &PoppedBatch, failed: Option<usize>) {
        let failure = self.failure();
        let status = |index: usize| match failed {
            Some(failed) if failed == index => failure,
            _ => AckStatus::Completed,
        };
        let acks: Vec<AckBody> = popped
            .messages
            .iter()
            .enumerate()
            .map(|(index, (_, message))| AckBody::of(message, status(index)))
            .collect();
        let group = acks[0].consumer_group.clone();
        let body = json!({ "acknowledgments": acks, "consumerGroup": group }).to_string();
        let begin = self.caller.run.now();
        let response = self.caller.post("/api/v1/ack/batch", body).await;
        self.record.events.count("batch acks");
        let outcomes = self.outcomes(response, popped.messages.len());
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let effect = match failed {
                // Never skipped by a later one of the same call.
                Some(failed) if index > failed => Effect::Nothing,
                _ => effect(status(index)),
            };
            self.acked(popped, index, effect, outcome, begin);
        }
    }

    /// The outcome of each acknowledgement, in the order of the request.
    fn outcomes(
        &mut self,
        response: Result<crate::connection::Response, CallFailure>,
        count: usize,
    ) -> Vec<AckOutcome> {
        let response = match response {
            Ok(response) => response,
            Err(CallFailure::Refused) => return vec![AckOutcome::Refused; count],
            Err(CallFailure::Unknown) => return vec![AckOutcome::Unknown; count],
        };
        let results: Vec<AckResult> = serde_json::from_slice(&response.body).unwrap_or_default();
        if results.len() != count {
            self.caller.run.unexpected.add("ack", &response.describe());
            return vec![AckOutcome::Unknown; count];
        }
        let outcome = |result: AckResult| match result.success {
            true => AckOutcome::Done {
                released: result.lease_released,
                dead: result.dlq,
                noop: result.noop,
            },
            false => AckOutcome::Refused,
        };
        results.into_iter().map(outcome).collect()
    }

    /// Acknowledges all messages and pushes new ones, both or neither.
    async fn transact(&mut self, popped: &PoppedBatch) {
        let (_, message) = popped.messages.last().expect("a pop with messages");
        let mut operations = vec![json!(AckBody::of(message, AckStatus::Completed))];
        operations[0]["type"] = json!("ack");
        let items: Vec<(usize, u64)> = (0..self.caller.random.random_range(1..4))
            .map(|_| {
                let partition = self.caller.random.random_range(partitions_of_queue(SINK));
                (partition, self.caller.run.number())
            })
            .collect();
        let bodies: Vec<_> = items
            .iter()
            .map(|&(partition, number)| item(partition, number, ""))
            .collect();
        operations.push(json!({ "type": "push", "items": bodies }));
        let body = json!({ "operations": operations }).to_string();

        let begin = self.caller.run.now();
        let response = self.caller.post("/api/v1/transaction", body).await;
        let end = self.caller.run.now();
        self.record.events.count("transactions");
        let success = response.and_then(|response| {
            let parsed = serde_json::from_slice(&response.body);
            parsed
                .map(|TransactionResponse { success }| success)
                .map_err(|_| {
                    let unexpected = &self.caller.run.unexpected;
                    unexpected.add("transaction", &response.describe());
                    CallFailure::Unknown
                })
        });
        let (acked, outcome) = match success {
            Ok(true) => (
                AckOutcome::Done {
                    // The answer does not say.
                    released: true,
                    dead: false,
                    noop: false,
                },
                PushOutcome::Stored,
            ),
            Ok(false) => {
                self.record.events.count("transactions refused");
                (AckOutcome::Refused, PushOutcome::Refused)
            }
            Err(CallFailure::Refused) => (AckOutcome::Refused, PushOutcome::Refused),
            Err(CallFailure::Unknown) => (AckOutcome::Unknown, PushOutcome::Unknown),
        };
        self.record.history.pushes.push(Push {
            begin,
            end,
            items,
            outcome,
        });
        let last = popped.messages.len() - 1;
        self.acked(popped, last, Effect::Completes, acked, begin);
    }

    fn acked(
        &mut self,
        popped: &PoppedBatch,
        index: usize,
        effect: Effect,
        outcome: AckOutcome,
        begin: Time,
    ) {
        self.record.history.acks.push(Ack {
            group: self.group,
            partition: popped.partition,
            number: popped.messages[index].0,
            lease: popped.lease,
            begin,
            end: self.caller.run.now(),
            effect,
            outcome,
        });
    }
}

fn effect(status: AckStatus) -> Effect {
    match status {
        AckStatus::Completed => Effect::Completes,
        AckStatus::Failed | AckStatus::Retry | AckStatus::Dlq => Effect::GivesBack,
    }
}
