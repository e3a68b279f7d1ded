//! A proxy in front of PostgreSQL that records statements, pauses or loses answers, and cuts
//! connections.
//!
//! To a provider another address is another database. So a provider that connects through the proxy
//! shares nothing with one that does not but the database, as if it were in another process.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// The length and the content of a request for TLS.
const TLS_REQUEST: (usize, [u8; 4]) = (8, 80_877_103_u32.to_be_bytes());
/// The end of an answer outside of a transaction: `ReadyForQuery`.
const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];

/// The part of a statement that the proxy loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server does not get the statement.
    Request,
    /// The server has carried out the statement.
    Answer,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    statements: Mutex<Vec<String>>,
    /// Statements and the bytes of their parameters.
    sizes: Mutex<Vec<(String, usize)>>,
    answered_bytes: AtomicU64,
    /// For the next so many statements that contain the text.
    losses: Mutex<Option<(&'static str, Loss, u32)>>,
    is_paused: Mutex<bool>,
    resumed: Condvar,
    lines: Mutex<Vec<TcpStream>>,
    /// By connection: how many requests have not been answered.
    unanswered: Mutex<HashMap<u64, i64>>,
    opened: AtomicU64,
}

#[derive(Debug, Default)]
struct Connection {
    number: u64,
    loses_answer: AtomicBool,
    /// The next answer is a single byte, as to a request for TLS.
    asks_for_tls: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// A proxy of the server at `port`.
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let own_port = listener.local_addr().expect("an address").port();
        let state = Arc::new(ProxyState::default());
        let serving = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Without a server the client's connection ends.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                serving.clone().carry(client, server);
            }
        });
        Self {
            port: own_port,
            state,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many statements that contain `text` were sent until now.
    pub(crate) fn count(&self, text: &str) -> usize {
        let statements = lock(&self.state.statements);
        statements.iter().filter(|said| said.contains(text)).count()
    }

    /// The bytes of the parameters of each statement that contains `text`. A statement that several
    /// callers share has more.
    pub(crate) fn sizes(&self, text: &str) -> Vec<usize> {
        let sizes = lock(&self.state.sizes);
        let sizes = sizes.iter().filter(|(said, _)| said.contains(text));
        sizes.map(|(_, size)| *size).collect()
    }

    pub(crate) fn statements(&self) -> Vec<String> {
        lock(&self.state.statements).clone()
    }

    /// Whether every request has been answered.
    pub(crate) fn is_idle(&self) -> bool {
        let unanswered = lock(&self.state.unanswered);
        unanswered.values().all(|count| *count <= 0)
    }

    /// The bytes of all answers until now.
    pub(crate) fn answered_bytes(&self) -> u64 {
        self.state.answered_bytes.load(Ordering::SeqCst)
    }

    /// Loses the request or the answer of the next `times` statements that contain `text`, and cuts
    /// their connections.
    pub(crate) fn lose(&self, text: &'static str, what: Loss, times: u32) {
        *lock(&self.state.losses) = Some((text, what, times));
    }

    /// Whether everything that was to be lost is lost.
    pub(crate) fn has_lost(&self) -> bool {
        lock(&self.state.losses).is_none()
    }

    /// Keeps answers back until [`Self::resume_answers`].
    pub(crate) fn pause_answers(&self) {
        *lock(&self.state.is_paused) = true;
    }

    pub(crate) fn resume_answers(&self) {
        *lock(&self.state.is_paused) = false;
        self.state.resumed.notify_all();
    }

    /// Cuts every connection.
    pub(crate) fn cut(&self) {
        for line in lock(&self.state.lines).drain(..) {
            // It may have ended by itself.
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

impl ProxyState {
    fn carry(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let both = || {
            Some((
                client.try_clone().ok()?,
                server.try_clone().ok()?,
                client.try_clone().ok()?,
            ))
        };
        let Some((reader, writer, line)) = both() else {
            return;
        };
        lock(&self.lines).push(line);
        let connection = Arc::new(Connection {
            number: self.opened.fetch_add(1, Ordering::SeqCst),
            ..Connection::default()
        });
        lock(&self.unanswered).insert(connection.number, 0);
        let (asking, of_asking) = (self.clone(), connection.clone());
        thread::spawn(move || {
            let (mut client, mut server) = (reader, writer);
            asking.carry_requests(&mut client, &mut server, &of_asking);
            // Whichever end has closed it, the other is closed too.
            let _ = server.shutdown(Shutdown::Both);
            let _ = client.shutdown(Shutdown::Both);
        });
        thread::spawn(move || {
            let (mut client, mut server) = (client, server);
            self.carry_answers(&mut server, &mut client, &connection);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
            lock(&self.unanswered).remove(&connection.number);
        });
    }

    /// Counts a request or an answer.
    fn count(&self, connection: &Connection, change: i64) {
        if let Some(count) = lock(&self.unanswered).get_mut(&connection.number) {
            *count += change;
        }
    }

    fn carry_requests(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
        connection: &Connection,
    ) -> Option<()> {
        // The first messages of a connection have no kind.
        loop {
            let message = read_message(client, &[])?;
            let is_tls = message.len() == TLS_REQUEST.0 && message[4..] == TLS_REQUEST.1;
            connection.asks_for_tls.store(is_tls, Ordering::SeqCst);
            if !is_tls {
                self.count(connection, 1);
            }
            server.write_all(&message).ok()?;
            if !is_tls {
                break;
            }
        }
        let mut last = String::new();
        loop {
            let mut kind = [0];
            client.read_exact(&mut kind).ok()?;
            let message = read_message(client, &kind)?;
            if let Some(statement) = statement(&message) {
                match self.loss(&statement) {
                    Some(Loss::Request) => return None,
                    Some(Loss::Answer) => connection.loses_answer.store(true, Ordering::SeqCst),
                    None => {}
                }
                last.clone_from(&statement);
                lock(&self.statements).push(statement);
            }
            if kind == *b"B" {
                lock(&self.sizes).push((last.clone(), message.len()));
            }
            // Each of these is answered by `ReadyForQuery`.
            if matches!(kind[0], b'Q' | b'S') {
                self.count(connection, 1);
            }
            server.write_all(&message).ok()?;
        }
    }

    fn loss(&self, statement: &str) -> Option<Loss> {
        let mut losses = lock(&self.losses);
        let (text, what, times) = (*losses)?;
        if !statement.contains(text) {
            return None;
        }
        *losses = (times > 1).then_some((text, what, times - 1));
        Some(what)
    }

    fn carry_answers(
        &self,
        server: &mut TcpStream,
        client: &mut TcpStream,
        connection: &Connection,
    ) -> Option<()> {
        let mut messages = Messages::default();
        let mut buffer = [0; 16 * 1024];
        let mut end: Vec<u8> = Vec::new();
        loop {
            let length = server.read(&mut buffer).ok().filter(|length| *length > 0)?;
            let said = &buffer[..length];
            let mut is_paused = lock(&self.is_paused);
            while *is_paused {
                is_paused = self
                    .resumed
                    .wait(is_paused)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(is_paused);
            if connection.loses_answer.load(Ordering::SeqCst) {
                end.extend_from_slice(said);
                if end.ends_with(&READY) {
                    return None;
                }
                continue;
            }
            self.answered_bytes
                .fetch_add(length as u64, Ordering::SeqCst);
            // Before the client can send more.
            let is_tls = connection.asks_for_tls.swap(false, Ordering::SeqCst);
            let answers = messages.answers(if is_tls { &said[1..] } else { said });
            self.count(connection, -answers);
            client.write_all(said).ok()?;
        }
    }
}

/// Separates the server's messages.
#[derive(Debug, Default)]
struct Messages {
    head: Vec<u8>,
    /// Missing bytes of the last message.
    rest: usize,
}

impl Messages {
    /// How many answers end in `said`.
    fn answers(&mut self, said: &[u8]) -> i64 {
        let mut answers = 0;
        for byte in said {
            if self.rest > 0 {
                self.rest -= 1;
                continue;
            }
            self.head.push(*byte);
            if let [kind, length @ ..] = &self.head[..]
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                answers += i64::from(*kind == b'Z');
                self.rest = usize::try_from(u32::from_be_bytes(length)).map_or(0, |all| all - 4);
                self.head.clear();
            }
        }
        answers
    }
}

/// Reads a message; its kind and its length come first.
fn read_message(from: &mut TcpStream, kind: &[u8]) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut message = [kind, &length].concat();
    let known = message.len();
    let rest = usize::try_from(u32::from_be_bytes(length)).ok()? - length.len();
    message.resize(known + rest, 0);
    from.read_exact(&mut message[known..]).ok()?;
    Some(message)
}

/// The statement of a message that has one.
fn statement(message: &[u8]) -> Option<String> {
    let mut texts = message.get(5..)?.split(|byte| *byte == 0);
    let statement = match message[0] {
        b'Q' => texts.next()?,
        // After its name.
        b'P' => texts.nth(1)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(statement).into_owned())
}
