//! The targets of a run that are still to be begun, each with its set.

use hob_core::hooks::Bytes;
use hob_hooks::{Set, Variables};

use super::super::resume::Past;
use super::super::targets::{Target, Targets};

/// The targets that are still to be begun.
pub(super) struct Queue {
    pub(super) targets: Targets,
    /// Its end was seen.
    pub(super) ended: bool,
    pub(super) past: Past,
    pub(super) set: Set,
    pub(super) variables: Variables,
}

impl Queue {
    /// The next target that has not ended, and its set.
    pub(super) fn next_one(&mut self) -> Result<Option<(Target, Set)>, String> {
        loop {
            let Some(target) = self.targets.next_one().map_err(|error| error.to_string())? else {
                return Ok(None);
            };
            if self.past.ended(&target) {
                continue;
            }
            let mut variables = self.variables.clone();
            for (name, value) in &target.params {
                let set = variables.set(name, value);
                set.map_err(|why| format!("line {}: {why}", target.line))?;
            }
            let set = Set {
                target: Bytes(target.name.clone()),
                environment: variables.environment(),
                ..self.set.clone()
            };
            return Ok(Some((target, set)));
        }
    }
}
