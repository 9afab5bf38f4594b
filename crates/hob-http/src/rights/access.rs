//! What the rights of a mount say of one request.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use hob_core::http::mounts::blobs::Asked;
use hob_core::ids::Time;
use hob_os::clock;
use hob_wire::message::Judged;
use hyper::StatusCode;
use hyper::http::request::Parts;

use super::{About, Rights};
use crate::body::{Refused, refused};
use crate::control::meter::Measured;
use crate::link::Link;

/// Projects of one list whose rights are asked for at one time.
const AT_ONE_TIME: usize = 16;

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
        let (Some(rights), Some((first, others))) = (self.of, projects.split_first()) else {
            return Ok(denied);
        };
        // The first alone: its answer often says what all others are.
        denied[0] = !self.ask(rights, Some(first), path, measured).await?;
        let (mut waiting, mut others, mut at) = (FuturesOrdered::new(), others.iter(), 1);
        loop {
            while waiting.len() < AT_ONE_TIME
                && let Some(project) = others.next()
            {
                waiting.push_back(self.judge(rights, Some(project), path));
            }
            let Some(judged) = waiting.next().await else { break };
            let (allowed, begun) = judged;
            denied[at] = !told(allowed, begun, measured)?;
            at += 1;
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
        let (allowed, begun) = self.judge(rights, project, path).await;
        told(allowed, begun, measured)
    }

    async fn judge(
        &self,
        rights: &Arc<Rights>,
        project: Option<&[u8]>,
        path: &[u8],
    ) -> (Result<(bool, Judged), Refused>, Time) {
        let (parts, client, by_proxy) = (self.parts, self.client, self.by_proxy);
        let about = About { parts, project, path, client, by_proxy };
        let begun = Time(clock::now_ns());
        let allowed = rights.allow(self.link, &about).await;
        (allowed, begun)
    }
}

/// What was judged, as the request's receipt and its log have it.
fn told(
    allowed: Result<(bool, Judged), Refused>,
    begun: Time,
    measured: &mut Measured,
) -> Result<bool, Refused> {
    let from = allowed.as_ref().map_or(Judged::Asked, |(_, from)| *from);
    measured.rights(begun, from);
    match allowed {
        Ok((is_allowed, _)) => Ok(is_allowed),
        Err(refused) => {
            measured.failed("rights-failed");
            Err(refused)
        }
    }
}
