//! Who can read what the server has on disk: its own user, whatever the umask.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    net::SocketAddr,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::{Child, Command},
};

use serde_json::json;

use crate::{
    fixture::Fixture,
    server::{until, wakeline},
    wire::{Line, post},
};

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// A server whose umask takes no right from anybody.
struct OpenHanded {
    child: Child,
    address: SocketAddr,
}

impl OpenHanded {
    async fn start(data: &Path, outside: &Path) -> Self {
        let serve = wakeline(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--jobs-results",
            "files",
        ]);
        let output = outside.join("out");
        let mut child = Command::new("sh")
            .args(["-c", "umask 000; exec \"$@\"", "sh"])
            .arg(serve.get_program())
            .args(serve.get_args())
            .arg("--data")
            .arg(data)
            .stdout(File::create(&output).unwrap())
            .spawn()
            .unwrap();
        let address = until("the server listens", async || {
            assert_eq!(child.try_wait().unwrap(), None, "it ended at the start");
            let text = fs::read_to_string(&output).unwrap();
            let (_, rest) = text.split_once("listening on  http://")?;
            rest.split_once('\n')?.0.parse().ok()
        })
        .await;
        Self { child, address }
    }

    async fn push(&self) {
        let items = json!({"items": [{"queue": "q", "payload": "secret"}]});
        let mut line = Line::http1(self.address).await;
        let answer = line.call(post("/api/v1/push", items.to_string())).await;
        assert_eq!(answer.unwrap().status, 201);
    }
}

impl Drop for OpenHanded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn modes(directory: &Path) -> BTreeMap<String, u32> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, mode(&entry.path()))
        })
        .collect()
}

#[tokio::test]
async fn files_of_the_server_are_private_to_its_user_whatever_the_umask() {
    let outside = tempfile::tempdir().unwrap();
    let above = outside.path().join("above");
    let data = above.join("data");
    let server = OpenHanded::start(&data, outside.path()).await;
    server.push().await;
    let expected = [
        ("results", DIRECTORY),
        ("wakeline.db", FILE),
        ("wakeline.db-reserve", FILE),
        ("wakeline.db-shm", FILE),
        ("wakeline.db-wal", FILE),
        ("wakeline.lock", FILE),
    ];
    assert_eq!((mode(&above), mode(&data)), (DIRECTORY, DIRECTORY));
    assert_eq!(
        modes(&data),
        BTreeMap::from(expected.map(|(name, mode)| (name.to_owned(), mode)))
    );
}

#[tokio::test]
async fn a_start_removes_the_rights_of_other_users_on_existing_files() {
    let fixture = Fixture::sqlite();
    let data = fixture.data();
    let results = data.join("results");
    drop(fixture.serve().start().await);
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("an-answer"), "secret").unwrap();
    let files: Vec<_> = modes(data).into_keys().collect();
    assert!(files.contains(&"wakeline.db-wal".to_owned()), "{files:?}");
    for name in &files {
        set_mode(&data.join(name), 0o666);
    }
    set_mode(&results.join("an-answer"), 0o644);
    set_mode(&results, 0o777);
    set_mode(data, 0o755);

    let server = fixture.serve().start().await;

    assert_eq!(mode(data), DIRECTORY);
    assert_eq!(mode(&results), DIRECTORY);
    assert_eq!(mode(&results.join("an-answer")), FILE);
    for name in files.iter().filter(|name| *name != "results") {
        assert_eq!(mode(&data.join(name)), FILE, "{name}");
    }
    let log = server.log();
    assert!(
        log.contains("its mode was 755 and is 700 now"),
        "the log does not say it: {log}"
    );
}

#[tokio::test]
async fn a_data_directory_with_foreign_files_keeps_its_mode_and_the_log_has_the_remedy() {
    let fixture = Fixture::sqlite();
    let data = fixture.data();
    fs::write(data.join("somebodys.txt"), "").unwrap();
    set_mode(&data.join("somebodys.txt"), 0o644);
    set_mode(data, 0o755);

    let server = fixture.serve().start().await;

    assert_eq!(mode(data), 0o755);
    assert_eq!(mode(&data.join("somebodys.txt")), 0o644);
    assert_eq!(mode(&data.join("wakeline.db")), FILE);
    let remedy = format!("chmod 700 {}", data.display());
    let log = server.log();
    assert_eq!(log.matches(&remedy).count(), 1, "{log}");
}

const SECRET: &str = "[auth]\ntokens = [\"correct-horse-battery\"]\n";

fn configuration(fixture: &Fixture, text: &str, mode: u32) -> String {
    let file = fixture.data().join("wakeline.toml");
    fs::write(&file, text).unwrap();
    set_mode(&file, mode);
    set_mode(fixture.data(), DIRECTORY);
    file.display().to_string()
}

/// Root's file may be readable for its group.
fn remedy(file: &str) -> String {
    let owner = Path::new(file).metadata().unwrap().uid();
    format!("chmod {} {file}", if owner == 0 { 640 } else { 600 })
}

#[tokio::test]
async fn a_file_with_secrets_readable_by_other_users_gets_one_warning_with_the_remedy() {
    for (text, mode, warnings) in [
        (SECRET, 0o600, 0),
        (SECRET, 0o604, 1),
        (SECRET, 0o644, 1),
        ("insecure = true\n", 0o644, 0),
    ] {
        let fixture = Fixture::sqlite();
        let file = configuration(&fixture, text, mode);
        let server = fixture.serve().flags(&["--config", &file]).start().await;
        let log = server.log();
        let found = log.matches(&remedy(&file)).count();
        assert_eq!(found, warnings, "{mode:o} {log}");
        assert!(!log.contains("horse"), "{log}");
    }
}

#[tokio::test]
async fn a_file_with_secrets_writable_by_other_users_is_refused_with_the_remedy() {
    for mode in [0o620, 0o602] {
        let fixture = Fixture::sqlite();
        let file = configuration(&fixture, SECRET, mode);
        let log = fixture.serve().flags(&["--config", &file]).refused().await;
        let remedy = remedy(&file);
        assert_eq!(
            log.trim_end(),
            format!("wakeline: {file} has secrets, and others can change it: run {remedy}")
        );
    }
    let fixture = Fixture::sqlite();
    let file = configuration(&fixture, "insecure = true\n", 0o666);
    fixture.serve().flags(&["--config", &file]).start().await;
}
