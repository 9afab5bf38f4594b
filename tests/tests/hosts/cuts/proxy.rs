//! A network between a host and its server that can be cut in either direction: what comes is kept, and
//! passed on when the cut is over, as a network does that repeats.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Which way passes nothing on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    ToHost,
    FromHost,
    Both,
}

impl Cut {
    fn has(self, way: Cut) -> bool {
        self == Cut::Both || self == way
    }
}

#[derive(Debug, Default)]
struct State {
    cut: Option<Cut>,
    is_over: bool,
    sockets: Vec<TcpStream>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// It ends with this value.
#[derive(Debug)]
pub(super) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    accepts: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(super) fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let accepts = std::thread::spawn(move || {
            for host in listener.incoming() {
                if of_thread.state().is_over {
                    return;
                }
                // A server that is gone is one that does not answer.
                let (Ok(host), Ok(server)) = (host, TcpStream::connect(("127.0.0.1", server)))
                else {
                    continue;
                };
                pass(&of_thread, &host, &server, Cut::FromHost);
                pass(&of_thread, &server, &host, Cut::ToHost);
                of_thread.state().sockets.extend([host, server]);
            }
        });
        Proxy { shared, port, accepts: Some(accepts) }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Nothing passes this way, or what was kept does again.
    pub(super) fn cut(&self, cut: Option<Cut>) {
        self.shared.state().cut = cut;
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.is_over = true;
            for socket in &state.sockets {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

/// Passes on what comes one way, in a thread of its own, which ends with the connection.
fn pass(shared: &Arc<Shared>, from: &TcpStream, to: &TcpStream, way: Cut) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut bytes).unwrap_or(0);
            let mut state = shared.state();
            while state.cut.is_some_and(|cut| cut.has(way)) && !state.is_over {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            if count == 0 || to.write_all(&bytes[..count]).is_err() {
                let _ = to.shutdown(Shutdown::Write);
                let _ = from.shutdown(Shutdown::Read);
                return;
            }
        }
    });
}
