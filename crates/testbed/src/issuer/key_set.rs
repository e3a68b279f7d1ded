//! The key set, published at a loopback port for as long as it lives.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};

use super::SigningKey;

/// Until a caller that says nothing is given up.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_REQUEST: usize = 16 * 1024;

#[derive(Debug)]
pub struct KeySet {
    address: SocketAddr,
    shared: Arc<KeySetState>,
    accepting: Option<JoinHandle<()>>,
    /// In PEM; of a set over HTTPS.
    certificate: Option<String>,
}

#[derive(Debug)]
struct KeySetState {
    /// Status and body.
    answer: Mutex<(u16, String)>,
    fetched: AtomicUsize,
    is_over: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

impl KeySet {
    pub fn http(keys: &[&SigningKey]) -> Result<Self> {
        Self::start(keys, None, None)
    }

    /// With a certificate of its own; see [`Self::certificate`].
    pub fn https(keys: &[&SigningKey]) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))?;
        Self::start(keys, Some(Arc::new(config)), Some(made.cert.pem()))
    }

    fn start(
        keys: &[&SigningKey],
        tls: Option<Arc<ServerConfig>>,
        certificate: Option<String>,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(KeySetState {
            answer: Mutex::new((200, body(keys))),
            fetched: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            tls,
        });
        let accepting = thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
            certificate,
        })
    }

    #[must_use]
    pub fn url(&self) -> String {
        match self.certificate {
            None => format!("http://{}/jwks.json", self.address),
            Some(_) => format!("https://localhost:{}/jwks.json", self.address.port()),
        }
    }

    /// The only certificate that a caller should trust, in PEM.
    #[must_use]
    pub fn certificate(&self) -> &str {
        self.certificate.as_deref().expect("a set over HTTPS")
    }

    /// Answers with these from now on.
    pub fn publish(&self, keys: &[&SigningKey]) {
        self.answer(200, body(keys));
    }

    /// Answers with whatever this is from now on.
    pub fn answer(&self, status: u16, body: String) {
        let mut answer = self.shared.answer.lock();
        *answer.as_deref_mut().expect("nobody panicked") = (status, body);
    }

    /// How often it has been asked.
    #[must_use]
    pub fn fetched(&self) -> usize {
        self.shared.fetched.load(Ordering::SeqCst)
    }
}

impl Drop for KeySet {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Out of its wait.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn body(keys: &[&SigningKey]) -> String {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

fn accept(listener: &TcpListener, shared: &Arc<KeySetState>) {
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = shared.clone();
        // A failure here shows at the caller.
        thread::spawn(move || serve(stream, &shared));
    }
}

fn serve(stream: TcpStream, shared: &KeySetState) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match &shared.tls {
        None => answer(stream, shared),
        Some(config) => {
            let connection = ServerConnection::new(config.clone())?;
            answer(StreamOwned::new(connection, stream), shared)
        }
    }
}

fn answer(mut stream: impl Read + Write, shared: &KeySetState) -> Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        let length = stream.read(&mut buffer).context("reading a request")?;
        ensure!(length > 0 && request.len() < MAX_REQUEST, "no request");
        request.extend_from_slice(&buffer[..length]);
    }
    shared.fetched.fetch_add(1, Ordering::SeqCst);
    let (status, body) = {
        let answer = shared.answer.lock();
        answer.unwrap_or_else(PoisonError::into_inner).clone()
    };
    write!(
        stream,
        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()?;
    Ok(())
}
