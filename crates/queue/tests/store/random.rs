//! Random sequences of steps, checked against the model after each.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, Acked, Status},
    claim::{Claimed, PopRequest, Popped},
    store::Store,
};
use wakeline_wake::{Place, Waiting, Wake};

use crate::{
    database::Database,
    model::Model,
    steps::{LEASE, assert_about, message, names, say},
};

const STEPS: usize = 80;
const SEQUENCES: usize = 40;
const PARTITIONS: [&str; 3] = ["p0", "p1", "p2"];
const GROUPS: [&str; 2] = ["one", "two"];
/// What passes at once: no lease ends near it, so that the time that a test takes on PostgreSQL
/// makes no difference.
const TICK: Duration = Duration::from_secs(25);

pub(crate) async fn random_sequences_follow_the_model(database: Database) {
    let given = std::env::var("WAKELINE_SEED").ok();
    let given: Option<u64> = given.map(|seed| seed.parse().unwrap());
    let sequences = if given.is_some() { 1 } else { SEQUENCES };
    let stores = [database.store().await, database.store().await];
    for number in 0..sequences {
        let seed = given.unwrap_or_else(rand::random);
        eprintln!("WAKELINE_SEED={seed}");
        let prefix = format!("s{number}");
        let mut sequence = Sequence {
            database: &database,
            stores: &stores,
            random: StdRng::seed_from_u64(seed),
            queues: [format!("{prefix}-a"), format!("{prefix}-b")],
            model: Model::default(),
            claims: Vec::new(),
            parked: BTreeMap::new(),
            pushed: 0,
        };
        for _ in 0..STEPS {
            sequence.step().await;
        }
        sequence.end(&prefix).await;
    }
}

struct Sequence<'a> {
    database: &'a Database,
    stores: &'a [Arc<dyn Store>; 2],
    random: StdRng,
    queues: [String; 2],
    model: Model,
    claims: Vec<Claimed>,
    /// Whoever would wait now: its last look found nothing, and it has not been woken since. When
    /// it looks again by itself, if it does.
    parked: BTreeMap<String, (PopRequest, Option<Duration>)>,
    pushed: usize,
}

impl Sequence<'_> {
    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..25 => self.push().await,
            25..55 => self.pop().await,
            55..80 => self.ack().await,
            80..87 => self.hand_back().await,
            87..93 => self.recheck().await,
            _ => {
                self.database.pass(TICK).await;
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

    async fn push(&mut self) {
        let mut sent = Vec::new();
        for _ in 0..self.random.random_range(1..=4) {
            self.pushed += 1;
            let number = match self.random.random_bool(0.2) {
                true => self.random.random_range(0..self.pushed),
                false => self.pushed,
            };
            let partition = *PARTITIONS.choose(&mut self.random).unwrap();
            sent.push((self.queue(), partition.to_owned(), format!("m{number}")));
        }
        let messages: Vec<_> = sent.iter().map(|(q, p, t)| message(q, p, t)).collect();
        let (pushed, ready) = self.store().push(messages.into()).await.unwrap();
        let stored: Vec<bool> = pushed.iter().map(|pushed| !pushed.duplicate).collect();
        assert_eq!(stored, self.model.push(&sent));
        self.wake(&ready);
    }

    fn request(&mut self) -> PopRequest {
        let one = self.random.random_bool(0.3);
        PopRequest {
            queue: self.queue(),
            partition: one.then(|| (*PARTITIONS.choose(&mut self.random).unwrap()).to_owned()),
            group: (*GROUPS.choose(&mut self.random).unwrap()).to_owned(),
            batch: self.random.random_range(1..=4),
            auto_ack: self.random.random_bool(0.3),
        }
    }

    async fn pop(&mut self) {
        let request = self.request();
        let asked = Arc::new(request.clone());
        let lease = Uuid::now_v7();
        let popped = self.store().pop(asked, lease, LEASE).await.unwrap();
        let mut available = self.model.available(&request);
        self.model.meet(&request);
        match popped {
            Popped::Claimed(claimed) => {
                let expected = available
                    .remove(&claimed.partition)
                    .unwrap_or_else(|| panic!("nothing was to be had: {claimed:?}"));
                assert_eq!(names(&claimed), expected);
                assert!(request.auto_ack || claimed.lease == Some(lease));
                self.model.claim(&request, &claimed, LEASE);
                self.wake(claimed.ready().as_slice());
                self.claims.push(claimed);
            }
            Popped::Empty { again } => {
                assert_eq!(available, BTreeMap::new(), "{request:?}");
                match self.model.next_end(&request) {
                    Some(end) => assert_about(again, end - self.model.now),
                    None => assert_eq!(again, None),
                }
                let again = again.map(|again| self.model.now + again);
                let place = format!("{:?}", request.place());
                self.parked.insert(place, (request, again));
            }
        }
    }

    async fn ack(&mut self) {
        let Some(claimed) = self.claims.choose(&mut self.random).cloned() else {
            return;
        };
        let status = match self.random.random_range(0..10) {
            0..4 => Status::Completed,
            4..8 => Status::Failed,
            8 => Status::Retry,
            _ => Status::DeadLetter,
        };
        let transaction = match self.random.random_range(0..20) {
            0 => format!("m{}", self.random.random_range(0..=self.pushed)),
            _ => {
                let message = claimed.messages.choose(&mut self.random).unwrap();
                message.transaction_id.clone()
            }
        };
        let mut ack: Ack = say(&claimed, &transaction, status);
        match self.random.random_range(0..12) {
            0 => ack.lease = None,
            1 => ack.lease = Some(Uuid::nil()),
            _ => {}
        }
        // Whether a dead message is still ahead depends on when the store tidies it away.
        if self.model.is_dead(&ack) {
            return;
        }
        let acked: Acked = self.store().ack(Arc::new(ack.clone())).await.unwrap();
        let (outcome, is_ready) = self.model.ack(&ack);
        assert_eq!(acked.outcome, outcome, "{ack:?}");
        let place = (claimed.queue.clone(), claimed.partition.clone());
        assert_eq!(acked.ready, is_ready.then_some(place), "{ack:?}");
        self.wake(acked.wake(&ack.group).as_slice());
    }

    async fn hand_back(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let index = self.random.random_range(0..self.claims.len());
        let claimed = self.claims.swap_remove(index);
        let Some(expected) = self.model.hand_back(&claimed) else {
            return;
        };
        let claim = Arc::new(claimed.clone());
        let is_back = self.store().hand_back(claim).await.unwrap();
        assert_eq!(is_back, expected, "{claimed:?}");
        if is_back {
            let group = Some(&*claimed.group);
            let (queue, partition) = (&claimed.queue, &claimed.partition);
            self.wake(&[wakeline_queue::topic::ready(queue, partition, group, 1)]);
        }
    }

    async fn recheck(&mut self) {
        let requests: Vec<PopRequest> = (0..5).map(|_| self.request()).collect();
        let waiting = requests.iter().map(|request| {
            let Place { topic, lane } = request.place();
            Waiting {
                topic,
                lane,
                waiters: 1,
            }
        });
        let waiting = waiting.collect();
        let dues = self.store().recheck(waiting).await.unwrap();
        for request in &requests {
            let place = request.place();
            let due = dues.iter().find(|due| due.place == place);
            let due = due.map(|due| due.after);
            let parked = self.parked.get(&format!("{place:?}"));
            if !self.model.available(request).is_empty() {
                assert_eq!(due, Some(Duration::ZERO), "{request:?}");
            } else if parked.is_some_and(|(_, again)| again.is_none()) {
                assert_eq!(due, None, "{request:?}");
            }
        }
    }

    fn wake(&mut self, wakes: &[Wake]) {
        self.parked.retain(|_, (request, _)| {
            let place = request.place();
            !wakes.iter().any(|wake| {
                wake.topics.contains(&place.topic)
                    && wake.lane.as_ref().is_none_or(|lane| *lane == place.lane)
            })
        });
    }

    /// Whoever waits without a wake and before its own time has nothing to wait for.
    fn nobody_is_stuck(&mut self) {
        for (request, again) in self.parked.values() {
            let is_asleep = again.is_none_or(|again| self.model.now < again);
            let available = self.model.available(request);
            assert!(
                !is_asleep || available.is_empty(),
                "{request:?} sleeps until {again:?} and could have {available:?}"
            );
        }
    }

    /// A group that comes at the end sees everything.
    async fn end(mut self, prefix: &str) {
        let mut seen = BTreeMap::<(String, String), Vec<String>>::new();
        for queue in self.queues.clone() {
            let request = Arc::new(PopRequest {
                queue: queue.clone(),
                partition: None,
                group: "late".to_owned(),
                batch: 3,
                auto_ack: true,
            });
            loop {
                let popped = self.store().pop(request.clone(), Uuid::nil(), LEASE);
                let Popped::Claimed(claimed) = popped.await.unwrap() else {
                    break;
                };
                let names = claimed.messages.into_iter().map(|m| m.transaction_id);
                let key = (queue.clone(), claimed.partition);
                seen.entry(key).or_default().extend(names);
            }
        }
        assert_eq!(seen, self.model.messages());
        let dead = format!(
            "SELECT d.position, CAST(d.failures AS bigint) FROM queue_dead_letter d \
             JOIN queue_partition p ON p.id = d.partition_id JOIN queue q ON q.id = p.queue_id \
             WHERE q.name LIKE '{prefix}-%' ORDER BY 1, 2"
        );
        assert_eq!(self.database.pairs(&dead).await, self.model.dead_letters());
    }
}
