//! Random sequences of steps, checked against the model after each.

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
use wakeline_wake::{Topic, WaitKey, WaitedKey, Wake};

use crate::{
    calls::{LEASE, assert_about, from, message, say},
    model::{AckedMessage, Model, Name},
    test_store::TestStore,
};

const STEPS: usize = 80;
const SEQUENCES: usize = 40;
const PARTITIONS: [&str; 3] = ["p0", "p1", "p2"];
const GROUPS: [&str; 2] = ["one", "two"];
/// What passes at once: no lease ends near it, so that the time that a test takes on PostgreSQL
/// makes no difference.
const TICK: Duration = Duration::from_secs(25);
/// A pop that is told to check again within this time does so at once.
const AT_ONCE: Duration = Duration::from_millis(10);
const MAX_LOOKS: usize = 50;

pub(crate) async fn random_sequences_follow_the_model(store: TestStore) {
    let given = std::env::var("WAKELINE_SEED").ok();
    let given: Option<u64> = given.map(|seed| seed.parse().unwrap());
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
    /// The pops that would wait now: a pop's last check found nothing, and it has not been woken since. When
    /// it looks again by itself, if it does.
    parked: BTreeMap<String, (PopRequest, Option<Duration>)>,
    pushed: usize,
    /// Transaction ids that the store gave to messages without one.
    given: Vec<String>,
}

impl Sequence<'_> {
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
        self.nobody_is_stuck();
    }

    fn store(&mut self) -> &dyn Store {
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
                let said = acks.iter().find(|other| {
                    (other.partition, &other.group, &other.transaction_id)
                        == (ack.partition, &ack.group, &ack.transaction_id)
                });
                let is_contradiction = said.is_some_and(|other| {
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
            1 => self
                .given
                .choose(&mut self.random)
                .cloned()
                .unwrap_or_default(),
            _ => {
                let messages: Vec<_> = claimed.messages().collect();
                messages
                    .choose(&mut self.random)
                    .unwrap()
                    .transaction_id
                    .clone()
            }
        };
        let mut ack = say(claimed, &transaction, status);
        match self.random.random_range(0..14) {
            0 => ack.lease = None,
            1 => ack.lease = Some(Uuid::nil()),
            _ => {}
        }
        ack.keeps_lease = self.random.random_bool(0.1);
        ack
    }

    /// A step, whole or not.
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
            state: None,
        };
        let done = self.store().apply(Arc::new(batch)).done().await;
        let rejection = self.model.rejection(&required, &acks).filter(|_| is_whole);
        assert_eq!(done.rejection, rejection, "{acks:?} {required:?}");
        if rejection.is_some() {
            assert_eq!(
                (&*done.pushed, &*done.acked, &*done.wakes),
                (&[][..], &[][..], &[][..])
            );
            let names = pushes
                .iter()
                .map(|m| (m.queue.clone(), m.partition.clone()));
            let made = names.filter(|name| self.model.make(name)).count();
            if made > 0 {
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
        let said = self.model.ack(&acks, &required, &located);
        assert_eq!(done.acked, said.outcomes, "{acks:?}");
        if pushes.is_empty() {
            assert_told(&said, &done.wakes);
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
        }
    }

    async fn pop(&mut self) {
        let request = self.request();
        let asked = Arc::new(request.clone());
        let lease = Uuid::now_v7();
        let mut looks = 0;
        let popped = loop {
            let popped = self.store().pop(asked.clone(), lease, LEASE).done().await;
            match popped {
                PopOutcome::Empty {
                    recheck_after: Some(recheck_after),
                } if recheck_after <= AT_ONCE => {
                    looks += 1;
                    assert!(
                        looks < MAX_LOOKS,
                        "told to look again for ever: {request:?}"
                    );
                    tokio::time::sleep(recheck_after).await;
                }
                popped => break popped,
            }
        };
        let available = self.model.available(&request);
        self.model.meet(&request);
        match popped {
            PopOutcome::Claimed(claimed) => {
                let from: BTreeSet<String> = claimed
                    .parts
                    .iter()
                    .map(|part| part.partition.clone())
                    .collect();
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
                let recheck_after =
                    recheck_after.map(|recheck_after| self.model.now + recheck_after);
                let key = format!("{:?}", request.key());
                self.parked.insert(key, (request, recheck_after));
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
            } else if parked.is_some_and(|(_, recheck_after)| recheck_after.is_none())
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
    fn nobody_is_stuck(&mut self) {
        for (request, recheck_after) in self.parked.values() {
            let is_asleep =
                recheck_after.is_none_or(|recheck_after| self.model.now < recheck_after);
            let available = self.model.available(request);
            assert!(
                !is_asleep || available.is_empty(),
                "{request:?} sleeps until {recheck_after:?} and could have {available:?}"
            );
        }
    }

    /// A group that comes at the end sees everything.
    async fn end(mut self, prefix: &str) {
        let mut seen = BTreeMap::<Name, Vec<String>>::new();
        for queue in self.queues.clone() {
            let request = from(&queue).group("late").batch(3).auto_ack();
            loop {
                let claimed = match request.pop(self.store()).await {
                    PopOutcome::Claimed(claimed) => claimed,
                    PopOutcome::Empty {
                        recheck_after: None,
                    } => break,
                    PopOutcome::Empty {
                        recheck_after: Some(recheck_after),
                    } => {
                        assert!(recheck_after <= AT_ONCE, "{recheck_after:?}");
                        tokio::time::sleep(recheck_after).await;
                        continue;
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
        assert_eq!(
            self.fixture.database.pairs(&dead).await,
            self.model.dead_letters()
        );
    }
}

/// Acknowledgements wake their own group, where there is something for it.
fn assert_told(said: &AckedMessage, ready: &[Wake]) {
    let told: BTreeSet<(Name, String)> = ready
        .iter()
        .map(|wake| {
            let parts =
                |topic: &Topic| -> Vec<String> { topic.parts().map(str::to_owned).collect() };
            let [queue, partition] = &parts(&wake.topics[0])[..] else {
                panic!("{wake:?}");
            };
            let group = wake.group.as_ref().expect("a group").name();
            ((queue.clone(), partition.clone()), group.to_owned())
        })
        .collect();
    assert!(told.is_superset(&said.ready), "{told:?} for {said:?}");
    let more: BTreeSet<_> = told.difference(&said.ready).cloned().collect();
    assert!(more.is_subset(&said.perhaps), "{told:?} for {said:?}");
}
