//! Random sequences of calls, compared with the model after each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckStatus},
    claim::{Claim, PopOutcome, PopRequest, Source, Start},
    message::{NewMessage, PushReceipt},
    store::Store,
    write_batch::WriteBatch,
};
use wakeline_testkit::CommitAlone;
use wakeline_wake::{WaitKey, WaitedKey, Wake};

use crate::{
    calls::{LEASE, Request, ack_of, assert_about, from, message, names},
    model::{AckResults, Model, Name},
    test_store::{TestStore, seed},
};

const STEPS: usize = 80;
const SEQUENCES: usize = 40;
const PARTITIONS: [&str; 3] = ["p0", "p1", "p2"];
const GROUPS: [&str; 2] = ["one", "two"];
/// A step of time. No lease ends near a step, so the time that a test takes on PostgreSQL makes no
/// difference.
const TICK: Duration = Duration::from_secs(25);

pub(crate) async fn random_sequences_follow_the_model(store: TestStore) {
    let given = seed();
    let sequences = if given.is_some() { 1 } else { SEQUENCES };
    let stores = store.nodes().await;
    for number in 0..sequences {
        let seed = given.unwrap_or_else(rand::random);
        eprintln!("WAKELINE_SEED={seed}");
        let prefix = format!("s{number}");
        let mut sequence = Sequence {
            fixture: &store,
            stores: &stores,
            random: StdRng::seed_from_u64(seed),
            queues: [format!("{prefix}-a"), format!("{prefix}-b")],
            model: Model::default(),
            claims: Vec::new(),
            parked: BTreeMap::new(),
            pushed: 0,
            given: Vec::new(),
        };
        for _ in 0..STEPS {
            sequence.apply().await;
        }
        sequence.end(&prefix).await;
    }
}

struct Sequence<'a> {
    fixture: &'a TestStore,
    stores: &'a [Arc<dyn Store>; 2],
    random: StdRng,
    queues: [String; 2],
    model: Model,
    claims: Vec<Claim>,
    /// The pops that would wait now: the last check found nothing, and no wake came since. With the
    /// time of the next check, if there is one.
    parked: BTreeMap<String, (PopRequest, Option<Duration>)>,
    pushed: usize,
    /// Transaction ids that the store gave to messages without one.
    given: Vec<String>,
}

impl<'a> Sequence<'a> {
    async fn apply(&mut self) {
        match self.random.random_range(0..100) {
            0..20 => {
                let pushes = self.messages();
                self.run(pushes, Vec::new(), false).await;
            }
            20..50 => self.pop().await,
            50..70 => {
                let acks = self.acks();
                self.run(Vec::new(), acks, false).await;
            }
            70..78 => {
                let (pushes, acks) = (self.messages(), self.acks());
                self.run(pushes, acks, true).await;
            }
            78..84 => self.release_claim().await,
            84..88 => self.extend().await,
            88..94 => self.recheck().await,
            _ => {
                self.fixture.pass(TICK).await;
                self.model.now += TICK;
            }
        }
        self.assert_no_pop_is_stuck();
    }

    fn store(&mut self) -> &'a dyn Store {
        &*self.stores[self.random.random_range(0..2)]
    }

    fn queue(&mut self) -> String {
        self.queues.choose(&mut self.random).unwrap().clone()
    }

    fn messages(&mut self) -> Vec<NewMessage> {
        let mut sent = Vec::new();
        for _ in 0..self.random.random_range(1..=4) {
            self.pushed += 1;
            let partition = *PARTITIONS.choose(&mut self.random).unwrap();
            let mut new = message(&self.queue(), partition, &format!("m{}", self.pushed));
            match self.random.random_range(0..20) {
                0..4 => {
                    let known = self.random.random_range(0..self.pushed);
                    new.transaction_id = Some(format!("m{known}"));
                }
                4 => {
                    let given = self.given.choose(&mut self.random).cloned();
                    new.transaction_id = given.or(new.transaction_id);
                }
                5..10 => new.transaction_id = None,
                _ => {}
            }
            sent.push(new);
        }
        sent
    }

    /// Of one claim or of two.
    fn acks(&mut self) -> Vec<Ack> {
        let mut acks: Vec<Ack> = Vec::new();
        for _ in 0..self.random.random_range(1..=2) {
            let Some(claimed) = self.claims.choose(&mut self.random).cloned() else {
                break;
            };
            for _ in 0..self.random.random_range(1..=3) {
                let ack = self.ack(&claimed);
                // Twice of one message only if that is no contradiction; and whether a dead one is
                // still ahead depends on when the store passes it.
                let key =
                    |ack: &Ack| (ack.partition, ack.group.clone(), ack.transaction_id.clone());
                let other = acks.iter().find(|other| key(other) == key(&ack));
                let is_contradiction = other.is_some_and(|other| {
                    (other.status, ack.status) != (AckStatus::Failed, AckStatus::Failed)
                });
                if !is_contradiction && !self.model.is_dead(&ack) {
                    acks.push(ack);
                }
            }
        }
        acks
    }

    fn ack(&mut self, claimed: &Claim) -> Ack {
        let status = match self.random.random_range(0..10) {
            0..5 => AckStatus::Completed,
            5..8 => AckStatus::Failed,
            8 => AckStatus::Retry,
            _ => AckStatus::DeadLetter,
        };
        let transaction = match self.random.random_range(0..25) {
            0 => format!("m{}", self.random.random_range(0..=self.pushed)),
            1 => {
                let given = self.given.choose(&mut self.random);
                given.cloned().unwrap_or_default()
            }
            _ => {
                let names = names(claimed);
                (*names.choose(&mut self.random).unwrap()).to_owned()
            }
        };
        let mut ack = ack_of(claimed, &transaction, status);
        match self.random.random_range(0..14) {
            0 => ack.lease = None,
            1 => ack.lease = Some(Uuid::nil()),
            _ => {}
        }
        ack.keeps_lease = self.random.random_bool(0.1);
        ack
    }

    /// Applies a write batch, whole or not.
    async fn run(&mut self, pushes: Vec<NewMessage>, acks: Vec<Ack>, is_whole: bool) {
        let mut required = Vec::new();
        if is_whole
            && self.random.random_bool(0.3)
            && let Some(claimed) = self.claims.choose(&mut self.random)
        {
            required.extend(claimed.lease);
        }
        let batch = WriteBatch {
            pushes: pushes.clone(),
            acks: acks.clone(),
            is_whole,
            required: required.clone(),
            ..WriteBatch::default()
        };
        let done = self.store().apply(Arc::new(batch)).done().await;
        let rejection = self.model.rejection(&required, &acks).filter(|_| is_whole);
        assert_eq!(done.rejection, rejection, "{acks:?} {required:?}");
        if rejection.is_some() {
            assert!(done.pushed.is_empty() && done.acked.is_empty() && done.wakes.is_empty());
            let names = pushes
                .iter()
                .map(|m| (m.queue.clone(), m.partition.clone()));
            if names.filter(|name| self.model.make(name)).count() > 0 {
                // The first pop of an empty partition checks it once in vain.
                self.parked.clear();
            }
            return;
        }
        let located = self.model.locate(&acks);
        let pushed: Vec<PushReceipt> = done.pushed.into_iter().map(Result::unwrap).collect();
        let stored: Vec<bool> = pushed.iter().map(|pushed| !pushed.duplicate).collect();
        assert_eq!(stored, self.model.push(&pushes, &pushed));
        for (message, pushed) in pushes.iter().zip(pushed) {
            if message.transaction_id.is_none() {
                self.given.push(pushed.transaction_id);
            }
        }
        let expected = self.model.ack(&acks, &required, &located, is_whole);
        assert_eq!(done.acked, expected.outcomes, "{acks:?}");
        if pushes.is_empty() {
            assert_wakes(&expected, &done.wakes);
        }
        self.wake(&done.wakes);
    }

    fn request(&mut self) -> PopRequest {
        let queue = self.queue();
        let source = match self.random.random_range(0..10) {
            0 => Source::Matching {
                namespace: Some(queue),
                task: None,
            },
            1..4 => Source::Queue {
                queue,
                partition: Some((*PARTITIONS.choose(&mut self.random).unwrap()).to_owned()),
            },
            _ => Source::Queue {
                queue,
                partition: None,
            },
        };
        PopRequest {
            source,
            group: (*GROUPS.choose(&mut self.random).unwrap()).to_owned(),
            start: Start::All,
            batch: self.random.random_range(1..=4),
            partitions: *[1, 1, 2, 3].choose(&mut self.random).unwrap(),
            auto_ack: self.random.random_bool(0.3),
            lease_time: self.random.random_bool(0.3).then_some(LEASE * 2),
        }
    }

    async fn pop(&mut self) {
        let request = self.request();
        let lease = Uuid::now_v7();
        let popping = Request(request.clone());
        let popped = popping.pop_of_any_until_sure(|| self.store(), lease).await;
        let available = self.model.available(&request);
        self.model.meet(&request);
        match popped {
            PopOutcome::Claimed(claimed) => {
                let from = claimed.parts.iter().map(|part| part.partition.clone());
                let from: BTreeSet<String> = from.collect();
                assert_eq!(from.len(), claimed.parts.len(), "twice from a partition");
                assert!(from.is_subset(&available), "{claimed:?} of {available:?}");
                assert!(request.auto_ack || claimed.lease == Some(lease));
                self.model.claim(&request, &claimed, LEASE);
                self.wake(&claimed.wakes());
                self.claims.push(claimed);
            }
            PopOutcome::Empty { recheck_after } => {
                assert_eq!(available, BTreeSet::new(), "{request:?}");
                match self.model.next_end(&request) {
                    Some(end) => assert_about(recheck_after, end - self.model.now),
                    None => assert_eq!(recheck_after, None),
                }
                let checks_at = recheck_after.map(|time| self.model.now + time);
                let key = format!("{:?}", request.key());
                self.parked.insert(key, (request, checks_at));
            }
        }
    }

    async fn release_claim(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let index = self.random.random_range(0..self.claims.len());
        let claimed = self.claims.swap_remove(index);
        let Some(expected) = self.model.release_claim(&claimed) else {
            return;
        };
        let claim = Arc::new(claimed.clone());
        let mut returned = self.store().release_claim(claim).done().await;
        returned.sort_unstable();
        assert_eq!(returned, expected, "{claimed:?}");
        let parts = claimed.parts.iter();
        let wakes: Vec<Wake> = parts
            .filter(|part| returned.contains(&part.number))
            .map(|part| claimed.wake(part, 1))
            .collect();
        self.wake(&wakes);
    }

    async fn extend(&mut self) {
        let leases: Vec<Uuid> = self.claims.iter().filter_map(|claim| claim.lease).collect();
        let Some(lease) = leases.choose(&mut self.random).copied() else {
            return;
        };
        let time = TICK * self.random.random_range(1..4) + TICK / 2;
        let extended = self.store().extend(lease, time).done().await;
        let expected = self.model.extend(lease, time);
        assert_eq!(
            extended.map(|(count, _)| count),
            expected.map(|(count, _)| count)
        );
    }

    async fn recheck(&mut self) {
        let requests: Vec<PopRequest> = (0..5).map(|_| self.request()).collect();
        let waiting = requests.iter().map(|request| {
            let WaitKey { topic, group } = request.key();
            WaitedKey {
                topic,
                group,
                waiters: 1,
            }
        });
        let waiting = waiting.collect();
        let dues = self.store().recheck(waiting).await.unwrap();
        for request in &requests {
            let key = request.key();
            let due = dues.iter().find(|due| due.key == key);
            let due = due.map(|due| due.after);
            let parked = self.parked.get(&format!("{key:?}"));
            if !self.model.available(request).is_empty() {
                assert_eq!(due, Some(Duration::ZERO), "{request:?}");
            } else if parked.is_some_and(|(_, checks_at)| checks_at.is_none())
                && self.model.is_known(request)
            {
                assert_eq!(due, None, "{request:?}");
            }
        }
    }

    fn wake(&mut self, wakes: &[Wake]) {
        self.parked.retain(|_, (request, _)| {
            let key = request.key();
            !wakes.iter().any(|wake| {
                wake.topics.contains(&key.topic)
                    && wake.group.as_ref().is_none_or(|group| *group == key.group)
            })
        });
    }

    /// A pop that waits without a wake and before its own time has no message to get.
    fn assert_no_pop_is_stuck(&mut self) {
        for (request, checks_at) in self.parked.values() {
            let waits = checks_at.is_none_or(|time| self.model.now < time);
            let available = self.model.available(request);
            assert!(
                !waits || available.is_empty(),
                "{request:?} waits until {checks_at:?} and could have {available:?}"
            );
        }
    }

    /// A new group gets all messages.
    async fn end(mut self, prefix: &str) {
        let mut seen = BTreeMap::<Name, Vec<String>>::new();
        for queue in self.queues.clone() {
            let request = from(&queue).group("late").batch(3).auto_ack();
            loop {
                let lease = Uuid::now_v7();
                let popped = request.pop_of_any_until_sure(|| self.store(), lease).await;
                let claimed = match popped {
                    PopOutcome::Claimed(claimed) => claimed,
                    PopOutcome::Empty { recheck_after } => {
                        assert_eq!(recheck_after, None, "there is nothing left to wait for");
                        break;
                    }
                };
                for part in claimed.parts {
                    let names = part.messages.into_iter().map(|m| m.transaction_id);
                    let key = (queue.clone(), part.partition);
                    seen.entry(key).or_default().extend(names);
                }
            }
        }
        assert_eq!(seen, self.model.messages());
        let dead = format!(
            "SELECT d.position, CAST(d.failures AS bigint) FROM queue_dead_letter d \
             JOIN queue_partition p ON p.id = d.partition_id JOIN queue q ON q.id = p.queue_id \
             WHERE q.name LIKE '{prefix}-%' ORDER BY 1, 2"
        );
        let dead = self.fixture.database.pairs(&dead).await;
        assert_eq!(dead, self.model.dead_letters());
    }
}

/// Acknowledgements wake their own group, where there is something for it.
fn assert_wakes(expected: &AckResults, wakes: &[Wake]) {
    let woken = wakes.iter().map(|wake| {
        let parts: Vec<String> = wake.topics[0].parts().map(str::to_owned).collect();
        let [queue, partition] = &parts[..] else {
            panic!("{wake:?}");
        };
        let group = wake.group.as_ref().expect("a group").name();
        ((queue.clone(), partition.clone()), group.to_owned())
    });
    let woken: BTreeSet<(Name, String)> = woken.collect();
    assert!(
        woken.is_superset(&expected.ready),
        "{woken:?} for {expected:?}"
    );
    let more: BTreeSet<_> = woken.difference(&expected.ready).cloned().collect();
    assert!(
        more.is_subset(&expected.perhaps),
        "{woken:?} for {expected:?}"
    );
}
