//! The sites that run: their directories, how they are, and their end.

use std::path::{Path, PathBuf};

use hob_core::http::counts::Counts;
use hob_core::status::Status;
use hob_os::start::Start;
use hob_os::{process, uds};
use serde_json::{Value, json};

use super::super::request::{self, ANSWER_MS, RequestError};
use super::{ASKED, front};
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show::style::Look;
use crate::{connect, show};

/// The folder of sites in the daemon's directory.
const SITES: &str = "serve";
/// How long a site may take to stop: requests that are being answered have their own grace.
const STOP_MS: u64 = 30_000;
/// The signal that ends a site.
const SIGTERM: u8 = 15;

/// The directory of a site. It ends with this, whether the site has started or not.
#[derive(Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    /// Makes that of the site of this name.
    pub(super) fn make(start: &Start, name: &str) -> Result<Directory, Failure> {
        let base = connect::directory(start);
        let sites = base.join(SITES);
        let directory = Directory(sites.join(name));
        for each in [&base, &sites, &directory.0] {
            hob_os::dir::create(each)
                .map_err(|why| Failure::new(request::not_used(each, why).to_string()))?;
        }
        Ok(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        // The last one takes the folder of sites along.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

/// A site that answers.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its first port; `None`: it listens at unix sockets only.
    pub(super) port: Option<u16>,
    pub(crate) directory: PathBuf,
    /// What its loop says of itself.
    pub(super) status: Value,
    /// What its front has counted; `None`: it does not answer.
    pub(super) counts: Option<Counts>,
}

impl Running {
    /// What a person calls it by: where it listens.
    pub(super) fn called(&self) -> String {
        match (&self.counts, self.port) {
            (Some(counts), _) if !counts.listens.is_empty() => counts.listens.join(", "),
            (_, Some(port)) => format!("port {port}"),
            (_, None) => self.directory.display().to_string(),
        }
    }

    /// Whether somebody means it by its port, or by one of the places where it listens.
    fn is_meant(&self, named: &str) -> bool {
        let listens = self.counts.iter().flat_map(|counts| &counts.listens);
        self.port.is_some_and(|port| port.to_string() == named)
            || listens.clone().any(|place| place == named)
            || listens.clone().any(|place| place.strip_prefix("unix:") == Some(named))
    }
}

/// The sites that answer, by port.
pub(super) fn running(start: &Start) -> Result<Vec<Running>, Failure> {
    let entries = std::fs::read_dir(connect::directory(start).join(SITES));
    let mut running = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let (name, directory) = (entry.file_name(), entry.path());
        let port = name.to_str().and_then(|name| name.parse().ok());
        match request::send_to(&directory, ASKED, ANSWER_MS) {
            Ok((status, _)) => {
                let counts = front::counts(&directory);
                running.push(Running { port, directory, status, counts });
            }
            // What a killed site leaves.
            Err(RequestError::NoDaemon | RequestError::Ended) => {}
            Err(error) => return Err(Failure::new(format!("{}: {error}", directory.display()))),
        }
    }
    running.sort_by(|a, b| (a.port, &a.directory).cmp(&(b.port, &b.directory)));
    Ok(running)
}

/// Those of them that are meant: the one that is named, or all.
///
/// # Errors
/// If there is none.
pub(crate) fn meant(start: &Start, named: Option<&str>) -> Result<Vec<Running>, Failure> {
    let mut running = running(start)?;
    running.retain(|site| named.is_none_or(|named| site.is_meant(named)));
    if running.is_empty() {
        return Err(Failure::new("no such site runs; `hob serve status` names those that do"));
    }
    Ok(running)
}

/// Has the sites that run write what of their access logs waits to be written.
pub(crate) fn flush(start: &Start) {
    for site in running(start).into_iter().flatten() {
        front::flush(&site.directory);
    }
}

pub(super) fn status(start: &Start, format: Format) -> Result<(), Failure> {
    let running = running(start)?;
    if format.json {
        let sites: Vec<Value> = running
            .into_iter()
            .map(|site| json!({ "port": site.port, "status": site.status, "front": site.counts }))
            .collect();
        return out_json(&format!("{}\n", json!({ "schema": "hob.serve/1", "sites": sites })));
    }
    if running.is_empty() {
        return Err(Failure::new("no site runs; `hob serve DIR` serves one"));
    }
    let look = Look::of_stdout();
    for site in running {
        let called = site.called();
        let status: Status = serde_json::from_value(site.status).map_err(|error| {
            Failure::new(format!("the site at {called} is of another build ({error})"))
        })?;
        out(&format!("{called}\n{}", show::status::status(&status, &look)))?;
        if let Some(counts) = site.counts {
            out(&format!("\n{}", show::sites::mounts::mounts(&counts, &look)))?;
        }
    }
    Ok(())
}

pub(super) fn stop(start: &Start, named: Option<&str>) -> Result<(), Failure> {
    for site in meant(start, named)? {
        let called = site.called();
        if stop_one(&site.directory)? {
            out(&format!("hob: stopped the site at {called}\n"))?;
        } else {
            return Err(Failure::new(format!("the site at {called} has not stopped yet")));
        }
    }
    Ok(())
}

/// Whether it has ended in time.
fn stop_one(directory: &Path) -> Result<bool, Failure> {
    let Ok((_, socket)) = request::send_to(directory, ASKED, ANSWER_MS) else {
        return Ok(true);
    };
    // As a service manager does: the front stops first, and ends what does not end by itself.
    let told = uds::peer_pid(&socket).and_then(process::pidfd);
    if told.and_then(|site| process::signal(site, SIGTERM)).is_err() {
        let _ = request::send_to(directory, "{\"verb\":\"stop\"}", ANSWER_MS);
    }
    Ok(request::wait_for_end(socket, STOP_MS))
}
