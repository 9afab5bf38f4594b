//! Static files of a mount: `tower-http` answers (ranges, ETag, index, media types); this file sees
//! to it that nothing outside the folder is reached.
//!
//! Invariant: before a file is served, the kernel has resolved its path beneath the folder: no dots
//! and no link lead out.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use hob_core::http::paths;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tower_http::services::ServeDir;

use crate::body::{Body, plain};

/// A folder that is served.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    fallback: Option<String>,
}

impl Files {
    pub(crate) fn new(root: PathBuf, fallback: Option<&str>) -> Files {
        Files { root, fallback: fallback.map(str::to_owned) }
    }

    /// Answers for the path behind the mount's prefix, which begins with a slash.
    pub(crate) async fn answer(
        &self,
        request: &Request<()>,
        prefix: &[u8],
        path: &str,
    ) -> Response<Body> {
        let mut found = self.find(path);
        // A folder answers by its index, which may be a link of its own.
        if path.ends_with('/') && matches!(found, Found::Here) {
            found = self.find(&format!("{path}index.html"));
        }
        let path = match (found, &self.fallback) {
            (Found::Here, _) => path.to_owned(),
            (Found::Nothing, Some(name)) => format!("/{name}"),
            (Found::Nothing | Found::Outside, _) => return nothing(),
        };
        let mut inner = Request::new(http_body_util::Empty::<Bytes>::new());
        *inner.method_mut() = request.method().clone();
        *inner.headers_mut() = request.headers().clone();
        let Ok(uri) = path.parse() else { return nothing() };
        *inner.uri_mut() = uri;
        match ServeDir::new(&self.root).try_call(inner).await {
            Ok(mut response) => {
                // The service does not know where it is mounted.
                if let Some(to) = response.headers_mut().get_mut(header::LOCATION) {
                    let whole = [prefix, to.as_bytes()].concat();
                    let Ok(whole) = HeaderValue::from_bytes(&whole) else { return nothing() };
                    *to = whole;
                }
                response.map(|body| UnsyncBoxBody::new(body.map_err(|error| error.into())))
            }
            Err(_) => nothing(),
        }
    }

    /// Whether a path leads to something beneath the folder.
    fn find(&self, path: &str) -> Found {
        let decoded = paths::decode(path.as_bytes());
        let Some(relative) = decoded.strip_prefix(b"/") else { return Found::Nothing };
        if decoded.contains(&0) {
            return Found::Nothing;
        }
        let relative = if relative.is_empty() { b"." } else { relative };
        let Ok(root) = open(CWD, &self.root, ResolveFlags::empty()) else { return Found::Nothing };
        match open(&root, as_path(relative), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            Ok(_) => Found::Here,
            Err(Errno::XDEV) => Found::Outside,
            Err(_) => Found::Nothing,
        }
    }
}

enum Found {
    Here,
    Nothing,
    Outside,
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn open(
    dir: impl rustix::fd::AsFd,
    path: &Path,
    resolve: ResolveFlags,
) -> Result<rustix::fd::OwnedFd, Errno> {
    rustix::fs::openat2(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// What is denied and what is absent look alike.
fn nothing() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "not found\n")
}
