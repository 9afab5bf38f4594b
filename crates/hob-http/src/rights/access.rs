//! What the rights of a mount say of one request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use hob_core::http::mounts::blobs::Asked;
use hob_wire::message::Judged;
use hyper::StatusCode;
use hyper::http::request::Parts;

use super::{About, Rights};
use crate::body::{Refused, refused};
use crate::control::meter::Measured;
use crate::link::Link;

/// A request, and who may judge it.
#[derive(Debug)]
pub(crate) struct Access<'a> {
    pub(crate) of: &'a Option<Arc<Rights>>,
    pub(crate) link: &'a Link,
    pub(crate) parts: &'a Parts,
    pub(crate) client: IpAddr,
    pub(crate) by_proxy: bool,
}

impl Access<'_> {
    /// Whether the request may have what it asks an app or a folder for.
    ///
    /// # Errors
    /// If it may not, or if that cannot be known.
    pub(crate) async fn check(&self, path: &[u8], measured: &mut Measured) -> Result<(), Refused> {
        let Some(rights) = self.of else { return Ok(()) };
        if self.ask(rights, None, path, measured).await? {
            Ok(())
        } else {
            Err(refused(StatusCode::NOT_FOUND, "not found"))
        }
    }

    /// Which of the projects that it asks for it may not see, in their order.
    ///
    /// # Errors
    /// If that cannot be known.
    pub(crate) async fn denied(
        &self,
        asked: &Asked,
        measured: &mut Measured,
    ) -> Result<Vec<bool>, Refused> {
        let (projects, path) = match asked {
            Asked::One { project, path, .. } => (std::slice::from_ref(project), path),
            Asked::Many { projects, path, .. } => (&projects[..], path),
        };
        let mut denied = vec![false; projects.len()];
        let Some(rights) = self.of else { return Ok(denied) };
        // One after the other: the first answer often says what all others are.
        for (denied, project) in denied.iter_mut().zip(projects) {
            *denied = !self.ask(rights, Some(project), path, measured).await?;
        }
        Ok(denied)
    }

    async fn ask(
        &self,
        rights: &Arc<Rights>,
        project: Option<&[u8]>,
        path: &[u8],
        measured: &mut Measured,
    ) -> Result<bool, Refused> {
        let (parts, client, by_proxy) = (self.parts, self.client, self.by_proxy);
        let about = About { parts, project, path, client, by_proxy };
        let begun = Instant::now();
        let allowed = rights.allow(self.link, &about).await;
        let from = allowed.as_ref().map_or(Judged::Asked, |(_, from)| *from);
        measured.rights(begun.elapsed(), from);
        match allowed {
            Ok((is_allowed, _)) => Ok(is_allowed),
            Err(refused) => {
                measured.failed("rights-failed");
                Err(refused)
            }
        }
    }
}
