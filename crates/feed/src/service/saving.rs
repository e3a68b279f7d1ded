//! Saving: facts are checked, ordered and authorised before they are stored.

use std::{collections::HashMap, sync::Arc};

use tokio::task::spawn_blocking;
use wakeline_bus::Bus;

use super::Feeds;
use crate::{
    error::{BAD_SIGNATURES, Error},
    fact::{Envelope, Reference},
    login::Caller,
    policy::{
        Policies,
        authorization::{Rejection, Verdict},
    },
    signature::SignatureFlaw,
    store::{SaveOutcome, Seq, Store},
};

impl Feeds {
    /// Saves all of the facts or none. Stored facts are left alone, so a client may repeat a save.
    pub async fn save(&self, caller: &Caller, envelopes: Vec<Envelope>) -> Result<(), Error> {
        if envelopes.is_empty() {
            return Ok(());
        }
        let envelopes = ordered(self.verified(envelopes).await?);
        let envelopes: Arc<[Envelope]> = self.authorized(caller, envelopes).await?.into();
        let mut save = self.store.save(envelopes.clone());
        if let Some(policies) = self.policies.clone() {
            let (store, bus) = (self.store.clone(), self.bus.clone());
            save = save.map(move |saved| {
                if let SaveOutcome::Stored { new } = &saved {
                    purge_after(policies, store, bus, &envelopes, new);
                }
                saved
            });
        }
        match save.commit(&self.bus).await? {
            SaveOutcome::Missing { predecessor } => Err(Error::Invalid(format!(
                "The fact {predecessor} is named as a predecessor, but it was not found in storage \
                 and was not included in the request. Send the full closure of predecessors \
                 together, or commit the predecessors first."
            ))),
            SaveOutcome::Stored { .. } => Ok(()),
        }
    }

    async fn verified(&self, envelopes: Vec<Envelope>) -> Result<Vec<Envelope>, Error> {
        if envelopes
            .iter()
            .all(|envelope| envelope.signatures.is_empty())
        {
            return Ok(envelopes);
        }
        let verifier = self.verifier.clone();
        // Thousands of signatures take a processor for a while.
        let checked = spawn_blocking(move || verifier.verify(&envelopes).map(|()| envelopes));
        match checked.await {
            Ok(Ok(envelopes)) => Ok(envelopes),
            Ok(Err(invalid)) => Err(match invalid.flaw {
                SignatureFlaw::Key(_) => Error::Invalid(invalid.to_string()),
                _ => Error::Forbidden(format!("{BAD_SIGNATURES} {invalid}")),
            }),
            Err(_) => Err(wakeline_store::Error::Failed("signatures: a panic".to_owned()).into()),
        }
    }

    /// Signs a fact for the caller where a rule accepts it because of the caller's key.
    async fn authorized(
        &self,
        caller: &Caller,
        mut envelopes: Vec<Envelope>,
    ) -> Result<Vec<Envelope>, Error> {
        let Some(policies) = &self.policies else {
            return Ok(envelopes);
        };
        let user = self.user(caller).await?;
        let key = user.as_ref().map(|user| &*user.key.public);
        let verdicts = policies
            .authorization
            .authorize(&*self.store, &envelopes, key)
            .await?
            .map_err(|refused| match refused {
                Rejection::Facts { .. } => Error::Forbidden(refused.to_string()),
                Rejection::Missing(_) => Error::Invalid(refused.to_string()),
            })?;
        let Some(user) = user else {
            return Ok(envelopes);
        };
        let signing = spawn_blocking(move || {
            for (envelope, verdict) in envelopes.iter_mut().zip(verdicts) {
                let is_signed = || {
                    let mut signatures = envelope.signatures.iter();
                    signatures.any(|signature| signature.key == user.key.public)
                };
                if matches!(verdict, Verdict::Accepted { for_caller: true }) && !is_signed() {
                    let signature = user.signer.sign(&envelope.fact)?;
                    envelope.signatures.push(signature);
                }
            }
            Ok::<_, ring::error::Unspecified>(envelopes)
        });
        match signing.await {
            Ok(Ok(envelopes)) => Ok(envelopes),
            _ => Err(wakeline_store::Error::Failed("a fact cannot be signed".to_owned()).into()),
        }
    }
}

/// In a task of its own: a purge may wait for an hour, so neither the caller nor the end of the
/// process waits for it.
fn purge_after(
    policies: Arc<Policies>,
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    envelopes: &[Envelope],
    new: &[(usize, Seq)],
) {
    if new.is_empty() {
        return;
    }
    let facts: Vec<(Reference, Seq)> = new
        .iter()
        .map(|(index, seq)| (envelopes[*index].fact.reference.clone(), *seq))
        .collect();
    tokio::spawn(async move {
        if let Err(error) = policies.purge.saved(&*store, &bus, &facts).await {
            tracing::warn!(%error, "what is obsolete was not purged; it is at the next start");
        }
    });
}

/// Each fact once, with all its signatures, and its predecessors before it. A fact that names
/// itself in a circle cannot be: its hash would have to be known before it is made.
fn ordered(envelopes: Vec<Envelope>) -> Vec<Envelope> {
    let mut places: HashMap<Reference, usize> = HashMap::with_capacity(envelopes.len());
    let mut once: Vec<Envelope> = Vec::with_capacity(envelopes.len());
    let mut is_ordered = true;
    for envelope in envelopes {
        if let Some(place) = places.get(&envelope.fact.reference) {
            let known = &mut once[*place].signatures;
            for signature in envelope.signatures {
                if !known.contains(&signature) {
                    known.push(signature);
                }
            }
            continue;
        }
        places.insert(envelope.fact.reference.clone(), once.len());
        once.push(envelope);
    }
    for (place, envelope) in once.iter().enumerate() {
        let after = |reference: &Reference| places.get(reference).is_some_and(|at| *at > place);
        is_ordered &= !envelope
            .fact
            .references()
            .any(|(_, reference)| after(reference));
    }
    if is_ordered {
        return once;
    }
    let mut slots: Vec<Option<Envelope>> = once.into_iter().map(Some).collect();
    let mut sorted = Vec::with_capacity(slots.len());
    let mut is_begun = vec![false; slots.len()];
    for first in 0..slots.len() {
        // A stack of its own: chains are as deep as they are long.
        let mut open = vec![first];
        while let Some(&place) = open.last() {
            if slots[place].is_none() {
                open.pop();
                continue;
            }
            if std::mem::replace(&mut is_begun[place], true) {
                open.pop();
                sorted.extend(slots[place].take());
                continue;
            }
            if let Some(envelope) = &slots[place] {
                let before = envelope.fact.references().filter_map(|(_, reference)| {
                    places.get(reference).filter(|at| !is_begun[**at])
                });
                let before: Vec<usize> = before.copied().collect();
                open.extend(before);
            }
        }
    }
    sorted
}
