use std::io::{Read, Write};
use std::net::TcpStream;

use wakeline_testbed::Redis;

fn ask(redis: &Redis, command: &str, answer: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    write!(stream, "{command}\r\n").unwrap();
    let mut read = vec![0; answer.len()];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(String::from_utf8_lossy(&read), answer);
}

#[test]
fn a_new_server_answers() {
    let redis = Redis::start().unwrap();
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{}/", redis.port()));
    ask(&redis, "PING", "+PONG\r\n");
}

#[test]
fn a_restart_loses_all_keys() {
    let mut redis = Redis::start().unwrap();
    let port = redis.port();
    ask(&redis, "SET door queue", "+OK\r\n");
    redis.restart().unwrap();
    assert_eq!(redis.port(), port);
    ask(&redis, "GET door", "$-1\r\n");
}

#[test]
fn a_stopped_server_refuses_until_it_is_started_again() {
    let mut redis = Redis::start().unwrap();
    redis.stop().unwrap();
    TcpStream::connect(("127.0.0.1", redis.port())).unwrap_err();
    redis.start_again().unwrap();
    ask(&redis, "PING", "+PONG\r\n");
}

#[test]
fn a_dropped_server_is_gone() {
    let redis = Redis::start().unwrap();
    let port = redis.port();
    drop(redis);
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}
