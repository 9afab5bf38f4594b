//! Files of revisions of repositories: a mount of the kind `git` (docs/blobs.md).
//!
//! `hob_core::http::blobs` reads what is asked for, `readers` read it, and this makes responses of
//! it. What a failure is called is hob-git's business; which status it has is said here.

mod listing;
mod readers;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hob_core::http::mounts::blobs::{Asked, parse};
use hob_git::{Blob, Failure, Located, Root, Terms};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use crate::body::{Body, Refused, plain, refused, whole};
use crate::control::meter::ReadTimes;
use crate::log;
use listing::Listing;
use readers::{Done, Found, Readers, Wanted};

/// A directory of repositories that is served.
#[derive(Debug)]
pub(crate) struct Blobs {
    readers: Arc<Readers>,
    /// Whether answers are for some users only.
    private: bool,
}

/// An answer, and when its parts were done.
pub(crate) type Answered = (Response<Body>, Option<ReadTimes>);

impl Blobs {
    pub(crate) fn new(
        root: PathBuf,
        terms: Terms,
        jobs: usize,
        queue_max: usize,
        private: bool,
    ) -> Blobs {
        let readers = Readers::new(Root::new(root, terms), jobs, queue_max);
        Blobs { readers: Arc::new(readers), private }
    }

    /// What is asked for behind a mount's prefix.
    ///
    /// # Errors
    /// If it is nothing that is served.
    pub(crate) fn asked(parts: &Parts, rest: &[u8], query: &[u8]) -> Result<Asked, Refused> {
        let nothing = "nothing is served here: ask for blob/PROJECT/REV?path=PATH";
        let asked = parse(rest, query).map_err(kept)?;
        let asked = asked.ok_or_else(|| refused(StatusCode::NOT_FOUND, nothing))?;
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let text = "files of repositories are read by GET and HEAD";
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        Ok(asked)
    }

    /// Answers what is asked for. Projects that are denied, by their place, are as those that are not
    /// there.
    ///
    /// # Errors
    /// If too many requests wait.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        asked: Asked,
        denied: &[bool],
    ) -> Result<Answered, Refused> {
        let is_denied = |place: usize| denied.get(place).copied().unwrap_or(false);
        match asked {
            Asked::One { .. } if is_denied(0) => {
                let mut response = failed(&Failure::Absent("project"));
                harmless(response.headers_mut());
                Ok((response, None))
            }
            Asked::One { project, rev, path } => {
                let has = parts.headers.get_all(header::IF_NONE_MATCH);
                let has = has.into_iter().map(|value| value.as_bytes().to_vec()).collect();
                let coming = self.readers.ask(Wanted { project, rev, path, has });
                let done = coming.map_err(|_| busy())?.await.map_err(|_| stopped())?;
                Ok(self.respond(parts, done))
            }
            Asked::Many { projects, rev, path } => {
                if parts.method == Method::HEAD {
                    return Ok((listed(whole(Bytes::new()), self.private), None));
                }
                let wanted = projects.into_iter().enumerate().map(|(place, project)| {
                    let has = Vec::new();
                    let wanted = Wanted { project, rev: rev.clone(), path: path.clone(), has };
                    (wanted, is_denied(place))
                });
                let listing = Listing::begin(&self.readers, wanted.collect());
                let listing = listing.map_err(|_| busy())?;
                Ok((listed(UnsyncBoxBody::new(listing), self.private), None))
            }
        }
    }

    fn respond(&self, parts: &Parts, done: Done) -> Answered {
        let times = done.times;
        let mut response = match done.result {
            Ok(found) => self.file(parts, found),
            Err(failure) => failed(&failure),
        };
        harmless(response.headers_mut());
        (response, Some(times))
    }

    fn file(&self, parts: &Parts, Found { located, blob }: Found) -> Response<Body> {
        let mut response = match blob {
            None => {
                let mut response = Response::new(whole(Bytes::new()));
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
            Some(blob) => part(parts, blob, &tag(&located.oid)),
        };
        let fields = response.headers_mut();
        self.describe(fields, &located);
        response
    }

    /// What is said of a file besides its bytes.
    fn describe(&self, fields: &mut HeaderMap, located: &Located) {
        let mut put = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                fields.insert(name, value);
            }
        };
        put(header::ETAG, &tag(&located.oid));
        put(HeaderName::from_static("hob-mode"), &format!("{:o}", located.mode));
        if let Some(commit) = &located.commit {
            put(HeaderName::from_static("hob-commit"), commit);
        }
        put(header::CACHE_CONTROL, cache_control(self.private, located.is_fixed));
    }
}

/// What caches may do: an object's id always means the same, a name does not.
fn cache_control(private: bool, is_fixed: bool) -> &'static str {
    match (private, is_fixed) {
        (false, false) => "no-cache",
        (true, false) => "private, no-cache",
        (false, true) => "public, max-age=31536000, immutable",
        // Rights may end.
        (true, true) => "private, no-cache, immutable",
    }
}

/// The tag of an object.
fn tag(oid: &str) -> String {
    format!("\"{oid}\"")
}

/// No browser is to run what somebody has put into a repository.
fn harmless(fields: &mut HeaderMap) {
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(header::CONTENT_SECURITY_POLICY, policy);
}

/// The bytes, or the part of them that is asked for.
fn part(parts: &Parts, blob: Blob, tag: &str) -> Response<Body> {
    let length = blob.bytes.len() as u64;
    let kind = if blob.is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    let mut response = Response::new(());
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(pointer) = &blob.pointer
        && let Ok(value) = HeaderValue::from_str(&format!("{} {}", pointer.oid, pointer.size))
    {
        fields.insert(HeaderName::from_static("hob-lfs"), value);
    }
    let mut bytes = blob.bytes;
    let mut status = StatusCode::OK;
    match range(parts, length, tag) {
        Range::Whole => {}
        Range::Part(first, last) => {
            status = StatusCode::PARTIAL_CONTENT;
            let told = HeaderValue::from_str(&format!("bytes {first}-{last}/{length}"));
            if let Ok(told) = told {
                fields.insert(header::CONTENT_RANGE, told);
            }
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            bytes = bytes.slice(place(first)..place(last.saturating_add(1)));
        }
        Range::None => {
            status = StatusCode::RANGE_NOT_SATISFIABLE;
            if let Ok(told) = HeaderValue::from_str(&format!("bytes */{length}")) {
                fields.insert(header::CONTENT_RANGE, told);
            }
            bytes = Bytes::new();
        }
    }
    *response.status_mut() = status;
    let length = HeaderValue::from(bytes.len() as u64);
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    let bytes = if parts.method == Method::HEAD { Bytes::new() } else { bytes };
    response.map(|()| whole(bytes))
}

enum Range {
    Whole,
    /// The first and the last byte.
    Part(u64, u64),
    /// None of these bytes is there.
    None,
}

/// One range of bytes; of more than one, or of what is no range, the whole is sent.
fn range(parts: &Parts, length: u64, tag: &str) -> Range {
    let asked = parts.headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some(asked) = asked.filter(|_| parts.method == Method::GET) else { return Range::Whole };
    if parts.headers.get(header::IF_RANGE).is_some_and(|value| value.as_bytes() != tag.as_bytes()) {
        return Range::Whole;
    }
    let Ok(ranges) = http_range_header::parse_range_header(asked) else { return Range::Whole };
    if ranges.ranges.len() != 1 {
        return Range::Whole;
    }
    match ranges.validate(length).as_deref() {
        Ok([range]) => Range::Part(*range.start(), *range.end()),
        Ok(_) | Err(_) => Range::None,
    }
}

fn listed(body: Body, private: bool) -> Response<Body> {
    let mut response = Response::new(body);
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    let kept = HeaderValue::from_static(cache_control(private, false));
    fields.insert(header::CACHE_CONTROL, kept);
    harmless(fields);
    response
}

/// The status of a failure.
fn status_of(failure: &Failure) -> StatusCode {
    match failure {
        Failure::Name(_) => StatusCode::BAD_REQUEST,
        // Whether there is a repository that is not served is nobody's business.
        Failure::Absent(_) | Failure::Owner(_) => StatusCode::NOT_FOUND,
        Failure::Ids => StatusCode::FORBIDDEN,
        Failure::Ambiguous | Failure::NoFile { .. } => StatusCode::CONFLICT,
        Failure::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Failure::Object { .. } | Failure::Repository(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Failure::System => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What a client is told of a failure; whoever runs the site is told more.
fn text_of(failure: &Failure) -> String {
    if matches!(failure, Failure::Owner(_)) {
        log::say(&failure.to_string());
        return Failure::Absent("project").to_string();
    }
    failure.to_string()
}

fn failed(failure: &Failure) -> Response<Body> {
    plain(status_of(failure), &format!("{}\n", text_of(failure)))
}

/// A request that is wrong and was read whole, so that its connection is kept.
fn kept(refusal: hob_core::http::Refusal) -> Refused {
    Refused { close: false, ..Refused::from(refusal) }
}

fn busy() -> Refused {
    refused(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait")
}

fn stopped() -> Refused {
    refused(StatusCode::SERVICE_UNAVAILABLE, "the site stops")
}
