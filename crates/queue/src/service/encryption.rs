//! The key that messages are sealed with: the store's, which every server has to have.

use std::sync::Arc;

use wakeline_web::Problem;

use super::Queue;
use crate::{
    error::Error,
    seal::{Fingerprint, KeyFile, OtherKey, QueueSealer, Sealer},
};

impl Queue {
    /// Where a key is made if a queue asks for encryption and the server has none. Without it such a
    /// queue is refused.
    pub fn set_key_file(&self, file: KeyFile) {
        let _ = self.key_file.set(file);
    }

    /// Makes the first of the server's keys the store's, if the store has another one of them. Fails if
    /// the store's messages are sealed with a key that the server does not have.
    pub async fn check_key(&self) -> Result<(), Error> {
        let store = self.use_key(false).await?;
        self.check_store(store)
    }

    /// The server can seal messages from here on. Returns the key if it had to be made.
    pub(super) async fn ensure_key(&self) -> Result<Option<Fingerprint>, Error> {
        let _alone = self.making_key.lock().await;
        let made = match self.sealer.get() {
            Some(_) => None,
            None => Some(self.make_key().await?),
        };
        let store = self.use_key(true).await?;
        self.check_store(store)?;
        Ok(made)
    }

    /// Never beside messages that are sealed already: theirs is the only key that opens them.
    async fn make_key(&self) -> Result<Fingerprint, Error> {
        let store = self.use_key(false).await?;
        self.check_store(store)?;
        let Some(file) = self.key_file.get().cloned() else {
            return Err(Problem::invalid(
                "options.encryptionEnabled",
                "the server has no key: set queue.encryption_key to 64 hexadecimal digits, the same on \
                 all nodes (`openssl rand -hex 32` makes one)",
            )
            .into());
        };
        let path = file.path().to_owned();
        let making = tokio::task::spawn_blocking(move || file.make());
        let sealer = making.await.map_err(std::io::Error::other);
        let sealer = sealer.flatten().map_err(Error::KeyFile)?;
        let made = sealer.fingerprints()[0];
        tracing::warn!(
            path = %path.display(),
            fingerprint = %made,
            "made the key for encrypted queues; back it up apart from the database: without it their \
             messages cannot be read"
        );
        let _ = self.sealer.set(Arc::new(QueueSealer::new(sealer)));
        Ok(made)
    }

    async fn use_key(&self, may_be_first: bool) -> Result<Option<Fingerprint>, Error> {
        let using = self.store.use_key(self.keys(), may_be_first);
        Ok(using.commit(&self.bus).await?)
    }

    fn check_store(&self, store: Option<Fingerprint>) -> Result<(), Error> {
        let server = self.keys();
        match store {
            Some(store) if !server.contains(&store) => Err(OtherKey { store, server }.into()),
            _ => Ok(()),
        }
    }

    fn keys(&self) -> Vec<Fingerprint> {
        let sealer = self.sealer.get().map(|sealer| sealer.key());
        sealer.map_or_else(Vec::new, |sealer: &Sealer| sealer.fingerprints().to_vec())
    }
}
