//! Static files of a mount: `tower-http` answers (ranges, ETag, index, precompressed variants, media
//! types), from a folder that nothing leads out of (`beneath`).

mod beneath;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tower_http::services::ServeDir;

use crate::body::{Body, plain};
use beneath::Beneath;

/// A folder that is served.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    fallback: Option<String>,
    cache_control: Option<HeaderValue>,
    dot_files: Arc<[String]>,
}

impl Files {
    pub(crate) fn new(
        root: PathBuf,
        fallback: Option<&str>,
        cache_control: Option<&str>,
        dot_files: Vec<String>,
    ) -> Files {
        // It was judged when the site was read.
        let cache_control = cache_control.and_then(|value| HeaderValue::from_str(value).ok());
        let fallback = fallback.map(str::to_owned);
        Files { root, fallback, cache_control, dot_files: dot_files.into() }
    }

    /// Answers for the path behind the mount's prefix, which begins with a slash.
    pub(crate) async fn answer(
        &self,
        request: &Request<()>,
        prefix: &[u8],
        path: &str,
    ) -> Response<Body> {
        let mut response = self.ask(request, prefix, path).await;
        if let (Some(name), Ok(StatusCode::NOT_FOUND)) =
            (&self.fallback, response.as_ref().map(Response::status))
        {
            response = self.ask(request, prefix, &format!("/{name}")).await;
        }
        match response {
            Ok(response) if response.status() == StatusCode::NOT_FOUND => nothing(),
            Ok(mut response) => {
                if let Some(value) = &self.cache_control
                    && (response.status().is_success()
                        || response.status() == StatusCode::NOT_MODIFIED)
                {
                    response.headers_mut().insert(header::CACHE_CONTROL, value.clone());
                }
                response
            }
            Err(error) => {
                crate::log::say(&format!("{}: {error}", self.root.display()));
                plain(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read\n")
            }
        }
    }

    async fn ask(
        &self,
        request: &Request<()>,
        prefix: &[u8],
        path: &str,
    ) -> std::io::Result<Response<Body>> {
        let mut inner = Request::new(http_body_util::Empty::<Bytes>::new());
        *inner.method_mut() = request.method().clone();
        *inner.headers_mut() = request.headers().clone();
        let Ok(uri) = path.parse() else { return Ok(nothing()) };
        *inner.uri_mut() = uri;
        let Ok(folder) = Beneath::new(&self.root, &self.dot_files) else { return Ok(nothing()) };
        let mut service = ServeDir::with_backend("/", folder)
            .precompressed_br()
            .precompressed_zstd()
            .precompressed_gzip();
        let mut response = match service.try_call(inner).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(nothing()),
            response => response?,
        };
        // The service does not know where it is mounted.
        if let Some(to) = response.headers_mut().get_mut(header::LOCATION) {
            let whole = [prefix, to.as_bytes()].concat();
            let Ok(whole) = HeaderValue::from_bytes(&whole) else { return Ok(nothing()) };
            *to = whole;
        }
        Ok(response.map(|body| UnsyncBoxBody::new(body.map_err(|error| error.into()))))
    }
}

/// What is denied and what is absent look alike.
fn nothing() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "not found\n")
}
