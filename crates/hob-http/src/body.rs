//! Bodies of responses, and the short responses that are hob's own.

use bytes::Bytes;
use hob_core::http::Refusal;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

/// What a response's body ends with if it breaks off.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;
/// A response's body.
pub(crate) type Body = UnsyncBoxBody<Bytes, Broken>;

/// A request that is not answered by what it asked, and whether its connection is kept.
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) text: &'static str,
    pub(crate) close: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
        Refused { status, text: refusal.what, close: true }
    }
}

/// Of a connection that is kept.
pub(crate) fn refused(status: StatusCode, text: &'static str) -> Refused {
    Refused { status, text, close: false }
}

/// A short answer of hob's own.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A body that is here already.
pub(crate) fn whole(bytes: Bytes) -> Body {
    UnsyncBoxBody::new(Full::new(bytes).map_err(|never| match never {}))
}
