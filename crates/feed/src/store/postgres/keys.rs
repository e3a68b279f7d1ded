//! Users' keys on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::Write;

use super::{PostgresStore, only};
use crate::store::{KeyPair, Keys, Principal, StoreFuture, silent};

impl Keys for PostgresStore {
    fn key(&self, of: Principal) -> StoreFuture<'_, Option<KeyPair>> {
        async move {
            let statement = "SELECT public_key, private_key FROM wakeline.feed_user_key
                WHERE provider = $1 AND user_id = $2";
            let rows = self
                .ask(
                    "feed_key",
                    statement,
                    &[(&of.provider, Type::TEXT), (&of.id, Type::TEXT)],
                )
                .await?;
            Ok(rows.first().map(pair))
        }
        .boxed()
    }

    fn store_key(&self, of: Principal, key: KeyPair) -> Write<KeyPair> {
        let store = self.clone();
        silent(async move {
            let rows = store
                .ask(
                    "feed_store_key",
                    "SELECT public_key, private_key FROM wakeline.feed_store_key($1, $2, $3, $4)",
                    &[
                        (&of.provider, Type::TEXT),
                        (&of.id, Type::TEXT),
                        (&&*key.public, Type::TEXT),
                        (&&*key.private, Type::TEXT),
                    ],
                )
                .await?;
            only(&rows).map(pair)
        })
    }
}

fn pair(row: &Row) -> KeyPair {
    KeyPair {
        public: row.get::<_, &str>("public_key").into(),
        private: row.get::<_, &str>("private_key").into(),
    }
}
