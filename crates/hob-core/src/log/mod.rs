//! What the daemon's own log tells of: the table of categories.

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Start, stop, another build, the configuration.
    Daemon,
    /// Which workers are started for a program, and which go.
    Pool,
    /// Processes of workers: their start, forks, readiness, end.
    Zygote,
    /// What was loaded is not what would be loaded now.
    Files,
    /// Connections to the daemon's socket.
    Connection,
    /// Messages that are refused, or end without an answer.
    Asks,
    /// Messages that are kept: given, tried again, held, dead.
    Tells,
    /// Other hosts.
    Hosts,
    /// Receipts that are posted to a collector.
    Push,
    /// Sessions.
    Sessions,
    /// Requests and connections of a site.
    Front,
    /// Who may do what at a site.
    Rights,
}

impl Category {
    /// All, in the order of their bits.
    pub const ALL: [Category; 12] = [
        Category::Daemon,
        Category::Pool,
        Category::Zygote,
        Category::Files,
        Category::Connection,
        Category::Asks,
        Category::Tells,
        Category::Hosts,
        Category::Push,
        Category::Sessions,
        Category::Front,
        Category::Rights,
    ];

    /// Its bit in the set of those that are on.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Its word in a line, which stays.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Daemon => "daemon",
            Category::Pool => "pool",
            Category::Zygote => "zygote",
            Category::Files => "files",
            Category::Connection => "connection",
            Category::Asks => "asks",
            Category::Tells => "tells",
            Category::Hosts => "hosts",
            Category::Push => "push",
            Category::Sessions => "sessions",
            Category::Front => "front",
            Category::Rights => "rights",
        }
    }

    /// What it tells, for a person.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Category::Daemon => "start, stop, another build, the configuration",
            Category::Pool => "workers that are started for a program or retired, and why",
            Category::Zygote => "processes of workers: start, fork, readiness, end",
            Category::Files => "programs whose files are not what was loaded",
            Category::Connection => "connections to the daemon that are refused",
            Category::Asks => "messages that are refused, or end without an answer",
            Category::Tells => "messages that are kept: given, tried again, held, dead",
            Category::Hosts => "the connection to other hosts, and what they ask",
            Category::Push => "receipts that are posted to a collector, and what it says",
            Category::Sessions => "sessions: start, end, clients that are refused",
            Category::Front => "connections and requests of a site that are refused",
            Category::Rights => "what is asked of who may do what at a site",
        }
    }
}

/// What stands for all of them.
const ALL: &str = "all";

/// The bits of categories, by their names.
///
/// # Errors
/// The name that is none, with those that are.
pub fn bits<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<u32, String> {
    let one = |name: &str| match name {
        ALL => Ok(u32::MAX),
        name => {
            let known = Category::ALL.into_iter().find(|each| each.name() == name);
            known.map(Category::bit).ok_or_else(|| {
                let all = Category::ALL.map(Category::name).join(", ");
                format!("no category `{name}`; there are {all}, and `{ALL}`")
            })
        }
    };
    names.into_iter().try_fold(0, |bits, name| Ok(bits | one(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_has_a_bit_and_a_word_of_its_own() {
        let mut names: Vec<_> = Category::ALL.map(Category::name).to_vec();
        for (at, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category.bit(), 1 << at);
            assert_eq!(bits([category.name()]), Ok(category.bit()));
            assert!(category.name().chars().all(|each| each.is_ascii_lowercase()));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Category::ALL.len());
    }

    #[test]
    fn names_make_bits_and_one_that_is_none_is_told() {
        assert_eq!(bits(["pool", "tells"]), Ok(Category::Pool.bit() | Category::Tells.bit()));
        assert_eq!(bits([]), Ok(0));
        assert_eq!(bits(["all"]), Ok(u32::MAX));
        let why = bits(["pool", "pools"]).unwrap_err();
        assert!(why.contains("`pools`") && why.contains("connection, asks"), "{why}");
    }
}
