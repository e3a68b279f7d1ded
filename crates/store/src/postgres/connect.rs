//! Makes connections: the URL, TLS when the server or the URL asks for it, the settings.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Notification, Socket, config::SslMode, tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Options, advice, chain};
use crate::{error::Error, migrate::OpenError};

type Connection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Makes connections to one database.
#[derive(Clone)]
pub struct Connector {
    config: Arc<Config>,
    tls: MakeRustlsConnect,
    connect_timeout: Duration,
    statement_timeout: Duration,
    is_for_batches: bool,
}

/// Notifications that can wait to be read: 64 MB, as PostgreSQL refuses one of 8,000 bytes.
pub const MAX_NOTIFICATIONS: usize = 8_192;

/// A connection that also receives notifications. The receiver ends with the connection. With more
/// than [`MAX_NOTIFICATIONS`] unread the connection is cut: the listener must connect again and
/// recheck for what it has missed.
#[derive(Debug)]
pub struct ListenConnection {
    pub client: Client,
    pub notifications: mpsc::Receiver<Notification>,
}

/// Why no connection was made.
enum DialError {
    Tls(tokio_postgres::Error),
    Driver(tokio_postgres::Error),
    Silence,
}

const SILENCE: &str = "no answer within the connect timeout";

impl DialError {
    /// The driver hides the kind of an error; this is its text.
    fn of_driver(error: tokio_postgres::Error) -> Self {
        let text = error.to_string();
        if text.starts_with("error performing TLS handshake") {
            Self::Tls(error)
        } else {
            Self::Driver(error)
        }
    }

    fn into_error(self) -> Error {
        match self {
            Self::Tls(error) | Self::Driver(error) => Error::Unavailable(chain(&error)),
            Self::Silence => Error::Unavailable(SILENCE.into()),
        }
    }

    fn into_open_error(self, config: &Config) -> OpenError {
        OpenError::Open(match self {
            Self::Tls(error) | Self::Driver(error) => advice::on_connect(&error, config),
            Self::Silence => advice::on_silence(SILENCE, config),
        })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration holds the password.
        out.debug_struct("Connector")
            .field("hosts", &self.config.get_hosts())
            .finish()
    }
}

impl Connector {
    /// For connections that run batches only: always the same look-ups, in functions.
    #[must_use]
    pub(super) fn for_batches(&self) -> Self {
        Self {
            is_for_batches: true,
            ..self.clone()
        }
    }

    pub fn new(url: &str, options: &Options) -> Result<Self, OpenError> {
        let mut config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| OpenError::Open(chain(&error)))?;
        config.connect_timeout(options.connect_timeout);
        if config.get_application_name().is_none() {
            config.application_name("wakeline");
        }
        config.keepalives_idle(Duration::from_secs(30));
        Ok(Self {
            config: Arc::new(config),
            tls: MakeRustlsConnect::new(tls_config()),
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            is_for_batches: false,
        })
    }

    /// A connection; a task of its own runs it.
    pub async fn connect(&self) -> Result<Client, Error> {
        let dialed = self.dial().await.map_err(DialError::into_error)?;
        self.run(dialed).await
    }

    /// The first connection of a process: its error says what to do.
    pub(super) async fn connect_first(&self) -> Result<Client, OpenError> {
        let dialed = self.dial().await;
        let dialed = dialed.map_err(|error| error.into_open_error(&self.config))?;
        let running = self.run(dialed).await;
        running.map_err(|error| OpenError::Open(error.to_string()))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    async fn run(&self, (client, connection): (Client, Connection)) -> Result<Client, Error> {
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = chain(&error), "a PostgreSQL connection ended");
            }
        });
        self.prepare(&client).await?;
        Ok(client)
    }

    /// A connection for `LISTEN`.
    pub async fn listen(&self) -> Result<ListenConnection, Error> {
        let (client, mut connection) = self.dial().await.map_err(DialError::into_error)?;
        let (send, notifications) = mpsc::channel(MAX_NOTIFICATIONS);
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                let AsyncMessage::Notification(notification) = message else {
                    continue;
                };
                match send.try_send(notification) {
                    Ok(()) => {}
                    Err(TrySendError::Closed(_)) => return,
                    Err(TrySendError::Full(_)) => {
                        tracing::warn!(
                            MAX_NOTIFICATIONS,
                            "too many notifications wait to be read; the connection is cut"
                        );
                        return;
                    }
                }
            }
        });
        self.prepare(&client).await?;
        Ok(ListenConnection {
            client,
            notifications,
        })
    }

    /// With `sslmode=prefer`, the default, TLS is used if the server's certificate can be verified, and
    /// a server with a self-signed one (Debian's default) is connected to without TLS.
    /// `sslmode=require` insists on TLS.
    async fn dial(&self) -> Result<(Client, Connection), DialError> {
        let dialed = self.dial_with(&self.config).await;
        let reason = match &dialed {
            Err(DialError::Tls(error)) if self.config.get_ssl_mode() == SslMode::Prefer => error,
            _ => return dialed,
        };
        tracing::debug!(
            reason = chain(reason),
            "TLS to PostgreSQL failed; sslmode=prefer goes on without"
        );
        let mut plain = (*self.config).clone();
        plain.ssl_mode(SslMode::Disable);
        self.dial_with(&plain).await
    }

    async fn dial_with(&self, config: &Config) -> Result<(Client, Connection), DialError> {
        timeout(self.connect_timeout, config.connect(self.tls.clone()))
            .await
            .map_err(|_| DialError::Silence)?
            .map_err(DialError::of_driver)
    }

    /// By a statement and not by start-up options, because a pooler refuses options that it does not
    /// know.
    async fn prepare(&self, client: &Client) -> Result<(), Error> {
        let milliseconds = self.statement_timeout.as_millis().to_string();
        let mut settings = vec![
            ("statement_timeout", &*milliseconds),
            ("synchronous_commit", "on"),
            // Compiling a statement takes longer than running any of ours.
            ("jit", "off"),
        ];
        if self.is_for_batches {
            // To plan for the arrays of every batch would take longer than to run it. The one plan is
            // made when tables are small and must still fit when they are large.
            settings.push(("plan_cache_mode", "force_generic_plan"));
            settings.push(("enable_seqscan", "off"));
        }
        // In one statement.
        let settings: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("set_config('{name}', '{value}', false)"))
            .collect();
        let settings = format!("SELECT {}", settings.join(", "));
        // A pooler accepts at once, and its first statement waits for a server that is away.
        timeout(self.connect_timeout, client.batch_execute(&settings))
            .await
            .map_err(|_| Error::Unavailable(SILENCE.into()))?
            .map_err(|error| Error::Unavailable(chain(&error)))
    }
}

/// TLS with the machine's root certificates. The URL's `sslmode` decides whether it is used.
fn tls_config() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
