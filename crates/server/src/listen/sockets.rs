//! The sockets that the server listens on: one for each address.

use std::{
    future::poll_fn,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use anyhow::{Result, anyhow};
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};

/// Ports that are tried until one is free at every address.
const PORT_TRIES: u32 = 16;

#[derive(Debug)]
pub(crate) struct ListenSockets {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// Which one is asked first, in turn: one that is flooded must not keep the others waiting.
    turn: AtomicUsize,
}

struct BindError {
    address: SocketAddr,
    error: io::Error,
}

impl ListenSockets {
    /// All have one port, also where the system chooses it. An address that this machine does not
    /// have is left out as long as there is another: a name such as `localhost` may have one of
    /// IPv6 where there is no IPv6.
    pub(crate) async fn bind(addresses: &[SocketAddr]) -> Result<Self> {
        let chooses_port = addresses.iter().all(|address| address.port() == 0);
        let mut tries = if chooses_port { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            match Self::bind_once(addresses).await {
                Ok(bound) => return Ok(bound),
                Err(BindError { error, .. })
                    if error.kind() == ErrorKind::AddrInUse && tries > 0 => {}
                Err(BindError { address, error }) => {
                    let context = format!("cannot listen on {address} (--listen)");
                    return Err(anyhow!(error).context(context));
                }
            }
        }
    }

    async fn bind_once(addresses: &[SocketAddr]) -> Result<Self, BindError> {
        let mut bound = Self {
            sockets: Vec::new(),
            addresses: Vec::new(),
            turn: AtomicUsize::new(0),
        };
        let mut absent = Vec::new();
        for address in addresses {
            let mut address = *address;
            if let (0, Some(first)) = (address.port(), bound.addresses.first()) {
                address.set_port(first.port());
            }
            let with_address = |error| BindError { address, error };
            match TcpListener::bind(address).await {
                Ok(socket) => {
                    let local = socket.local_addr().map_err(with_address)?;
                    bound.addresses.push(local);
                    bound.sockets.push(socket);
                }
                Err(error) if is_absent(&error) => absent.push(with_address(error)),
                Err(error) => return Err(with_address(error)),
            }
        }
        if bound.sockets.is_empty()
            && let Some(error) = absent.pop()
        {
            return Err(error);
        }
        for BindError { address, error } in absent {
            let address = address.ip();
            tracing::info!(%address, %error, "listening without this address of the name");
        }
        Ok(bound)
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|context| {
            let first = self.turn.fetch_add(1, Ordering::Relaxed) % self.sockets.len();
            let (later, sooner) = self.sockets.split_at(first);
            for socket in sooner.iter().chain(later) {
                if let Poll::Ready(accepted) = socket.poll_accept(context) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// No interface has the address, or the system does not speak its protocol.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For documentation; no machine has it.
    const ABSENT: &str = "192.0.2.1:0";

    async fn bind(addresses: &[&str]) -> Result<ListenSockets> {
        let addresses: Vec<_> = addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect();
        ListenSockets::bind(&addresses).await
    }

    #[tokio::test]
    async fn all_addresses_have_one_port_and_are_served() {
        let sockets = bind(&["127.0.0.1:0", "127.0.0.2:0"]).await.unwrap();
        let [one, other] = *sockets.addresses() else {
            panic!("{sockets:?}");
        };
        assert_eq!(one.port(), other.port());
        for address in [one, other, one] {
            let client = TcpStream::connect(address).await.unwrap();
            let (_, peer) = sockets.accept().await.unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
    }

    #[tokio::test]
    async fn an_address_that_this_machine_lacks_is_left_out_unless_it_is_the_only_one() {
        let sockets = bind(&[ABSENT, "127.0.0.1:0"]).await.unwrap();
        assert_eq!(sockets.addresses().len(), 1);
        let error = bind(&[ABSENT]).await.unwrap_err().to_string();
        assert_eq!(error, "cannot listen on 192.0.2.1:0 (--listen)");
    }

    #[tokio::test]
    async fn an_address_in_use_is_refused() {
        let taken = bind(&["127.0.0.1:0"]).await.unwrap();
        let port = taken.addresses()[0].port();
        let addresses = [format!("127.0.0.2:{port}"), format!("127.0.0.1:{port}")];
        let error = bind(&addresses.each_ref().map(String::as_str)).await;
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot listen on 127.0.0.1:{port} (--listen)")
        );
    }
}
