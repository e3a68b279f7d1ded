//! What a consumer does with what it got.

use std::time::Duration;

use rand::RngExt;
use serde::Deserialize;
use serde_json::json;
use wakeline_client::{Ack as AckBody, AckResult, AckStatus};

use super::{Consumer, Taken};
use crate::verify::history::{Ack, AckOutcome, Effect, Push, PushOutcome, Time};
use crate::verify::producer::item;
use crate::verify::run::{Failed, LEASE, QUEUES, places_of_queue};

/// More than this is not acknowledged one by one.
const SINGLY: usize = 20;
/// Where transactions push to; nobody makes transactions there, so that they end.
const SINK: usize = QUEUES.len() - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    OneByOne,
    /// The last one, which completes all.
    Last,
    Batch,
    BatchWithFailure,
    FailFirst,
    Transaction,
    Stall,
    Abandon,
}

/// What the consumers of a queue do with what they get first, so that every run has some of
/// everything, however short. Taken from the end.
pub(super) fn first_ways(consumer: usize) -> Vec<Way> {
    match consumer % 3 {
        0 => vec![Way::Transaction, Way::FailFirst],
        1 => vec![Way::Batch, Way::BatchWithFailure],
        _ => vec![Way::OneByOne, Way::Stall],
    }
}

#[derive(Deserialize)]
struct Transacted {
    success: bool,
}

impl Consumer {
    pub(super) async fn settle(&mut self, taken: Taken) {
        match self.way(taken.messages.len()) {
            Way::OneByOne => {
                for index in 0..taken.messages.len() {
                    self.ack(&taken, index, AckStatus::Completed).await;
                }
            }
            Way::Last => {
                let last = taken.messages.len() - 1;
                self.ack(&taken, last, AckStatus::Completed).await;
            }
            Way::Batch => self.ack_batch(&taken, None).await,
            Way::BatchWithFailure => {
                let failed = self.caller.random.random_range(0..taken.messages.len());
                self.ack_batch(&taken, Some(failed)).await;
            }
            Way::FailFirst => {
                let status = self.failure();
                self.ack(&taken, 0, status).await;
            }
            Way::Transaction => self.transact(&taken).await,
            Way::Stall => {
                self.record.tally.count("stalls");
                let over = Duration::from_millis(self.caller.random.random_range(0..500));
                tokio::time::sleep(LEASE + over).await;
                self.complete(taken).await;
            }
            Way::Abandon => self.record.tally.count("abandoned"),
        }
    }

    pub(super) async fn complete(&mut self, taken: Taken) {
        if self.caller.run.routes.ack_batch && self.caller.random.random() {
            self.ack_batch(&taken, None).await;
        } else {
            let last = taken.messages.len() - 1;
            self.ack(&taken, last, AckStatus::Completed).await;
        }
    }

    fn way(&mut self, messages: usize) -> Way {
        if self.caller.run.is_stormy() {
            return Way::Stall;
        }
        let random = &mut self.caller.random;
        let way = self
            .first_ways
            .pop()
            .unwrap_or_else(|| match random.random_range(0..100) {
                0..20 => Way::OneByOne,
                20..45 => Way::Batch,
                45..55 => Way::BatchWithFailure,
                55..60 => Way::FailFirst,
                60..75 => Way::Transaction,
                75..78 => Way::Stall,
                78..80 => Way::Abandon,
                _ => Way::Last,
            });
        let routes = self.caller.run.routes;
        let fits = match way {
            Way::OneByOne => messages <= SINGLY,
            Way::Batch | Way::BatchWithFailure => routes.ack_batch,
            Way::Transaction => routes.transaction && self.queue != SINK,
            _ => true,
        };
        if fits { way } else { Way::Last }
    }

    /// A failure that counts against the limit of retries, or one that does not.
    fn failure(&mut self) -> AckStatus {
        match self.caller.random.random_bool(0.3) {
            true => AckStatus::Failed,
            false => AckStatus::Retry,
        }
    }

    async fn ack(&mut self, taken: &Taken, index: usize, status: AckStatus) {
        let body = serde_json::to_string(&AckBody::of(&taken.messages[index].1, status));
        let body = body.expect("an ack is JSON");
        let begin = self.caller.run.now();
        let answer = self.caller.post("/api/v1/ack", body).await;
        let outcomes = self.outcomes(answer, 1);
        self.acked(taken, index, effect(status), outcomes[0], begin);
    }

    async fn ack_batch(&mut self, taken: &Taken, failed: Option<usize>) {
        let failure = self.failure();
        let status = |index: usize| match failed {
            Some(failed) if failed == index => failure,
            _ => AckStatus::Completed,
        };
        let acks: Vec<AckBody> = taken
            .messages
            .iter()
            .enumerate()
            .map(|(index, (_, message))| AckBody::of(message, status(index)))
            .collect();
        let group = acks[0].consumer_group.clone();
        let body = json!({ "acknowledgments": acks, "consumerGroup": group }).to_string();
        let begin = self.caller.run.now();
        let answer = self.caller.post("/api/v1/ack/batch", body).await;
        self.record.tally.count("batch acks");
        let outcomes = self.outcomes(answer, taken.messages.len());
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let effect = match failed {
                // Never skipped by a later one of the same call.
                Some(failed) if index > failed => Effect::Nothing,
                _ => effect(status(index)),
            };
            self.acked(taken, index, effect, outcome, begin);
        }
    }

    /// What became of each, in the order of the request.
    fn outcomes(
        &mut self,
        answer: Result<crate::line::Answer, Failed>,
        count: usize,
    ) -> Vec<AckOutcome> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(Failed::Refused) => return vec![AckOutcome::Refused; count],
            Err(Failed::Unknown) => return vec![AckOutcome::Unknown; count],
        };
        let results: Vec<AckResult> = serde_json::from_slice(&answer.body).unwrap_or_default();
        if results.len() != count {
            self.caller.run.unexpected.add("ack", &answer.shown());
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

    /// Acknowledges everything and pushes on, both or neither.
    async fn transact(&mut self, taken: &Taken) {
        let (_, message) = taken.messages.last().expect("a pop with messages");
        let mut operations = vec![json!(AckBody::of(message, AckStatus::Completed))];
        operations[0]["type"] = json!("ack");
        let items: Vec<(usize, u64)> = (0..self.caller.random.random_range(1..4))
            .map(|_| {
                let place = self.caller.random.random_range(places_of_queue(SINK));
                (place, self.caller.run.number())
            })
            .collect();
        let bodies: Vec<_> = items
            .iter()
            .map(|&(place, number)| item(place, number, ""))
            .collect();
        operations.push(json!({ "type": "push", "items": bodies }));
        let body = json!({ "operations": operations }).to_string();

        let begin = self.caller.run.now();
        let answer = self.caller.post("/api/v1/transaction", body).await;
        let end = self.caller.run.now();
        self.record.tally.count("transactions");
        let (acked, outcome) = match answer {
            Ok(answer) => match serde_json::from_slice(&answer.body) {
                Ok(Transacted { success: true }) => (
                    AckOutcome::Done {
                        // The answer does not say.
                        released: true,
                        dead: false,
                        noop: false,
                    },
                    PushOutcome::Stored,
                ),
                Ok(Transacted { success: false }) => {
                    self.record.tally.count("transactions refused");
                    (AckOutcome::Refused, PushOutcome::Refused)
                }
                Err(_) => {
                    self.caller
                        .run
                        .unexpected
                        .add("transaction", &answer.shown());
                    (AckOutcome::Unknown, PushOutcome::Unknown)
                }
            },
            Err(Failed::Refused) => (AckOutcome::Refused, PushOutcome::Refused),
            Err(Failed::Unknown) => (AckOutcome::Unknown, PushOutcome::Unknown),
        };
        self.record.history.pushes.push(Push {
            begin,
            end,
            items,
            outcome,
        });
        let last = taken.messages.len() - 1;
        self.acked(taken, last, Effect::Completes, acked, begin);
    }

    fn acked(
        &mut self,
        taken: &Taken,
        index: usize,
        effect: Effect,
        outcome: AckOutcome,
        begin: Time,
    ) {
        self.record.history.acks.push(Ack {
            group: self.group,
            place: taken.place,
            number: taken.messages[index].0,
            lease: taken.lease,
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
