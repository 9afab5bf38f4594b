//! The worlds that a program is called in beside its caller's own: which there are, which of them
//! are asked for.
//!
//! A world differs from the caller's in one thing. In each the program is run cold and warm and
//! compared, as in the caller's own; so a difference names its cause.

mod frozen;
mod reads;
mod setting;
mod trial;

/// One thing that is other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum World {
    Input(Reads),
    Environment(Variables),
    Home(Home),
    Directory,
    Arguments(Arguments),
    Process(Process),
    Link(Link),
    Time,
}

/// What is on standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Empty,
    Pipe,
    Part,
    File,
    Null,
    Closed,
}

/// What is other in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
    Added,
    Read,
    Usual,
    Order,
    Small,
}

/// Which home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    Empty,
    Site,
}

/// Which arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    Help,
    None,
}

/// What is other of what a process hands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Umask,
    Files,
    Core,
    Hup,
    Int,
    Pipe,
}

/// What a link is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Called,
    Moved,
    Replaced,
}

/// All of them, by name, in the order in which they are tried: first
/// the caller's own a while later, since what stands still there does so in the others too. What is before the first `-` is the
/// name of those that belong together.
const NAMES: [(&str, World); 26] = [
    ("time", World::Time),
    ("input-empty", World::Input(Reads::Empty)),
    ("input-pipe", World::Input(Reads::Pipe)),
    ("input-part", World::Input(Reads::Part)),
    ("input-file", World::Input(Reads::File)),
    ("input-null", World::Input(Reads::Null)),
    ("input-closed", World::Input(Reads::Closed)),
    ("environment-added", World::Environment(Variables::Added)),
    ("environment-read", World::Environment(Variables::Read)),
    ("environment-usual", World::Environment(Variables::Usual)),
    ("environment-order", World::Environment(Variables::Order)),
    ("environment-small", World::Environment(Variables::Small)),
    ("home-empty", World::Home(Home::Empty)),
    ("home-site", World::Home(Home::Site)),
    ("directory", World::Directory),
    ("arguments-help", World::Arguments(Arguments::Help)),
    ("arguments-none", World::Arguments(Arguments::None)),
    ("umask", World::Process(Process::Umask)),
    ("limits-files", World::Process(Process::Files)),
    ("limits-core", World::Process(Process::Core)),
    ("signals-hup", World::Process(Process::Hup)),
    ("signals-int", World::Process(Process::Int)),
    ("signals-pipe", World::Process(Process::Pipe)),
    ("link-called", World::Link(Link::Called)),
    ("link-moved", World::Link(Link::Moved)),
    ("link-replaced", World::Link(Link::Replaced)),
];

impl World {
    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, world)| *world == self).map_or("", |(name, _)| name)
    }

    /// Whether it is among all of them. A program may do on purpose what it was not to do when it
    /// loses its arguments (`--dry-run`), so that one is only tried where it is named.
    fn is_usual(self) -> bool {
        self != World::Arguments(Arguments::None)
    }
}

/// Which worlds are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen(pub(super) Vec<World>);

/// What `--worlds` says: `all`, `none`, or names of worlds or of what belongs together.
pub(super) fn chosen(text: &str) -> Result<Chosen, String> {
    let mut worlds = Vec::new();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let group = |name: &str| name.split('-').next() == Some(word);
        let found: Vec<World> = match word {
            "all" => usual(|_| true),
            "none" => continue,
            _ if NAMES.iter().any(|(name, _)| *name == word) => {
                NAMES.iter().filter(|(name, _)| *name == word).map(|(_, world)| *world).collect()
            }
            _ => usual(group),
        };
        if found.is_empty() {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no world `{word}`: all, none, or {}", names.join(", ")));
        }
        worlds.extend(found);
    }
    // Each once, in our order.
    let worlds = NAMES.iter().map(|(_, world)| *world).filter(|world| worlds.contains(world));
    Ok(Chosen(worlds.collect()))
}

fn usual(is_meant: impl Fn(&str) -> bool) -> Vec<World> {
    let meant = NAMES.iter().filter(|(name, world)| world.is_usual() && is_meant(name));
    meant.map(|(_, world)| *world).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_named_alone_together_or_all() {
        let names = |text: &str| -> Vec<&str> {
            chosen(text).unwrap().0.into_iter().map(World::name).collect()
        };
        assert_eq!(names("none"), [""; 0]);
        assert_eq!(names("umask,time"), ["time", "umask"]);
        assert_eq!(names("limits,limits-core"), ["limits-files", "limits-core"]);
        assert_eq!(names("all").len(), NAMES.len() - 1);
        // Without arguments a program may do in earnest what it was to try: only by its name.
        assert_eq!(names("arguments"), ["arguments-help"]);
        assert_eq!(names("arguments-none"), ["arguments-none"]);
        let wrong = chosen("time,weather").unwrap_err();
        assert!(wrong.starts_with("there is no world `weather`: all, none, or time, "), "{wrong}");
    }
}
