//! `hob serve rights forget`: sites that run ask again who may do what. And rights as the front has them.

use std::collections::BTreeMap;

use clap::Subcommand;
use hob_daemon::project::rights::{self, Where};
use hob_http::client::Url;
use hob_http::rights::{Terms, User};
use hob_os::start::Start;

use super::{front, sites};
use crate::failure::Failure;
use crate::output::out;

/// What to do with rights.
#[derive(Debug, Subcommand)]
pub(crate) enum Rights {
    /// Forget what is kept, of one user or of all: the next request asks again
    Forget {
        /// Who, as the question says it: the value of the header or cookie, or the address
        user: Option<String>,
        /// The site's port, or the path of its unix socket; without one, all sites
        #[arg(long)]
        site: Option<String>,
    },
}

/// Runs the verb.
pub(crate) fn run(start: &Start, asked: &Rights) -> Result<(), Failure> {
    let Rights::Forget { user, site } = asked;
    let mut mounts = 0;
    for site in sites::meant(start, site.as_deref())? {
        let forgotten = front::forget(&site.directory, user.as_deref());
        mounts += forgotten.ok_or_else(|| {
            Failure::new(format!("the front of the site at {} does not answer", site.called()))
        })?;
    }
    if mounts == 0 {
        return Err(Failure::new("no mount that is served has rights; see docs/rights.md"));
    }
    let of = user.as_ref().map_or("all users", |_| "this user");
    let many = if mounts == 1 { "mount" } else { "mounts" };
    out(&format!("hob: the rights of {of} are forgotten, at {mounts} {many}\n"))
}

/// The rights of mounts, as the front has them.
///
/// # Errors
/// If an address is none.
pub(super) fn fronted(
    all: BTreeMap<String, rights::Rights>,
) -> Result<BTreeMap<String, Terms>, Failure> {
    let of = |(path, rights): (String, rights::Rights)| {
        let at = match rights.at {
            Where::Program(name) => hob_http::rights::Where::Program(name),
            Where::Url(url) => {
                let url = Url::parse(&url).map_err(|what| {
                    Failure::new(format!("[mount.\"{path}\"]: rights.url: {what}"))
                })?;
                hob_http::rights::Where::Url(url)
            }
        };
        let user = match rights.user {
            rights::User::Header(name, by_proxy) => User::Header(name, by_proxy),
            rights::User::Cookie(name) => User::Cookie(name),
            rights::User::Peer => User::Peer,
        };
        let terms = Terms {
            at,
            user,
            keep_us: rights.keep_us,
            keep_no_us: rights.keep_no_us,
            within_us: rights.within_us,
            waiting_max: rights.queue as usize,
        };
        Ok((path, terms))
    };
    all.into_iter().map(of).collect()
}
