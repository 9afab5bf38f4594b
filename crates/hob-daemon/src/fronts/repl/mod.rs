//! The front of sessions: clients that speak bencode, as nREPL does.
//!
//! A connection is: `hello`, `open session`, the answer; and then bencode in both ways to its end.
//! Its bytes go between the client and the session's own socket, past the loop, which is told only
//! when something is begun and has ended.

mod proxy;

use std::sync::Arc;

use hob_core::sessions::ClientId;
use hob_wire::frame::Kind;
use hob_wire::reply;
use hob_wire::session::{OpenSession, SessionOpened};
use rustix::fd::AsFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::around::Seen;
use crate::channel::{self, Frame, Reader, Stream};
use crate::fronts::{Front, hooks};
use crate::inputs::{InSession, Input, Refused, SessionEvent, Wanted};
use proxy::Proxy;

/// Hears a client to its end.
pub(crate) async fn serve(
    mut frame: Frame,
    mut reader: Reader,
    stream: Arc<Stream>,
    seen: Seen,
    front: &Front,
) {
    let Ok(open) = OpenSession::decode(&frame.payload) else { return };
    let Some(directory) = frame.fds.pop() else { return };
    // Who joins a session has what that was started with.
    let differs = if open.start { hooks::differs(&front.around, &seen) } else { None };
    let client = ClientId(front.recorder.next_call());
    let (shared, token) = (open.shared, open.token.clone());
    let (reply, answer) = oneshot::channel();
    let wanted = Wanted { open, directory, pid: seen.pid(), differs, reply };
    let tell = |event| front.owner.send(Input::Session { client, event });
    if tell(SessionEvent::Wanted(Box::new(wanted))).await.is_err() {
        return;
    }
    let answer = tokio::select! {
        answer = answer => answer,
        // It says nothing before it has its answer, so that this is its end.
        _ = reader.next() => {
            let _ = tell(SessionEvent::Left).await;
            return;
        }
    };
    match answer {
        Ok(Ok(joined)) => {
            if let Ok((client_side, session_side)) = connect(&stream, &joined).await {
                let mut proxy = Proxy::new(client, front.owner.clone(), &joined, shared, &token);
                proxy.run(client_side, session_side, joined.over).await;
            }
            let _ = tell(SessionEvent::Left).await;
        }
        Ok(Err(refused)) => refuse(&stream, &refused),
        // The loop has ended.
        Err(_) => {}
    }
}

/// Tells the client that it is in, and connects with the session.
async fn connect(
    stream: &Arc<Stream>,
    joined: &InSession,
) -> std::io::Result<(UnixStream, UnixStream)> {
    let session = UnixStream::connect(&joined.socket).await?;
    let opened =
        SessionOpened { fresh: joined.fresh, pid: joined.pid, serves: joined.serves.clone() };
    if let Some(bytes) = channel::encode(Kind::SessionOpened, 0, |out| opened.encode(out)) {
        channel::send(stream, bytes, &[])?;
    }
    let client = UnixStream::from_std(stream.as_fd().try_clone_to_owned()?.into())?;
    Ok((client, session))
}

fn refuse(stream: &Arc<Stream>, refused: &Refused) {
    let refused = reply::Refused { code: refused.code, text: refused.text.clone().into_bytes() };
    if let Some(bytes) = channel::encode(Kind::Refused, 0, |out| refused.encode(out)) {
        let _ = channel::send(stream, bytes, &[]);
    }
}
