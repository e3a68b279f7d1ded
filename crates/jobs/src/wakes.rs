//! The waiters that each write wakes: the same on both databases.

use wakeline_bus::Wakes;

use crate::{
    job::JobRegistration,
    provider::{Provider, ProviderRegistration},
    results::UploadOutcome,
    task::{ClaimOutcome, LostWorkers, Status, SubmitOutcome, SweepOutcome, Task, UpdateOutcome},
    topic::Wait,
    worker::OwnerOutcome,
};

/// No request can wait for what was written.
pub(crate) fn nobody<T>(_: &T) -> Wakes {
    Wakes::none()
}

/// A claim of the worker that is held now waits for this job too.
pub(crate) fn registered(registered: &JobRegistration) -> Wakes {
    match registered {
        JobRegistration::Done { worker, .. } => Wait::Worker(*worker).wake().into(),
        JobRegistration::NoWorker | JobRegistration::Conflict => Wakes::none(),
    }
}

pub(crate) fn submitted(submitted: &SubmitOutcome) -> Wakes {
    match submitted {
        SubmitOutcome::Done(task) => Wait::Claim(task.job).wake_one().into(),
        SubmitOutcome::NoJob | SubmitOutcome::NoWorkers => Wakes::none(),
    }
}

pub(crate) fn claimed(claimed: &ClaimOutcome) -> Wakes {
    match claimed {
        ClaimOutcome::Task(task) => Wait::Task(task.id).wake().into(),
        _ => Wakes::none(),
    }
}

pub(crate) fn unclaimed(unclaimed: &Option<Task>) -> Wakes {
    match unclaimed {
        Some(task) => Wait::Claim(task.job).wake_one().into(),
        None => Wakes::none(),
    }
}

pub(crate) fn updated(updated: &UpdateOutcome) -> Wakes {
    match updated {
        UpdateOutcome::Done { task, .. } => Wait::Task(task.id).wake().into(),
        _ => Wakes::none(),
    }
}

pub(crate) fn removed_worker(removed: &OwnerOutcome<LostWorkers>) -> Wakes {
    match removed {
        OwnerOutcome::Done(loss) => lost(loss),
        OwnerOutcome::NotFound | OwnerOutcome::NotOwner => Wakes::none(),
    }
}

pub(crate) fn swept(swept: &SweepOutcome) -> Wakes {
    lost(&swept.loss)
}

fn lost(loss: &LostWorkers) -> Wakes {
    // A claim that is held for one of them ends.
    let workers = loss.workers.iter();
    let mut wakes: Vec<_> = workers.map(|worker| Wait::Worker(*worker).wake()).collect();
    for task in &loss.tasks {
        wakes.push(Wait::Task(task.id).wake());
        if task.status == Status::Pending {
            wakes.push(Wait::Claim(task.job).wake_one());
        }
    }
    let providers = loss.providers.iter();
    wakes.extend(providers.map(|(name, _)| Wait::Provider(name.clone()).wake()));
    wakes.into()
}

/// The readers that wait for the provider's answers ask it anew.
pub(crate) fn registered_provider(registered: &ProviderRegistration) -> Wakes {
    match registered {
        ProviderRegistration::Done { provider, .. } => {
            Wait::Provider(provider.name.clone()).wake().into()
        }
        ProviderRegistration::NoWorker | ProviderRegistration::NotOwner => Wakes::none(),
    }
}

pub(crate) fn removed_provider(removed: &OwnerOutcome<Provider>) -> Wakes {
    match removed {
        OwnerOutcome::Done(provider) => Wait::Provider(provider.name.clone()).wake().into(),
        OwnerOutcome::NotFound | OwnerOutcome::NotOwner => Wakes::none(),
    }
}

/// The readers of an answer, if it was kept.
pub(crate) fn kept(readers: Wakes) -> impl FnOnce(&UploadOutcome) -> Wakes {
    move |kept| match kept {
        UploadOutcome::Done => readers,
        _ => Wakes::none(),
    }
}
