//! A client of HTTP/2 that says what a test wants, and no more.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Error, Reason, RecvStream, SendStream};
use hob_tests::site::Site;
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long something may take: a test that waits longer has found a fault.
const BOUND: Duration = Duration::from_secs(60);

/// A connection, until it is dropped.
pub(super) struct Client {
    handle: Handle,
    send: SendRequest<Bytes>,
    connection: Option<JoinHandle<Result<(), Error>>>,
    authority: String,
    _ends: oneshot::Sender<()>,
}

/// A request on its way.
pub(super) struct Asked {
    pub(super) response: ResponseFuture,
    pub(super) body: SendStream<Bytes>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Client {
    /// Speaks HTTP/2 from the first byte on, and gives the site a window of so many bytes.
    pub(super) fn connect(site: &Site, window: u32) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let (ends, ended) = oneshot::channel();
        std::thread::spawn(move || drive(&runtime, ended));
        let address = site.address();
        let (send, connection) = wait(&handle, async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut builder = Builder::new();
            builder.initial_window_size(window).initial_connection_window_size(1 << 24);
            builder.handshake::<_, Bytes>(stream).await.unwrap()
        });
        let connection = Some(handle.spawn(connection));
        Client { handle, send, connection, authority: address.to_string(), _ends: ends }
    }

    /// Sends a head; a body follows if there is one.
    pub(super) fn ask(
        &self,
        line: (&str, &str),
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Asked, Error> {
        let authority = self.authority.clone();
        self.ask_of(&authority, line, headers, body)
    }

    /// The same of a server by this name.
    pub(super) fn ask_of(
        &self,
        authority: &str,
        (method, target): (&str, &str),
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Asked, Error> {
        let uri = format!("http://{authority}{target}");
        let mut request = Request::builder().method(method).uri(uri).version(http::Version::HTTP_2);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let body = body.map(Bytes::copy_from_slice);
        let send = self.send.clone();
        wait(&self.handle, async move {
            let mut send = send.ready().await?;
            let (response, mut stream) = send.send_request(request, body.is_none())?;
            if let Some(body) = body {
                // It may have been answered before that.
                let _ = stream.send_data(body, true);
            }
            Ok(Asked { response, body: stream })
        })
    }

    /// Sends a head whose body never comes.
    pub(super) fn begin(&self, (method, target): (&str, &str)) -> Result<Asked, Error> {
        let uri = format!("http://{}{target}", self.authority);
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let send = self.send.clone();
        wait(&self.handle, async move {
            let (response, body) = send.ready().await?.send_request(request, false)?;
            Ok(Asked { response, body })
        })
    }

    /// Awaits the head of an answer.
    pub(super) fn begun(&self, asked: Asked) -> Result<http::Response<RecvStream>, Error> {
        wait(&self.handle, asked.response)
    }

    /// The next bytes of a body, for which its window opens again, if `takes`; `None`: it has ended.
    pub(super) fn piece(&self, body: &mut RecvStream, takes: bool) -> Option<Result<Bytes, Error>> {
        wait(&self.handle, async {
            let next = body.data().await;
            if let Some(Ok(data)) = &next
                && takes
            {
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            next
        })
    }

    /// Awaits a whole answer.
    pub(super) fn answer(&self, asked: Asked) -> Result<Answer, Error> {
        let response = self.begun(asked)?;
        let (parts, mut stream) = response.into_parts();
        let mut body = BytesMut::new();
        while let Some(piece) = self.piece(&mut stream, true) {
            match piece {
                Ok(piece) => body.extend_from_slice(&piece),
                // It is whole, and does not want the rest of the request.
                Err(error) if error.reason() == Some(Reason::NO_ERROR) => break,
                Err(error) => return Err(error),
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Reads a path.
    pub(super) fn get(&self, target: &str) -> Answer {
        self.answer(self.ask(("GET", target), &[], None).unwrap()).unwrap()
    }

    /// How many requests it may have open, by the site's settings.
    pub(super) fn most(&self) -> usize {
        self.get("/");
        self.send.current_max_send_streams()
    }

    /// Awaits the connection's end, which the site has to bring about.
    pub(super) fn ended(&mut self) -> Result<(), Error> {
        let connection = self.connection.take().expect("it is awaited once");
        wait(&self.handle, connection).unwrap()
    }

    /// Leaves at once.
    pub(super) fn leave(mut self) {
        let connection = self.connection.take().expect("it is there");
        connection.abort();
        assert!(wait(&self.handle, connection).unwrap_err().is_cancelled());
    }
}

impl Asked {
    /// Takes the request back.
    pub(super) fn reset(mut self) {
        self.body.send_reset(Reason::CANCEL);
    }
}

fn drive(runtime: &Runtime, ended: oneshot::Receiver<()>) {
    let _ = runtime.block_on(ended);
}

fn wait<T>(handle: &Handle, future: impl Future<Output = T>) -> T {
    let bounded = async { tokio::time::timeout(BOUND, future).await };
    handle.block_on(bounded).expect("it does not take for ever")
}
