//! A running server binary: it is started, called, signalled and killed at the end. Its log is
//! shown when the test fails.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use http::Request;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    metrics::Metrics,
    wire::{Answer, Line, get, post},
};

/// How long a test waits for what must come: two cores may be compiling beside it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// Waits until `look` returns something, and fails with `what` if it never does.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match timeout(PATIENCE, looking).await {
        Ok(found) => found,
        Err(_) => panic!("waited in vain: {what}"),
    }
}

/// The binary, with nothing of this process' environment but the path.
pub(crate) fn wakeline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeline"));
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

/// `wakeline serve` with its flags, not started yet.
pub(crate) struct Serve {
    command: Command,
}

impl Serve {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let mut command = wakeline(&["serve"]);
        command.args(flags);
        Self { command }
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.command.args(flags);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// After this command of the shell, such as `ulimit -n 200`.
    pub(crate) fn limited_by(self, limit: &str) -> Self {
        let script = format!("{limit}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .arg(self.command.get_program())
            .args(self.command.get_args())
            .env_clear()
            .envs(
                self.command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null());
        Self { command }
    }

    /// Returns when the server listens.
    pub(crate) async fn start(self) -> Server {
        let mut server = self.launch();
        server.until_listening().await;
        server
    }

    /// For a start that must fail: returns its log, and fails if the process succeeded.
    pub(crate) async fn refused(self) -> String {
        let mut server = self.launch();
        let status = server.exit().await;
        assert!(!status.success(), "it should not have ended well");
        assert_eq!(server.output(), "", "a refusal is no announcement");
        server.log()
    }

    fn launch(mut self) -> Server {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str| File::create(dir.path().join(name)).expect("a file");
        let child = self
            .command
            .stdout(file("out"))
            .stderr(file("log"))
            .spawn()
            .expect("the binary starts");
        Server {
            child,
            dir,
            address: None,
        }
    }
}

pub(crate) struct Server {
    child: Child,
    dir: TempDir,
    address: Option<SocketAddr>,
}

impl Server {
    async fn until_listening(&mut self) {
        let found = until("the start-up message", async || {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                panic!("it ended at start ({status})\n{}", self.log());
            }
            let text = self.output();
            let (_, rest) = text.split_once("listening on  http://")?;
            let (address, _) = rest.split_once('\n')?;
            Some(address.parse().expect("an address"))
        })
        .await;
        self.address = Some(found);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it listens")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The server's standard output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).expect("the output")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).expect("the log")
    }

    /// Every call on a connection of its own, so that no test depends on another's.
    pub(crate) async fn call(&self, request: Request<bytes::Bytes>) -> Answer {
        let mut line = Line::http1(self.address()).await;
        line.call(request).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(get(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(post(path, body.to_string())).await
    }

    /// Pushes, and fails if the push is not acknowledged.
    pub(crate) async fn push(&self, queue: &str, payload: Value) -> Answer {
        let items = json!({"items": [{"queue": queue, "payload": payload}]});
        let answer = self.post("/api/v1/push", &items).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer
    }

    /// A request under way on a connection of its own. Aborting it hangs up.
    pub(crate) fn hold(&self, path: &str) -> JoinHandle<Answer> {
        let (address, request) = (self.address(), get(path));
        tokio::spawn(async move {
            let mut line = Line::http1(address).await;
            line.call(request).await.expect("a held answer")
        })
    }

    /// Until exactly `count` requests are waiting.
    pub(crate) async fn until_waiting(&self, total: u64) {
        until(&format!("{total} waiting"), async || {
            let waits = self.get("/v1/waits?limit=1").await.json();
            (waits["total"] == total).then_some(())
        })
        .await;
    }

    /// Until the server has checked its store for messages `times` times since its start. A request
    /// is among the waiting before its first check, so that it cannot miss a wake; a test that
    /// needs it parked waits for this too.
    pub(crate) async fn until_store_checks(&self, times: u32) {
        until(&format!("{times} checks of the store"), async || {
            let metrics = Metrics::parse(&self.get("/metrics").await.text());
            // PostgreSQL counts the checks of a batch when it has ended. On SQLite each check is a
            // statement, counted when it begins; a later write waits for its end.
            let looks = metrics
                .value("wakeline_batch_size_sum", &[("kind", "pop")])
                .or_else(|| {
                    let pop = [("store", "sqlite"), ("kind", "pop")];
                    metrics.value("wakeline_statements_total", &pop)
                })?;
            (looks >= f64::from(times)).then_some(())
        })
        .await;
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM and the like; SIGKILL is [`Self::kill`].
    pub(crate) fn signal(&self, name: &str) {
        // The shell's own kill: the program of that name is an optional package. The child is not
        // reaped yet, so its id cannot belong to a stranger.
        let kill = format!("kill -s {name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("a shell").success(), "{kill}");
    }

    /// As `kill -9`: no goodbye of any kind.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be reaped");
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let child = &mut self.child;
        until("the end of the process", async || {
            child.try_wait().expect("the child can be asked")
        })
        .await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the server's log\n{}---", self.log());
        }
    }
}
