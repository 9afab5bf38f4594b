//! Connections that an app has taken over (Rack's hijack): bytes go between the client and the app,
//! and nobody here understands them.
//!
//! The app's end of the socket is the connection's end. A client that sends no more may still be sent
//! to. Nothing is read ahead of either side but what one copy holds.

use std::time::Duration;

use bytes::Bytes;
use hob_wire::message::Reason;
use rustix::fd::OwnedFd;
use tokio::io::{AsyncWriteExt, copy};
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::connection::checked::Checked;
use crate::link::End;
use crate::log;

/// When the site stops, an app that knows it by its socket's end may go on for so long.
const STOP_TIME: Duration = Duration::from_secs(5);

/// A connection that an app has taken over.
#[derive(Debug)]
pub(crate) struct Hijacked {
    /// The mount, for the log.
    pub(crate) name: String,
    /// What the client is sent first.
    pub(crate) head: Bytes,
    /// Where the app's bytes come and go.
    pub(crate) socket: OwnedFd,
    /// How long the request may go on behind the connection's end.
    pub(crate) gap: Duration,
    /// What becomes of its request.
    pub(crate) end: End,
}

/// Passes bytes both ways until the app ends it or the site stops; returns when the request, too, has
/// got to its end, or was taken back. `early` is what the client has sent behind its request.
pub(crate) async fn run(
    client: Checked,
    early: Bytes,
    hijacked: Hijacked,
    stop: &mut watch::Receiver<bool>,
) {
    let Hijacked { name, head, socket, gap, mut end } = hijacked;
    let socket = std::os::unix::net::UnixStream::from(socket);
    let socket = socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket));
    // Without descriptors to spare; the request is taken back.
    let Ok(socket) = socket else { return };
    let (mut from_app, mut to_app) = socket.into_split();
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let down = async {
        if to_client.write_all(&head).await.is_ok() {
            let _ = copy(&mut from_app, &mut to_client).await;
        }
        let _ = to_client.shutdown().await;
    };
    let up = async {
        if to_app.write_all(&early).await.is_ok() {
            let _ = copy(&mut from_client, &mut to_app).await;
        }
        let _ = to_app.shutdown().await;
        std::future::pending::<()>().await;
    };
    let most = tokio::select! {
        () = down => gap,
        () = up => gap,
        _ = stop.wait_for(|stop| *stop) => gap.min(STOP_TIME),
    };
    drop((from_app, to_app, from_client, to_client));
    // Not awaited to its end, it is taken back.
    let failure = tokio::time::timeout(most, end.failure()).await;
    if let Ok(Some((reason, text))) = failure
        && reason != Reason::Cancelled
    {
        log::say(&format!("{name}: {}: {text}", reason.code()));
    }
}
