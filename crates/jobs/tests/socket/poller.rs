//! A Socket.IO client that polls.

use std::{collections::VecDeque, net::SocketAddr};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use wakeline_testkit::soon;

pub(crate) struct Poller {
    address: SocketAddr,
    pub(crate) sid: String,
    unread: VecDeque<String>,
    /// The number of packets in the largest answer.
    pub(crate) most: usize,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// One request on a connection of its own.
pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    target: &str,
    body: &str,
) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\
         Content-Type: text/plain;charset=UTF-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Answer {
        status,
        body: body.to_owned(),
    })
}

impl Poller {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let target = "/socket.io/?transport=polling&EIO=4&t=1";
        let answer = request(address, "GET", target, "").await?;
        ensure!(answer.status == 200, "{}", answer.body);
        let open = answer.body.strip_prefix('0').context("no open packet")?;
        let open: serde_json::Value = serde_json::from_str(open)?;
        Ok(Self {
            address,
            sid: open["sid"].as_str().context("no sid")?.to_owned(),
            unread: VecDeque::new(),
            most: 0,
        })
    }

    /// Connects to the namespace and returns the server's answer.
    pub(crate) async fn connect(&mut self, token: &str) -> Result<String> {
        self.say(&format!(r#"40{{"token":"{token}"}}"#)).await?;
        self.hear().await
    }

    pub(crate) async fn say(&self, packets: &str) -> Result<()> {
        let answer = request(self.address, "POST", &self.target(), packets).await?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
        Ok(())
    }

    /// The next packet that is no ping.
    pub(crate) async fn hear(&mut self) -> Result<String> {
        loop {
            let Some(packet) = self.unread.pop_front() else {
                self.fetch().await?;
                continue;
            };
            if packet != "2" {
                return Ok(packet);
            }
            self.say("3").await?;
        }
    }

    /// Polls once.
    pub(crate) async fn fetch(&mut self) -> Result<()> {
        let answer = soon("an answer to a poll", self.poll()).await?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
        let packets: Vec<&str> = answer.body.split('\u{1e}').collect();
        self.most = self.most.max(packets.len());
        self.unread.extend(packets.into_iter().map(str::to_owned));
        Ok(())
    }

    pub(crate) fn unread(&mut self) -> impl Iterator<Item = String> {
        self.unread.drain(..)
    }

    pub(crate) async fn poll(&self) -> Result<Answer> {
        request(self.address, "GET", &self.target(), "").await
    }

    fn target(&self) -> String {
        format!("/socket.io/?transport=polling&EIO=4&sid={}", self.sid)
    }
}
