//! A line to PostgreSQL that is listened in on, held up and cut.
//!
//! It tells exactly what is asked of the database and loses answers to order. To a provider another
//! address is another database: one that goes through here shares nothing but the database with one
//! that does not, as if it were of another process.

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

/// The length of a request for TLS, and what it says.
const TLS_REQUEST: (usize, [u8; 4]) = (8, 80_877_103_u32.to_be_bytes());
/// How an answer ends when nothing is left of its transaction.
const READY: [u8; 6] = [b'Z', 0, 0, 0, 5, b'I'];

/// What is lost of the statements that contain a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lose {
    /// The server never hears of it.
    Request,
    /// The server has carried it out.
    Answer,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    statements: Mutex<Vec<String>>,
    /// Statements and how many bytes of parameters they have.
    sizes: Mutex<Vec<(String, usize)>>,
    answered_bytes: AtomicU64,
    /// The next so many statements with this text lose something.
    losses: Mutex<Option<(&'static str, Lose, u32)>>,
    is_held_up: Mutex<bool>,
    goes_on: Condvar,
    lines: Mutex<Vec<TcpStream>>,
    /// By line: what was asked and has not been answered.
    unanswered: Mutex<HashMap<u64, i64>>,
    opened: AtomicU64,
}

/// One connection.
#[derive(Debug, Default)]
struct Carried {
    number: u64,
    loses_answer: AtomicBool,
    /// The answer to a request for TLS is a single byte.
    asks_for_tls: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// In front of the server at `port`.
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let own_port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is away: the client sees its connection end.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                serving.clone().carry(client, server);
            }
        });
        Self {
            port: own_port,
            shared,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many statements with `text` in them were asked until now.
    pub(crate) fn count(&self, text: &str) -> usize {
        let statements = lock(&self.shared.statements);
        statements.iter().filter(|said| said.contains(text)).count()
    }

    /// How many bytes of parameters the statements with `text` in them had. Many callers may share
    /// a statement: then it has more.
    pub(crate) fn sizes(&self, text: &str) -> Vec<usize> {
        let sizes = lock(&self.shared.sizes);
        let sizes = sizes.iter().filter(|(said, _)| said.contains(text));
        sizes.map(|(_, size)| *size).collect()
    }

    pub(crate) fn statements(&self) -> Vec<String> {
        lock(&self.shared.statements).clone()
    }

    /// Whether everything that was asked has been answered.
    pub(crate) fn is_quiet(&self) -> bool {
        let unanswered = lock(&self.shared.unanswered);
        unanswered.values().all(|count| *count <= 0)
    }

    /// What the server has said until now.
    pub(crate) fn answered_bytes(&self) -> u64 {
        self.shared.answered_bytes.load(Ordering::SeqCst)
    }

    /// Loses the request or the answer of the next `times` statements with `text` in them, and cuts
    /// their lines.
    pub(crate) fn lose(&self, text: &'static str, what: Lose, times: u32) {
        *lock(&self.shared.losses) = Some((text, what, times));
    }

    /// Whether all that was to be lost has been.
    pub(crate) fn has_lost(&self) -> bool {
        lock(&self.shared.losses).is_none()
    }

    /// Answers wait until [`Self::go_on`].
    pub(crate) fn hold_up(&self) {
        *lock(&self.shared.is_held_up) = true;
    }

    pub(crate) fn go_on(&self) {
        *lock(&self.shared.is_held_up) = false;
        self.shared.goes_on.notify_all();
    }

    /// Cuts every line.
    pub(crate) fn cut(&self) {
        for line in lock(&self.shared.lines).drain(..) {
            // It may have ended by itself.
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
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
        let carried = Arc::new(Carried {
            number: self.opened.fetch_add(1, Ordering::SeqCst),
            ..Carried::default()
        });
        lock(&self.unanswered).insert(carried.number, 0);
        let (asking, of_asking) = (self.clone(), carried.clone());
        thread::spawn(move || {
            let (mut client, mut server) = (reader, writer);
            asking.carry_requests(&mut client, &mut server, &of_asking);
            // What ended it does not matter: both ends are told.
            let _ = server.shutdown(Shutdown::Both);
            let _ = client.shutdown(Shutdown::Both);
        });
        thread::spawn(move || {
            let (mut client, mut server) = (client, server);
            self.carry_answers(&mut server, &mut client, &carried);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
            lock(&self.unanswered).remove(&carried.number);
        });
    }

    /// One more question or one more answer.
    fn count(&self, carried: &Carried, change: i64) {
        if let Some(count) = lock(&self.unanswered).get_mut(&carried.number) {
            *count += change;
        }
    }

    fn carry_requests(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
        carried: &Carried,
    ) -> Option<()> {
        // Before a connection has begun its messages have no kind.
        loop {
            let message = read_message(client, &[])?;
            let is_tls = message.len() == TLS_REQUEST.0 && message[4..] == TLS_REQUEST.1;
            carried.asks_for_tls.store(is_tls, Ordering::SeqCst);
            if !is_tls {
                self.count(carried, 1);
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
                    Some(Lose::Request) => return None,
                    Some(Lose::Answer) => carried.loses_answer.store(true, Ordering::SeqCst),
                    None => {}
                }
                last.clone_from(&statement);
                lock(&self.statements).push(statement);
            }
            if kind == *b"B" {
                lock(&self.sizes).push((last.clone(), message.len()));
            }
            // Each of them is answered by the end of a transaction.
            if matches!(kind[0], b'Q' | b'S') {
                self.count(carried, 1);
            }
            server.write_all(&message).ok()?;
        }
    }

    fn loss(&self, statement: &str) -> Option<Lose> {
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
        carried: &Carried,
    ) -> Option<()> {
        let mut messages = Messages::default();
        let mut buffer = [0; 16 * 1024];
        let mut end: Vec<u8> = Vec::new();
        loop {
            let length = server.read(&mut buffer).ok().filter(|length| *length > 0)?;
            let said = &buffer[..length];
            let mut is_held_up = lock(&self.is_held_up);
            while *is_held_up {
                is_held_up = self
                    .goes_on
                    .wait(is_held_up)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(is_held_up);
            if carried.loses_answer.load(Ordering::SeqCst) {
                end.extend_from_slice(said);
                if end.ends_with(&READY) {
                    return None;
                }
                continue;
            }
            self.answered_bytes
                .fetch_add(length as u64, Ordering::SeqCst);
            // Before the client can say more.
            let is_tls = carried.asks_for_tls.swap(false, Ordering::SeqCst);
            let answers = messages.answers(if is_tls { &said[1..] } else { said });
            self.count(carried, -answers);
            client.write_all(said).ok()?;
        }
    }
}

/// The server's messages, told apart.
#[derive(Debug, Default)]
struct Messages {
    head: Vec<u8>,
    /// Bytes of the last one that are still to come.
    rest: usize,
}

impl Messages {
    /// How many answers ended in `said`.
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

/// A message with its kind and its length in front.
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

/// The statement in a message that has one.
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
