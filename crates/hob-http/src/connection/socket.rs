//! What a site listens at: addresses and unix sockets, alike to all that comes behind.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// At an address.
    Tcp(std::net::TcpListener),
    /// At a path, or under an abstract name.
    Unix(std::os::unix::net::UnixListener),
}

/// The port of a site that a client has not named, and that has none.
const USUAL_PORT: u16 = 80;

/// Whoever reaches a unix socket is on this machine.
const fn here(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// The same within the runtime.
#[derive(Debug)]
pub(crate) enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Accepting {
    pub(crate) fn new(listener: Listener) -> io::Result<Accepting> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Accepting::Tcp(TcpListener::from_std(listener)?)
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Accepting::Unix(UnixListener::from_std(listener)?)
            }
        })
    }

    /// Where it listens, for an app that asks.
    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Accepting::Tcp(listener) => listener.local_addr(),
            Accepting::Unix(_) => Ok(here(USUAL_PORT)),
        }
    }

    /// The next connection, and who has made it.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Accepting::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), peer))
            }
            Accepting::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), here(0)))
            }
        }
    }
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
