//! Who performs the sets of a run: a source of ended sets, which a round drives and listens to.

use std::time::Duration;

use hob_hooks::{Connect, Limits, ParallelHandle, ParallelRunner, WorkSource};
use rustix::fd::BorrowedFd;

use super::super::run::{Watches, runner_failed};
use super::hosts::{self, Hosts};
use crate::failure::Failure;

/// What performs sets. Each set that it takes of a [`WorkSource`] begins and ends there as an event.
pub(super) enum Performer {
    /// Hooks run on this host.
    Here(Box<ParallelRunner>),
    /// They run on others.
    Hosts(Box<Hosts>),
}

impl Performer {
    /// One of this host.
    pub(super) fn here(limits: Limits, connect: Option<Connect>) -> Result<Performer, Failure> {
        let mut runner = ParallelRunner::new(limits).map_err(|error| runner_failed(&error))?;
        if let Some(connect) = connect {
            runner.warm_through(connect);
        }
        Ok(Performer::Here(Box::new(runner)))
    }

    /// For who ends the run before its time.
    pub(super) fn stop(&self) -> Stop {
        match self {
            Performer::Here(runner) => Stop::Here(runner.handle()),
            Performer::Hosts(hosts) => Stop::Hosts(hosts.stop()),
        }
    }

    /// Performs all that the source has. Says why not, where sets are left that nobody has ended.
    pub(super) fn run(self, source: &mut dyn WorkSource) -> Result<Option<String>, Failure> {
        match self {
            Performer::Here(runner) => {
                runner.run(source).map_err(|error| runner_failed(&error)).map(|()| None)
            }
            Performer::Hosts(hosts) => Ok(hosts.run(source)),
        }
    }
}

impl Watches for Performer {
    fn watch(&mut self, descriptor: BorrowedFd<'_>, number: u32) -> rustix::io::Result<()> {
        match self {
            Performer::Here(runner) => runner.first().watch(descriptor, number),
            Performer::Hosts(hosts) => hosts.watch(descriptor, number),
        }
    }
}

/// Ends a performer's work before its time.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// On this host.
    Here(ParallelHandle),
    /// On others.
    Hosts(hosts::Stop),
}

impl Stop {
    /// Nothing more is begun.
    pub(super) fn drain(&self) {
        match self {
            Stop::Here(handle) => handle.drain(),
            Stop::Hosts(stop) => stop.drain(),
        }
    }

    /// What runs is ended at once.
    pub(super) fn end(&self) {
        match self {
            Stop::Here(handle) => handle.cancel_all(Duration::ZERO),
            Stop::Hosts(stop) => stop.end(),
        }
    }
}
