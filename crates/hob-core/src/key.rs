//! The key: what makes a warm worker valid for a call.
//!
//! A key is a hash over labelled parts. Every part carries its label and its length, so two
//! different lists of parts are never the same bytes. The hash is FNV-1a of 128 bits: keys never
//! leave the user's own daemon, and who could choose colliding parts could as well run the other
//! program. A key is deterministic over runs and machines; values cannot be read back from it.

use core::fmt;
use std::collections::BTreeSet;

use hob_wire::strings::Strings;

/// What makes a warm worker valid for a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// A part of a key. The number is hashed: it never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Part {
    /// What is called: the resolved script or module.
    Program = 1,
    /// The interpreter's resolved path.
    Interpreter = 2,
    /// One option of the interpreter, in order.
    Option = 3,
    /// The virtual environment's directory.
    VirtualEnv = 4,
    /// The working directory, for programs whose warm state depends on it.
    Directory = 5,
    /// What a worker cannot take on afterwards: user, groups, capabilities, namespaces.
    Context = 6,
    /// What the warm state was made from.
    Fingerprint = 7,
    /// A variable that is set: `NAME=value`.
    Set = 8,
    /// A variable that was read and is not set: `NAME`.
    Unset = 9,
    /// The terminal's session that the workers live in.
    Session = 10,
    /// The first argument, for programs whose imports ask for it.
    FirstArgument = 12,
    /// How many arguments there are, likewise.
    ArgumentCount = 13,
    /// An argument that decides what is loaded.
    Argument = 14,
    /// That a standard stream is a terminal, for programs whose imports look.
    Streams = 11,
}

/// Variables that the interpreter, the loader or a native library reads by itself, where no
/// recorder sees it. The time zone is one: a module may work out the local zone while it is loaded.
/// `HOME` is another: an interpreter looks for its user's own packages there.
pub const ALWAYS: [&str; 9] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOCPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GOTO_NUM_THREADS",
    "TZ",
    "TZDIR",
];

/// Families of such variables: of the loader, of the libraries behind numpy, of OpenSSL (whose
/// configuration is read when it is loaded), and of what else is written in C or Rust and
/// configured before its first use.
pub const ALWAYS_PREFIXES: [&str; 21] = [
    "LD_",
    "LC_",
    "MALLOC_",
    "OPENBLAS_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "BLIS_",
    "NUMEXPR_",
    "VECLIB_",
    "NPY_",
    "OPENSSL_",
    "CUDA_",
    "GRPC_",
    "ARROW_",
    "POLARS_",
    "RAYON_",
    "GDAL_",
    "PROJ_",
    "HDF5_",
];

/// Variables that are part of every key of one runtime, as its row names them; a last `*` makes a
/// family.
pub type Own = &'static [&'static str];

/// Whether a variable is part of every key of a runtime, read or not.
#[must_use]
pub fn selects(name: &[u8], own: Own) -> bool {
    let is_own = |own: &&str| match own.strip_suffix('*') {
        Some(family) => name.starts_with(family.as_bytes()),
        None => own.as_bytes() == name,
    };
    ALWAYS.iter().any(|always| always.as_bytes() == name)
        || ALWAYS_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
        || own.iter().any(is_own)
}

/// What stands for all variables in a list of those that were read: somebody went through the
/// whole environment.
pub const WHOLE: &[u8] = b"*";

/// What shells set anew in every directory and for every command.
const VOLATILE: [&[u8]; 4] = [b"_", b"OLDPWD", b"PWD", b"SHLVL"];

/// Whether a variable is part of the key where these were read while the program was preloaded.
#[must_use]
pub fn counts(name: &[u8], read: &BTreeSet<Vec<u8>>, own: Own) -> bool {
    selects(name, own) || read.contains(name) || (read.contains(WHOLE) && !VOLATILE.contains(&name))
}

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Makes a [`Key`] out of parts, in the order in which they are absorbed.
#[derive(Debug, Clone)]
pub struct KeyBuilder {
    state: u128,
}

impl Default for KeyBuilder {
    fn default() -> Self {
        KeyBuilder { state: OFFSET }
    }
}

impl KeyBuilder {
    /// A builder that has absorbed nothing.
    #[must_use]
    pub fn new() -> Self {
        KeyBuilder::default()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Absorbs one part.
    pub fn absorb(&mut self, part: Part, value: &[u8]) -> &mut Self {
        self.bytes(&[part as u8]);
        self.bytes(&(value.len() as u64).to_le_bytes());
        self.bytes(value);
        self
    }

    /// Absorbs the variables that count: those that are part of every key, the runtime's `own`
    /// among them, and those that were `read` while the program was preloaded, also when they are
    /// not set. Their order does not matter, unless all were read, or a name stands there twice.
    pub fn select_env(&mut self, env: &Strings, read: &BTreeSet<Vec<u8>>, own: Own) -> &mut Self {
        let set: Vec<(&[u8], &[u8])> = env
            .iter()
            .map(|entry| (name_of(entry), entry))
            .filter(|(name, _)| counts(name, read, own))
            .collect();
        let mut sorted = set.clone();
        // Stable: of two entries of one name, the first is what `getenv` finds.
        sorted.sort_by_key(|(name, _)| *name);
        // A module that goes through all of them sees their order.
        for (_, entry) in if read.contains(WHOLE) { &set } else { &sorted } {
            self.absorb(Part::Set, entry);
        }
        for name in read {
            if sorted.binary_search_by_key(&name.as_slice(), |(name, _)| name).is_err() {
                self.absorb(Part::Unset, name);
            }
        }
        self
    }

    /// The key of what was absorbed.
    #[must_use]
    pub fn finish(&self) -> Key {
        Key(self.state.to_be_bytes())
    }
}

/// The name in `NAME=value`; an entry without `=` is all name.
fn name_of(entry: &[u8]) -> &[u8] {
    let end = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
    &entry[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: Own = &["LISP*", "LISP_HOME", "FORTH_ENV"];

    fn env_key(env: &[&str], read: &[&str]) -> Key {
        let env: Strings = env.iter().collect();
        let read = read.iter().map(|name| name.as_bytes().to_vec()).collect();
        KeyBuilder::new().select_env(&env, &read, OWN).finish()
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of the FNV authors: "" and "a".
        assert_eq!(KeyBuilder::new().finish().to_string(), "6c62272e07bb014262b821756295c58d");
        let mut builder = KeyBuilder::new();
        builder.bytes(b"a");
        assert_eq!(builder.finish().to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(format!("{:?}", builder.finish()), "Key(d228cb696f1a8caf78912b704e4a8964)");
    }

    #[test]
    fn a_boundary_between_parts_counts() {
        let one =
            KeyBuilder::new().absorb(Part::Program, b"ab").absorb(Part::Option, b"c").finish();
        let two =
            KeyBuilder::new().absorb(Part::Program, b"a").absorb(Part::Option, b"bc").finish();
        let label = KeyBuilder::new().absorb(Part::Program, b"ab").absorb(Part::Set, b"c").finish();
        assert!(one != two && one != label);
    }

    #[test]
    fn variables_that_nobody_read_do_not_count() {
        assert_eq!(env_key(&["PATH=/a", "TERM=x"], &[]), env_key(&[], &[]));
        assert_eq!(env_key(&["TMPDIR=/t", "VIRTUAL_ENV=/v"], &[]), env_key(&[], &[]));
    }

    #[test]
    fn all_variables_count_where_the_whole_environment_was_read() {
        let of = |env| env_key(env, &["*"]);
        assert_ne!(of(&["A=1"]), of(&["A=1", "B=1"]));
        assert_ne!(of(&["A=1"]), of(&["A=2"]));
        assert_eq!(of(&["A=1", "PWD=/a", "_=/x"]), of(&["A=1", "PWD=/b", "SHLVL=2"]));
        assert_ne!(of(&["A=1", "B=1"]), of(&["B=1", "A=1"]), "their order was seen");
        assert_eq!(env_key(&["A=1", "B=1"], &["A", "B"]), env_key(&["B=1", "A=1"], &["A", "B"]));
        assert_ne!(env_key(&["PWD=/a"], &["*", "PWD"]), env_key(&["PWD=/b"], &["*", "PWD"]));
    }

    #[test]
    fn variables_that_were_read_count() {
        assert_ne!(env_key(&["PAGER=/a"], &["PAGER"]), env_key(&["PAGER=/b"], &["PAGER"]));
        assert_ne!(env_key(&["PAGER="], &["PAGER"]), env_key(&[], &["PAGER"]));
        assert_ne!(env_key(&[], &["PAGER"]), env_key(&[], &[]));
        assert_eq!(env_key(&["PAGERS=1"], &["PAGER"]), env_key(&[], &["PAGER"]));
    }

    #[test]
    fn what_an_interpreter_reads_at_start_always_counts() {
        for name in [
            "LISPPATH",
            "LISP_HOME",
            "FORTH_ENV",
            "LD_PRELOAD",
            "LC_ALL",
            "LANG",
            "LANGUAGE",
            "MALLOC_ARENA_MAX",
            "GLIBC_TUNABLES",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "LOCPATH",
            "GCONV_PATH",
            "GOTO_NUM_THREADS",
            "GOMP_SPINCOUNT",
            "KMP_AFFINITY",
            "BLIS_NUM_THREADS",
            "NUMEXPR_MAX_THREADS",
            "VECLIB_MAXIMUM_THREADS",
            "NPY_DISABLE_CPU_FEATURES",
            "OPENSSL_CONF",
            "CUDA_VISIBLE_DEVICES",
            "GRPC_VERBOSITY",
            "ARROW_DEFAULT_MEMORY_POOL",
            "POLARS_MAX_THREADS",
            "RAYON_NUM_THREADS",
            "GDAL_DATA",
            "PROJ_LIB",
            "HDF5_USE_FILE_LOCKING",
            "TZ",
            "TZDIR",
            "HOME",
        ] {
            assert!(selects(name.as_bytes(), OWN), "{name}");
            assert_ne!(env_key(&[&format!("{name}=1")], &[]), env_key(&[], &[]), "{name}");
        }
        for name in [
            "TMPDIR",
            "XDG_CACHE_HOME",
            "SSL_CERT_FILE",
            "PATH",
            "LANGX",
            "XLD_",
            "",
            "VIRTUAL_ENV",
        ] {
            assert!(!selects(name.as_bytes(), OWN), "{name}");
        }
    }

    #[test]
    fn the_order_of_the_environment_does_not_matter() {
        assert_eq!(env_key(&["LANG=C", "A=1"], &["A"]), env_key(&["A=1", "LANG=C"], &["A"]));
        assert_ne!(env_key(&["LANG=C", "LANG=D"], &[]), env_key(&["LANG=D", "LANG=C"], &[]));
    }

    fn key_of(parts: &[(Part, Vec<u8>)]) -> Key {
        let mut builder = KeyBuilder::new();
        for (part, value) in parts {
            builder.absorb(*part, value);
        }
        builder.finish()
    }

    fn any_parts() -> impl Strategy<Value = Vec<(Part, Vec<u8>)>> {
        let part = prop::sample::select(vec![
            Part::Program,
            Part::Interpreter,
            Part::Option,
            Part::VirtualEnv,
            Part::Directory,
            Part::Context,
            Part::Fingerprint,
            Part::Set,
            Part::Unset,
        ]);
        prop::collection::vec((part, prop::collection::vec(0u8..4, 0..4)), 0..5)
    }

    proptest! {
        #[test]
        fn keys_are_equal_exactly_when_their_parts_are(one in any_parts(), two in any_parts()) {
            prop_assert_eq!(key_of(&one) == key_of(&two), one == two);
        }

        #[test]
        fn a_variable_counts_exactly_when_it_is_selected(
            name in "[A-Z_]{1,8}",
            value in "[a-z]{0,3}",
            read in any::<bool>(),
        ) {
            let entry = format!("{name}={value}");
            let read_names: Vec<&str> = if read { vec![&name] } else { vec![] };
            let counts = read || selects(name.as_bytes(), OWN);
            let differs = env_key(&[&entry], &read_names) != env_key(&[], &read_names);
            prop_assert_eq!(differs, counts);
        }

        #[test]
        fn shuffling_different_variables_changes_nothing(
            values in prop::collection::btree_map("[A-Z]{1,4}", "[a-z]{0,3}", 0..6),
            seed in any::<u64>(),
        ) {
            let entries: Vec<String> =
                values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let sorted: Vec<&str> = entries.iter().map(String::as_str).collect();
            let mut shuffled = sorted.clone();
            if !shuffled.is_empty() {
                let by = usize::try_from(seed % shuffled.len() as u64).unwrap();
                shuffled.rotate_left(by);
                shuffled.reverse();
            }
            let read: Vec<&str> = values.keys().map(String::as_str).collect();
            prop_assert_eq!(env_key(&sorted, &read), env_key(&shuffled, &read));
        }
    }
}
