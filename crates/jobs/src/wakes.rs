//! Whom each write wakes: the same on both databases.

use wakeline_bus::Wakes;

use crate::{
    job::Registered,
    provider::{Provider, ProviderRegistered},
    results::Kept,
    task::{Claimed, Loss, Status, Submitted, Swept, Task, Updated},
    topic::Wait,
    worker::Owned,
};

/// No request can wait for what was written.
pub(crate) fn nobody<T>(_: &T) -> Wakes {
    Wakes::none()
}

/// A claim of the worker that is held now waits for this job too.
pub(crate) fn registered(registered: &Registered) -> Wakes {
    match registered {
        Registered::Done { worker, .. } => Wait::Worker(*worker).wake().into(),
        Registered::NoWorker | Registered::Conflict => Wakes::none(),
    }
}

pub(crate) fn submitted(submitted: &Submitted) -> Wakes {
    match submitted {
        Submitted::Done(task) => Wait::Claim(task.job).wake_one().into(),
        Submitted::NoJob | Submitted::NoWorkers => Wakes::none(),
    }
}

pub(crate) fn claimed(claimed: &Claimed) -> Wakes {
    match claimed {
        Claimed::Task(task) => Wait::Task(task.id).wake().into(),
        _ => Wakes::none(),
    }
}

pub(crate) fn unclaimed(unclaimed: &Option<Task>) -> Wakes {
    match unclaimed {
        Some(task) => Wait::Claim(task.job).wake_one().into(),
        None => Wakes::none(),
    }
}

pub(crate) fn updated(updated: &Updated) -> Wakes {
    match updated {
        Updated::Done { task, .. } => Wait::Task(task.id).wake().into(),
        _ => Wakes::none(),
    }
}

pub(crate) fn removed_worker(removed: &Owned<Loss>) -> Wakes {
    match removed {
        Owned::Done(loss) => lost(loss),
        Owned::NotFound | Owned::Foreign => Wakes::none(),
    }
}

pub(crate) fn swept(swept: &Swept) -> Wakes {
    lost(&swept.loss)
}

fn lost(loss: &Loss) -> Wakes {
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
pub(crate) fn registered_provider(registered: &ProviderRegistered) -> Wakes {
    match registered {
        ProviderRegistered::Done { provider, .. } => {
            Wait::Provider(provider.name.clone()).wake().into()
        }
        ProviderRegistered::NoWorker | ProviderRegistered::Foreign => Wakes::none(),
    }
}

pub(crate) fn removed_provider(removed: &Owned<Provider>) -> Wakes {
    match removed {
        Owned::Done(provider) => Wait::Provider(provider.name.clone()).wake().into(),
        Owned::NotFound | Owned::Foreign => Wakes::none(),
    }
}

/// The readers of an answer, if it was kept.
pub(crate) fn kept(readers: Wakes) -> impl FnOnce(&Kept) -> Wakes {
    move |kept| match kept {
        Kept::Done => readers,
        _ => Wakes::none(),
    }
}
