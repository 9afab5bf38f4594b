//! A verdict as data: what `hob verify --json` prints, and what is kept of it.

use serde::{Deserialize, Serialize};

use super::compare::{Aspect, Verdict};

/// The name of the format.
pub(super) const SCHEMA: &str = "hob.verify/1";

/// A verdict: what `hob verify --json` prints, and what is kept of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// [`SCHEMA`].
    pub(super) schema: String,
    /// When: RFC 3339, UTC.
    pub(super) at: String,
    /// Of what.
    pub(super) program: ProgramPart,
    /// The verdict.
    pub(super) verdict: Verdict,
    /// Why it was never warm: the reason code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// How often it was run.
    pub(super) runs: Runs,
    /// What was compared.
    pub(super) aspects: Vec<Aspect>,
    /// What was found in other worlds.
    #[serde(default)]
    pub(super) worlds: Vec<WorldPart>,
    /// What the verdict is about.
    pub(super) identity: Identity,
    /// Whether it still holds; only in what is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holds: Option<bool>,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// A program, as in receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramPart {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) target: String,
    pub(super) runtime: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) interpreter: Option<String>,
    pub(super) arguments: usize,
}

/// How often it was run, and how long the middle run took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Runs {
    pub(super) cold: usize,
    pub(super) warm: usize,
    /// Until it was warm: learned from, or cold for another reason.
    pub(super) other: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cold_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warm_us: Option<u64>,
}

/// What became of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Found {
    /// The program was the same warm as cold.
    #[serde(rename = "same")]
    Same,
    /// The cold runs differ among themselves; the rest, if any, is the same.
    #[serde(rename = "varies by itself")]
    Varies,
    /// hob runs the program cold there.
    #[serde(rename = "cold")]
    Cold,
    /// It was not tried.
    #[serde(rename = "not tried")]
    NotTried,
    /// What each cold run has anew is the same in all warm ones.
    #[serde(rename = "frozen")]
    Frozen,
    /// A run through hob was otherwise than all cold runs.
    #[serde(rename = "differs")]
    Differs,
}

impl Found {
    /// The word for it, as in the JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Found::Same => "same",
            Found::Varies => "varies by itself",
            Found::Cold => "cold",
            Found::NotTried => "not tried",
            Found::Frozen => "frozen",
            Found::Differs => "differs",
        }
    }

    /// What it makes of the verdict over all: a world that is cold, or was not tried, is no fault.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Found::Same | Found::Cold | Found::NotTried => Verdict::Same,
            Found::Varies => Verdict::Varies,
            Found::Frozen | Found::Differs => Verdict::Differs,
        }
    }

    pub(super) fn of(verdict: Verdict) -> Found {
        match verdict {
            Verdict::Same => Found::Same,
            Verdict::Varies => Found::Varies,
            Verdict::NeverWarm => Found::Cold,
            Verdict::Frozen => Found::Frozen,
            Verdict::Differs => Found::Differs,
        }
    }
}

/// A world, and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorldPart {
    /// Its name.
    pub(super) name: String,
    /// What was other, in words.
    pub(super) varied: String,
    /// The verdict.
    pub(super) verdict: Found,
    /// Why it is cold: the reason code; or why it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// The names of the parts that differ or are frozen.
    pub(super) different: Vec<String>,
    /// What was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aspects: Vec<Aspect>,
    /// How often it was run.
    pub(super) runs: Runs,
}

impl WorldPart {
    pub(super) fn not_tried(world: &str, reason: impl Into<String>) -> WorldPart {
        WorldPart {
            name: world.to_owned(),
            varied: String::new(),
            verdict: Found::NotTried,
            reason: Some(reason.into()),
            different: Vec::new(),
            aspects: Vec::new(),
            runs: Runs::default(),
        }
    }
}

/// What a verdict is about: it holds while this is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The script: a digest of its content. A module is found by its interpreter, and has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) script: Option<String>,
    /// The interpreter, or the executable: size, time and inode.
    pub(super) interpreter: String,
    /// hob's own build.
    pub(super) build: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_to_differ_is_a_fault() {
        for (found, verdict) in [
            (Found::Cold, Verdict::Same),
            (Found::NotTried, Verdict::Same),
            (Found::Frozen, Verdict::Differs),
        ] {
            assert_eq!(found.verdict(), verdict);
        }
    }
}
