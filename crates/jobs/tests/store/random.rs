//! Random sequences of steps on two nodes, checked against the model after each.

use std::sync::Arc;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use uuid::Uuid;
use wakeline_jobs::{
    job::JobRegistration,
    store::Store,
    task::{ClaimOutcome, NewTask, Status, SubmitOutcome, TaskUpdate, UpdateOutcome},
    worker::OwnerOutcome,
};
use wakeline_testkit::CommitAlone;

use crate::{
    fixture::{ALL, Fixture, named, new_job, new_task, of, page},
    model::{Model, ModelOutcome},
};

const SEQUENCES: usize = 12;
const STEPS: usize = 80;
const RETRIES: [i32; 3] = [0, 1, 2];

pub(crate) async fn random_sequences_follow_the_model(fixture: Fixture) {
    let given = std::env::var("WAKELINE_SEED").ok();
    let given: Option<u64> = given.map(|seed| seed.parse().unwrap());
    let stores = [fixture.store.clone(), fixture.database.store().await];
    for number in 0..if given.is_some() { 1 } else { SEQUENCES } {
        let seed = given.unwrap_or_else(rand::random);
        eprintln!("WAKELINE_SEED={seed}");
        let mut sequence = Sequence {
            fixture: &fixture,
            stores: &stores,
            random: StdRng::seed_from_u64(seed),
            room: format!("room-{number}"),
            model: Model::new(&RETRIES),
        };
        for _ in 0..STEPS {
            sequence.step().await;
            sequence.check().await;
        }
    }
}

struct Sequence<'a> {
    fixture: &'a Fixture,
    stores: &'a [Arc<dyn Store>; 2],
    random: StdRng,
    room: String,
    model: Model,
}

impl Sequence<'_> {
    async fn step(&mut self) {
        let store = self.stores[self.random.random_range(0..2)].clone();
        let user = [self.fixture.anna, self.fixture.ben][self.random.random_range(0..2)];
        let job = self.random.random_range(0..RETRIES.len());
        let workers: Vec<(Uuid, Uuid)> = self.model.workers.clone().into_iter().collect();
        let worker = workers.choose(&mut self.random).copied();
        match (self.random.random_range(0..20), worker) {
            (0..3, _) => {
                let mut new = new_job(&self.name(job), user, None);
                new.max_retries = RETRIES[job];
                let told = store.register_job(new).done().await;
                let JobRegistration::Done { worker, is_new, .. } = told else {
                    panic!("{told:?}");
                };
                self.model.workers.insert(worker, user);
                assert_eq!(is_new, self.model.register(job, worker));
            }
            (3..5, Some((worker, owner))) => {
                let mut new = new_job(&self.name(job), owner, Some(worker));
                new.max_retries = RETRIES[job];
                let told = store.register_job(new).done().await;
                let expected = self.model.register(job, worker);
                let is_as_expected =
                    matches!(told, JobRegistration::Done { is_new, .. } if is_new == expected);
                assert!(is_as_expected, "{told:?}");
            }
            (5..10, _) => {
                let new = NewTask {
                    room: self.room.clone(),
                    ..new_task(&self.name(job), "", user)
                };
                let id = new.id;
                let told = store.submit(new).done().await;
                let is_done = matches!(told, SubmitOutcome::Done(_));
                assert_eq!(is_done, self.model.submit(id, job, user));
            }
            (10..14, Some((worker, owner))) => {
                let claimed = match store.claim(worker, owner).done().await {
                    ClaimOutcome::Task(task) => Some(task.id),
                    ClaimOutcome::Nothing { .. } => None,
                    other => panic!("{other:?}"),
                };
                assert_eq!(claimed, self.model.claim(worker));
            }
            (15..17, Some((worker, _))) if !self.model.tasks.is_empty() => {
                let index = self.random.random_range(0..self.model.tasks.len());
                let task = self.model.tasks[index].id;
                let returned = store.unclaim(task, worker).done().await;
                assert_eq!(returned.is_some(), self.model.unclaim(index, worker));
            }
            (14, Some((worker, _))) => {
                let told = store.remove_worker(worker, None).done().await;
                let OwnerOutcome::Done(loss) = told else {
                    panic!("{told:?}");
                };
                let mut lost: Vec<Uuid> = loss.tasks.iter().map(|task| task.id).collect();
                let mut expected = self.model.remove(worker);
                lost.sort_unstable();
                expected.sort_unstable();
                assert_eq!(lost, expected);
            }
            _ => self.update(&*store, user).await,
        }
    }

    async fn update(&mut self, store: &dyn Store, user: Uuid) {
        if self.model.tasks.is_empty() {
            return;
        }
        let index = self.random.random_range(0..self.model.tasks.len());
        let status = *Status::ALL.choose(&mut self.random).unwrap();
        let is_superuser = self.random.random_bool(0.3);
        let update = TaskUpdate {
            task: self.model.tasks[index].id,
            user,
            is_superuser,
            status,
            error: None,
            worker: None,
        };
        let told = match store.update(update).done().await {
            UpdateOutcome::NotClaimed => ModelOutcome::NotClaimed,
            UpdateOutcome::NotOwner => ModelOutcome::NotOwner,
            UpdateOutcome::NoSuchTransition(status) => ModelOutcome::NoSuchTransition(status),
            UpdateOutcome::Done { orphan, .. } => ModelOutcome::Done {
                is_orphan: orphan.is_some(),
            },
            other @ (UpdateOutcome::NotFound | UpdateOutcome::WrongWorker) => panic!("{other:?}"),
        };
        let expected = self.model.update(index, user, is_superuser, status);
        assert_eq!(told, expected);
    }

    async fn check(&mut self) {
        let store = &self.stores[self.random.random_range(0..2)];
        for (number, workers) in self.model.jobs.iter().enumerate() {
            let job = store.job(named(&self.name(number))).await.unwrap();
            assert_eq!(job.map(|job| job.workers).as_ref(), workers.as_ref());
        }
        let whole = store.tasks(of(&self.room), ALL).await.unwrap();
        assert_eq!(
            usize::try_from(whole.total).unwrap(),
            self.model.tasks.len()
        );
        for (index, task) in whole.items.iter().rev().enumerate() {
            let expected = &self.model.tasks[index];
            assert_eq!(task.id, expected.id);
            assert_eq!(
                (task.status, task.worker),
                (expected.status, expected.worker)
            );
            assert_eq!(task.error, expected.error);
            assert_eq!(task.queue_position, self.model.place(index));
            assert_eq!(task.completed_at.is_some(), task.status.is_terminal());
        }
        let from = self.random.random_range(0..=whole.items.len());
        let part = page(3, i64::try_from(from).unwrap());
        let part = store.tasks(of(&self.room), part).await.unwrap().items;
        let end = whole.items.len().min(from + 3);
        assert_eq!(part, whole.items[from..end]);
    }

    fn name(&self, job: usize) -> String {
        format!("{}:modifiers:{job}", self.room)
    }
}
