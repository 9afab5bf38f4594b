//! The plan: what is decided for one call before any worker is looked at. A pure function of what
//! the daemon found out about the call, how the program stands, and the key.
//!
//! The first line that applies decides: what cannot be run is refused; what the user asked for;
//! what cannot be reproduced; how the program stands. It knows no pools and no queues: a call that
//! is planned warm can still be sent cold by the supervisor, for want of a worker.

use crate::isolation::{Name, Origin};
use crate::key::Key;
use crate::outcome::{ColdReason, RefuseReason};

/// What the daemon found out about a call. The default is a hosted program with nothing against
/// its being performed warm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// What the program is.
    pub hosted: Hosted,
    /// Whether `--cold` was given.
    pub cold: ColdAsked,
    /// Where its runtime's workers come from: one that is never forked has standbys.
    pub origin: Origin,
    /// `--isolation`, if given.
    pub isolation: Option<Name>,
    /// How the caller's groups, capabilities and confinement compare with the daemon's.
    pub context: Context,
    /// How the caller's control group compares with the daemon's.
    pub cgroup: Cgroup,
    /// How the caller's priority compares with the daemon's.
    pub priority: Priority,
    /// How the caller's hard limits compare with the daemon's.
    pub limits: HardLimits,
    /// Which descriptors the caller has open.
    pub descriptors: Descriptors,
    /// Whether the caller is traced.
    pub tracer: Tracer,
    /// Whether workers can be where the caller's terminal is.
    pub terminal: Terminal,
    /// Whether others will call with the variables that select this call's workers.
    pub variables: Variables,
}

/// What a program is to hob's runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hosted {
    /// A program that a runtime hosts, in a supported version.
    #[default]
    Yes,
    /// An executable that no runtime hosts.
    NotHosted,
    /// A hosted interpreter, used in a way that is no program (`-c`, `-`, `-i`).
    NotAProgram,
    /// A hosted interpreter of a version that the runtime does not support.
    InterpreterVersion,
    /// There is no such program.
    NotFound,
    /// It is there and cannot be executed.
    NotExecutable,
}

/// Whether `--cold` was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColdAsked {
    /// It was not.
    #[default]
    No,
    /// It was.
    Yes,
}

/// How the caller's context compares with the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context {
    /// It is the same.
    #[default]
    Equal,
    /// A worker could not take it on.
    Differs,
}

/// How the caller's control group compares with the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cgroup {
    /// It is the same, or neither has a limit that the other has not.
    #[default]
    Alike,
    /// A limit would hold for a worker that would not hold for the program cold, or the reverse.
    Limited,
}

/// How the caller's nice value and its like compare with the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// A worker can lower its own to it.
    #[default]
    Within,
    /// It is above; raising needs a privilege.
    Above,
}

/// How the caller's hard limits compare with the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardLimits {
    /// A worker can lower its own to them.
    #[default]
    Within,
    /// They are above; raising needs a privilege.
    Above,
}

/// Which descriptors the caller has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Descriptors {
    /// 0 to 2, or others too that a worker takes.
    #[default]
    Standard,
    /// Others too, which a worker would not have.
    Beyond,
}

/// Whether the caller is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tracer {
    /// It is not.
    #[default]
    None,
    /// It is: who traces wants to see the program itself.
    Attached,
}

/// Whether workers can be in the session of the caller's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminal {
    /// The caller has no terminal, or its session has a launcher.
    #[default]
    Reached,
    /// Nobody is there who could start a worker.
    Unreached,
}

/// Whether others will call with the variables that select a call's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variables {
    /// They may.
    #[default]
    Shared,
    /// One of them is another in each call.
    OfOneCall,
}

/// How a program stands with the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramState {
    /// Never learned here. A call that has a key is of a program that an earlier daemon learned.
    Unlearned,
    /// It was learned, and what was learned no longer holds.
    Stale,
    /// A call is learning it now.
    BeingLearned,
    /// Learned.
    Learned,
    /// It could not be warmed; it is not tried again for a while.
    WarmFailed,
    /// It alone is over the memory budget; it is not tried again for a while.
    OverBudget,
    /// Learned, and slower warm than cold; it is not tried again for a while.
    SlowerWarm,
    /// Learned, and the last warm call of the same work failed: how it ends cold tells why.
    Compared,
    /// Learned, and seen to fail warm where it succeeds cold.
    Differs,
    /// The daemon is stopping.
    Stopping,
}

/// The decision for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// By a worker of this key.
    Warm(Key),
    /// By the client, for this reason.
    Cold(ColdReason),
    /// Not at all.
    Refuse(RefuseReason),
}

/// Decides.
#[must_use]
pub fn plan(facts: &Facts, standing: ProgramState, key: Option<Key>) -> Plan {
    match facts.hosted {
        Hosted::NotFound => return Plan::Refuse(RefuseReason::NotFound),
        Hosted::NotExecutable => return Plan::Refuse(RefuseReason::NotExecutable),
        Hosted::Yes | Hosted::NotHosted | Hosted::NotAProgram | Hosted::InterpreterVersion => {}
    }
    if let Some(reason) = asked(facts).or_else(|| obstacle(facts)) {
        return Plan::Cold(reason);
    }
    let by_standing = match (standing, key) {
        (ProgramState::Stopping, _) => Plan::Cold(ColdReason::Stopping),
        (ProgramState::Learned | ProgramState::Unlearned, Some(key)) => Plan::Warm(key),
        (ProgramState::Unlearned, None) => Plan::Cold(ColdReason::Learning),
        (ProgramState::Stale, _) => Plan::Cold(ColdReason::Stale),
        (ProgramState::BeingLearned, _) => Plan::Cold(ColdReason::BeingLearned),
        (ProgramState::OverBudget, _) => Plan::Cold(ColdReason::Memory),
        // Whoever asks for an isolation gets it: it may matter more than speed.
        (ProgramState::SlowerWarm | ProgramState::Compared | ProgramState::Differs, Some(key))
            if facts.isolation.is_some() =>
        {
            Plan::Warm(key)
        }
        (ProgramState::SlowerWarm, _) => Plan::Cold(ColdReason::SlowerWarm),
        (ProgramState::Compared, _) => Plan::Cold(ColdReason::Compared),
        (ProgramState::Differs, _) => Plan::Cold(ColdReason::Differs),
        // Learned without a key: the daemon lost its lesson, so there is nothing to warm from.
        (ProgramState::WarmFailed, _) | (ProgramState::Learned, None) => {
            Plan::Cold(ColdReason::WarmFailed)
        }
    };
    match (by_standing, facts.terminal, facts.variables) {
        // Not earlier: such a call can still learn.
        (Plan::Warm(_), Terminal::Unreached, _) => Plan::Cold(ColdReason::Terminal),
        // Its pool would be used once.
        (Plan::Warm(_), _, Variables::OfOneCall) => Plan::Cold(ColdReason::Variables),
        (plan, ..) => plan,
    }
}

/// What the user asked for.
fn asked(facts: &Facts) -> Option<ColdReason> {
    if facts.cold == ColdAsked::Yes {
        return Some(ColdReason::Asked);
    }
    match facts.isolation {
        Some(Name::Spawn) => Some(ColdReason::SpawnAsked),
        Some(Name::Standby | Name::Fork | Name::Prefork | Name::Session) | None => None,
    }
}

/// What a worker could not reproduce.
fn obstacle(facts: &Facts) -> Option<ColdReason> {
    match facts.hosted {
        Hosted::NotHosted => return Some(ColdReason::NotHosted),
        Hosted::NotAProgram => return Some(ColdReason::NotAProgram),
        Hosted::InterpreterVersion => return Some(ColdReason::InterpreterVersion),
        Hosted::Yes | Hosted::NotFound | Hosted::NotExecutable => {}
    }
    if facts.context == Context::Differs {
        return Some(ColdReason::Context);
    }
    if facts.cgroup == Cgroup::Limited {
        return Some(ColdReason::Cgroup);
    }
    if facts.priority == Priority::Above {
        return Some(ColdReason::Priority);
    }
    if facts.limits == HardLimits::Above {
        return Some(ColdReason::Limits);
    }
    if facts.descriptors == Descriptors::Beyond {
        return Some(ColdReason::Descriptors);
    }
    match facts.tracer {
        Tracer::Attached => Some(ColdReason::Traced),
        Tracer::None => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key([7; 16]);
    const STANDINGS: [ProgramState; 10] = [
        ProgramState::Unlearned,
        ProgramState::Stale,
        ProgramState::BeingLearned,
        ProgramState::Learned,
        ProgramState::WarmFailed,
        ProgramState::OverBudget,
        ProgramState::SlowerWarm,
        ProgramState::Compared,
        ProgramState::Differs,
        ProgramState::Stopping,
    ];

    fn check(facts: Facts, standing: ProgramState, key: Option<Key>, expected: Plan) {
        assert_eq!(plan(&facts, standing, key), expected, "{facts:?} {standing:?} {key:?}");
    }

    #[test]
    fn a_program_that_stands_well_is_warm_and_each_other_standing_has_its_reason() {
        let cold = Plan::Cold;
        let table = [
            (ProgramState::Unlearned, cold(ColdReason::Learning), Plan::Warm(KEY)),
            (ProgramState::Stale, cold(ColdReason::Stale), cold(ColdReason::Stale)),
            (
                ProgramState::BeingLearned,
                cold(ColdReason::BeingLearned),
                cold(ColdReason::BeingLearned),
            ),
            (ProgramState::Learned, cold(ColdReason::WarmFailed), Plan::Warm(KEY)),
            (ProgramState::WarmFailed, cold(ColdReason::WarmFailed), cold(ColdReason::WarmFailed)),
            (ProgramState::OverBudget, cold(ColdReason::Memory), cold(ColdReason::Memory)),
            (ProgramState::SlowerWarm, cold(ColdReason::SlowerWarm), cold(ColdReason::SlowerWarm)),
            (ProgramState::Compared, cold(ColdReason::Compared), cold(ColdReason::Compared)),
            (ProgramState::Differs, cold(ColdReason::Differs), cold(ColdReason::Differs)),
            (ProgramState::Stopping, cold(ColdReason::Stopping), cold(ColdReason::Stopping)),
        ];
        for (standing, without_key, with_key) in table {
            check(Facts::default(), standing, None, without_key);
            check(Facts::default(), standing, Some(KEY), with_key);
        }
    }

    #[test]
    fn one_fact_against_it_sends_a_call_cold_however_its_program_stands() {
        let plain = Facts::default();
        let table = [
            (Facts { cold: ColdAsked::Yes, ..plain }, ColdReason::Asked),
            (Facts { isolation: Some(Name::Spawn), ..plain }, ColdReason::SpawnAsked),
            (Facts { hosted: Hosted::NotHosted, ..plain }, ColdReason::NotHosted),
            (Facts { hosted: Hosted::NotAProgram, ..plain }, ColdReason::NotAProgram),
            (Facts { hosted: Hosted::InterpreterVersion, ..plain }, ColdReason::InterpreterVersion),
            (Facts { context: Context::Differs, ..plain }, ColdReason::Context),
            (Facts { cgroup: Cgroup::Limited, ..plain }, ColdReason::Cgroup),
            (Facts { priority: Priority::Above, ..plain }, ColdReason::Priority),
            (Facts { limits: HardLimits::Above, ..plain }, ColdReason::Limits),
            (Facts { descriptors: Descriptors::Beyond, ..plain }, ColdReason::Descriptors),
            (Facts { tracer: Tracer::Attached, ..plain }, ColdReason::Traced),
        ];
        for (facts, reason) in table {
            for standing in STANDINGS {
                check(facts, standing, Some(KEY), Plan::Cold(reason));
            }
        }
    }

    #[test]
    fn a_terminal_that_cannot_be_reached_sends_cold_what_would_be_warm_and_nothing_else() {
        for isolation in [None, Some(Name::Fork)] {
            let reached = Facts { isolation, ..Facts::default() };
            let unreached = Facts { terminal: Terminal::Unreached, ..reached };
            for standing in STANDINGS {
                for key in [None, Some(KEY)] {
                    let expected = match plan(&reached, standing, key) {
                        Plan::Warm(_) => Plan::Cold(ColdReason::Terminal),
                        other @ (Plan::Cold(_) | Plan::Refuse(_)) => other,
                    };
                    check(unreached, standing, key, expected);
                }
            }
        }
    }

    #[test]
    fn variables_of_one_call_send_cold_what_would_be_warm_and_nothing_else() {
        let shared = Facts::default();
        let own = Facts { variables: Variables::OfOneCall, ..shared };
        for standing in STANDINGS {
            for key in [None, Some(KEY)] {
                let expected = match plan(&shared, standing, key) {
                    Plan::Warm(_) => Plan::Cold(ColdReason::Variables),
                    other @ (Plan::Cold(_) | Plan::Refuse(_)) => other,
                };
                check(own, standing, key, expected);
            }
        }
    }

    #[test]
    fn other_names_are_no_reason_to_run_cold() {
        for name in [Name::Standby, Name::Fork, Name::Prefork, Name::Session] {
            let facts = Facts { isolation: Some(name), ..Facts::default() };
            check(facts, ProgramState::Learned, Some(KEY), Plan::Warm(KEY));
            check(facts, ProgramState::SlowerWarm, Some(KEY), Plan::Warm(KEY));
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused_even_if_cold_is_asked() {
        for (hosted, reason) in [
            (Hosted::NotFound, RefuseReason::NotFound),
            (Hosted::NotExecutable, RefuseReason::NotExecutable),
        ] {
            let facts = Facts { hosted, cold: ColdAsked::Yes, ..Facts::default() };
            for standing in STANDINGS {
                check(facts, standing, Some(KEY), Plan::Refuse(reason));
            }
        }
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let hosted = prop::sample::select(vec![
            Hosted::Yes,
            Hosted::NotHosted,
            Hosted::NotAProgram,
            Hosted::InterpreterVersion,
            Hosted::NotFound,
            Hosted::NotExecutable,
        ]);
        let isolation = prop::option::of(prop::sample::select(Name::ALL.to_vec()));
        let cold = prop::sample::select(vec![ColdAsked::No, ColdAsked::Yes]);
        let context = prop::sample::select(vec![Context::Equal, Context::Differs]);
        let limits = prop::sample::select(vec![HardLimits::Within, HardLimits::Above]);
        let descriptors = prop::sample::select(vec![Descriptors::Standard, Descriptors::Beyond]);
        let tracer = prop::sample::select(vec![Tracer::None, Tracer::Attached]);
        let cgroup = prop::sample::select(vec![Cgroup::Alike, Cgroup::Limited]);
        let priority = prop::sample::select(vec![Priority::Within, Priority::Above]);
        let compared = (context, cgroup, priority, limits);
        let terminal = prop::sample::select(vec![Terminal::Reached, Terminal::Unreached]);
        let variables = prop::sample::select(vec![Variables::Shared, Variables::OfOneCall]);
        let origin = prop::sample::select(vec![Origin::Fork, Origin::Exec]);
        let last = (terminal, variables, origin);
        (hosted, cold, isolation, compared, descriptors, tracer, last).prop_map(
            |(
                hosted,
                cold,
                isolation,
                (context, cgroup, priority, limits),
                descriptors,
                tracer,
                (terminal, variables, origin),
            )| {
                Facts {
                    hosted,
                    origin,
                    cold,
                    isolation,
                    context,
                    cgroup,
                    priority,
                    limits,
                    descriptors,
                    tracer,
                    terminal,
                    variables,
                }
            },
        )
    }

    proptest! {
        // Some 9,000 facts, and few of them plan anything but what the first fact against it says.
        #![proptest_config(ProptestConfig::with_cases(50_000))]

        #[test]
        fn a_warm_plan_has_the_callers_key_and_nothing_against_it(
            facts in any_facts(),
            standing in prop::sample::select(STANDINGS.to_vec()),
            key in prop::option::of(any::<[u8; 16]>().prop_map(Key)),
        ) {
            match plan(&facts, standing, key) {
                Plan::Warm(warm) => {
                    prop_assert_eq!(Some(warm), key);
                    let Facts { isolation, origin, .. } = facts;
                    let warmable = Facts { isolation, origin, ..Facts::default() };
                    prop_assert_eq!(facts, warmable);
                    prop_assert_ne!(facts.isolation, Some(Name::Spawn));
                    let avoided = matches!(
                        standing,
                        ProgramState::SlowerWarm | ProgramState::Compared | ProgramState::Differs
                    );
                    let asked = avoided && facts.isolation.is_some();
                    let good = matches!(standing, ProgramState::Learned | ProgramState::Unlearned);
                    prop_assert!(good || asked);
                }
                Plan::Cold(_) => {
                    let runs = !matches!(facts.hosted, Hosted::NotFound | Hosted::NotExecutable);
                    prop_assert!(runs);
                }
                Plan::Refuse(_) => {
                    let refused = matches!(facts.hosted, Hosted::NotFound | Hosted::NotExecutable);
                    prop_assert!(refused);
                }
            }
        }

        #[test]
        fn only_a_plain_call_of_a_new_or_stale_program_learns(
            facts in any_facts(),
            standing in prop::sample::select(STANDINGS.to_vec()),
        ) {
            if let Plan::Cold(ColdReason::Learning | ColdReason::Stale) = plan(&facts, standing, None) {
                prop_assert!(matches!(standing, ProgramState::Unlearned | ProgramState::Stale));
                // Whoever learns is the caller's own process: its terminal is in reach.
                let Facts { isolation, terminal, variables, origin, .. } = facts;
                let good = Facts { isolation, terminal, variables, origin, ..Facts::default() };
                prop_assert_eq!(facts, good);
            }
        }
    }
}
