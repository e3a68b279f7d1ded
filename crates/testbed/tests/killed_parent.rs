use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const GONE_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn a_killed_parent_leaves_no_server_behind() {
    // The killed parent cannot remove its directories; this one does.
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_wakeline-testbed"))
        .env("TMPDIR", directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(parent.stdout.take().unwrap());
    let ports: Vec<u16> = output
        .lines()
        .take(3)
        .map(|line| port_of(&line.unwrap()))
        .collect();
    assert_eq!(ports.len(), 3);
    for port in &ports {
        TcpStream::connect(("127.0.0.1", *port)).unwrap();
    }

    parent.kill().unwrap();
    parent.wait().unwrap();

    let deadline = Instant::now() + GONE_WITHIN;
    for port in ports {
        while TcpStream::connect(("127.0.0.1", port)).is_ok() {
            assert!(Instant::now() < deadline, "port {port} still answers");
            thread::sleep(Duration::from_millis(20));
        }
    }
    // Listening ends before the process does, and the directory is in use until then.
    while still_used(directory.path().to_str().unwrap()) {
        assert!(Instant::now() < deadline, "a server process is left");
        thread::sleep(Duration::from_millis(20));
    }
}

fn port_of(line: &str) -> u16 {
    let (_, address) = line.split_once("127.0.0.1:").unwrap();
    address.split('/').next().unwrap().parse().unwrap()
}

fn still_used(directory: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(directory))
    })
}
