//! One file of many projects, as a line of JSON each, in the order asked for. As many are read at
//! one time as the mount has readers; a client that leaves ends it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hob_git::Failure;
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::oneshot;

use super::readers::{Done, Readers, Wanted};
use super::{status_of, text_of};
use crate::body::Broken;

/// A line that is to come.
#[derive(Debug)]
enum Coming {
    /// It looks as if there were no such project.
    Denied,
    Read(oneshot::Receiver<Done>),
}

/// The lines that are still to come.
#[derive(Debug)]
pub(super) struct Listing {
    readers: Arc<Readers>,
    /// With whether it is denied.
    left: VecDeque<(Wanted, bool)>,
    /// What is being read, with the project's name, in the order of the lines.
    reading: VecDeque<(Vec<u8>, Coming)>,
}

impl Listing {
    /// Begins one, or gives back what is to be read if there is no room for the first of it.
    pub(super) fn begin(
        readers: &Arc<Readers>,
        wanted: VecDeque<(Wanted, bool)>,
    ) -> Result<Listing, Wanted> {
        let readers = Arc::clone(readers);
        let mut listing = Listing { readers, left: wanted, reading: VecDeque::new() };
        if let Some((wanted, is_denied)) = listing.left.pop_front() {
            listing.read(wanted, is_denied)?;
        }
        listing.go_on();
        Ok(listing)
    }

    fn read(&mut self, wanted: Wanted, is_denied: bool) -> Result<(), Wanted> {
        let project = wanted.project.clone();
        let coming =
            if is_denied { Coming::Denied } else { Coming::Read(self.readers.ask(wanted)?) };
        self.reading.push_back((project, coming));
        Ok(())
    }

    /// Has as many read as there are readers, if there is room.
    fn go_on(&mut self) {
        while self.reading.len() < self.readers.count() {
            let Some((wanted, is_denied)) = self.left.pop_front() else { return };
            if let Err(wanted) = self.read(wanted, is_denied) {
                self.left.push_front((wanted, is_denied));
                return;
            }
        }
    }
}

impl hyper::body::Body for Listing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let line = match self.reading.front_mut() {
            Some((_, coming)) => {
                let done = match coming {
                    Coming::Denied => None,
                    Coming::Read(coming) => Some(ready!(Pin::new(coming).poll(context))),
                };
                let Some((project, _)) = self.reading.pop_front() else { return Poll::Ready(None) };
                match done {
                    None => failed(&project, &Failure::Absent("project")),
                    Some(Ok(done)) => line(&project, done),
                    Some(Err(_)) => refused(&project, "the site stops"),
                }
            }
            // Others have filled the queue meanwhile.
            None => match self.left.pop_front() {
                Some((wanted, _)) => refused(&wanted.project, "too many requests wait"),
                None => return Poll::Ready(None),
            },
        };
        self.go_on();
        Poll::Ready(Some(Ok(Frame::data(line))))
    }
}

/// A line, its members in the order of docs/blobs.md.
#[derive(Debug, Serialize)]
struct Line<'l> {
    project: Cow<'l, str>,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'l str>,
    #[serde(flatten)]
    file: Option<File<'l>>,
}

/// What a line has of a file that was found.
#[derive(Debug, Serialize)]
struct File<'l> {
    oid: &'l str,
    commit: Option<&'l str>,
    mode: String,
    #[serde(flatten)]
    content: Option<Content<'l>>,
}

#[derive(Debug, Serialize)]
struct Content<'l> {
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

fn failed(project: &[u8], failure: &Failure) -> Bytes {
    without(project, status_of(failure).as_u16(), &text_of(failure))
}

fn refused(project: &[u8], why: &str) -> Bytes {
    without(project, 503, why)
}

fn without(project: &[u8], status: u16, why: &str) -> Bytes {
    let project = String::from_utf8_lossy(project);
    ended(&Line { project, status, error: Some(why), file: None })
}

fn line(project: &[u8], done: Done) -> Bytes {
    let found = match done.result {
        Err(failure) => return failed(project, &failure),
        Ok(found) => found,
    };
    let content = found.blob.as_ref().map(|blob| {
        let text = std::str::from_utf8(&blob.bytes).ok().filter(|_| blob.is_text);
        let base64 = text.is_none().then(|| data_encoding::BASE64.encode(&blob.bytes));
        Content { bytes: blob.bytes.len(), text, base64 }
    });
    let located = &found.located;
    let file = File {
        oid: &located.oid,
        commit: located.commit.as_deref(),
        mode: format!("{:o}", located.mode),
        content,
    };
    let project = String::from_utf8_lossy(project);
    ended(&Line { project, status: 200, error: None, file: Some(file) })
}

fn ended(line: &Line<'_>) -> Bytes {
    // Texts and numbers are always to be had as JSON.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    Bytes::from(text)
}
