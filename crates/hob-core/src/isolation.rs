//! Isolation: the five names that users choose by, and the recipe that they are lowered to.
//!
//! The question is *what can call B see of call A?* A name is lowered once, when a call is
//! planned; after that no code knows the names, except to show them.

/// What users choose by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// A process of its own, started for the call: cold.
    Spawn,
    /// A preloaded process of its own, started ahead.
    Standby,
    /// A fork of a zygote.
    Fork,
    /// A worker that performs several calls.
    Prefork,
    /// A worker that keeps its state until the session closes.
    Session,
}

/// How many calls a `prefork` worker performs before it is replaced.
pub const PREFORK_USES: u32 = 256;

impl Name {
    /// Every name, for tables and tests.
    pub const ALL: [Name; 5] =
        [Name::Spawn, Name::Standby, Name::Fork, Name::Prefork, Name::Session];

    /// The word for it, as on the command line and in receipts.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Name::Spawn => "spawn",
            Name::Standby => "standby",
            Name::Fork => "fork",
            Name::Prefork => "prefork",
            Name::Session => "session",
        }
    }

    /// The name behind a word.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Name> {
        Name::ALL.into_iter().find(|name| name.code() == code)
    }

    /// The recipe of this name, with `ahead` workers waiting.
    #[must_use]
    pub fn lower(self, ahead: u32) -> Recipe {
        match self {
            Name::Spawn => Recipe { origin: Origin::Exec, ahead: 0, uses: Uses::Once },
            Name::Standby => Recipe { origin: Origin::Exec, ahead, uses: Uses::Once },
            Name::Fork => Recipe { origin: Origin::Fork, ahead, uses: Uses::Once },
            Name::Prefork => {
                Recipe { origin: Origin::Fork, ahead, uses: Uses::Times(PREFORK_USES) }
            }
            Name::Session => Recipe { origin: Origin::Fork, ahead: 0, uses: Uses::Unlimited },
        }
    }
}

/// Where a worker comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Origin {
    /// A new interpreter, which preloads by itself.
    Exec,
    /// A fork of the pool's zygote.
    #[default]
    Fork,
}

/// How many calls a worker performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Uses {
    /// One; then it ends.
    Once,
    /// So many, less some jitter; see [`crate::pool::recycle`].
    Times(u32),
    /// Until it is told to end.
    Unlimited,
}

/// What the core works by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Recipe {
    /// Where a worker comes from.
    pub origin: Origin,
    /// How many workers may wait ahead of calls.
    pub ahead: u32,
    /// How many calls each performs.
    pub uses: Uses,
}

impl Recipe {
    /// The name to show: `standby` with nothing ahead is a `spawn`.
    #[must_use]
    pub fn name(self) -> Name {
        match (self.uses, self.origin) {
            (Uses::Once, Origin::Exec) if self.ahead == 0 => Name::Spawn,
            (Uses::Once, Origin::Exec) => Name::Standby,
            (Uses::Once, Origin::Fork) => Name::Fork,
            (Uses::Times(_), Origin::Exec | Origin::Fork) => Name::Prefork,
            (Uses::Unlimited, Origin::Exec | Origin::Fork) => Name::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_survives_being_lowered() {
        for name in Name::ALL {
            assert_eq!(name.lower(3).name(), name);
            assert_eq!(Name::from_code(name.code()), Some(name));
        }
        assert_eq!(Name::from_code("Fork"), None);
    }

    #[test]
    fn a_standby_with_nothing_ahead_is_a_spawn() {
        assert_eq!(Name::Standby.lower(0), Name::Spawn.lower(7));
        assert_eq!(Name::Standby.lower(0).name(), Name::Spawn);
        assert_eq!(Name::Fork.lower(0).name(), Name::Fork);
    }

    #[test]
    fn only_prefork_and_session_are_used_twice() {
        for name in Name::ALL {
            let once = name.lower(1).uses == Uses::Once;
            assert_eq!(once, !matches!(name, Name::Prefork | Name::Session), "{name:?}");
        }
    }
}
