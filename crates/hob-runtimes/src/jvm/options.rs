//! The command line of `java`, up to the main class: what a standby that is started with the same
//! options repeats exactly. What is not known to do that is left to a JVM of the call's own.

use crate::program::{ColdNote, CommandLine, Lookup, TargetKind};

/// Options whose value is the next word, or stands behind `=`.
const VALUED: [&[u8]; 9] = [
    b"--class-path",
    b"--module-path",
    b"--add-modules",
    b"--limit-modules",
    b"--add-reads",
    b"--add-exports",
    b"--add-opens",
    b"--enable-native-access",
    b"--module",
];

/// What is only said otherwise.
const SHORT: [(&[u8], &[u8]); 3] =
    [(b"-cp", b"--class-path"), (b"-classpath", b"--class-path"), (b"-p", b"--module-path")];

/// Options that stand alone and say nothing.
const ALONE: [&[u8]; 12] = [
    b"-server",
    b"-client",
    b"-ea",
    b"-enableassertions",
    b"-da",
    b"-disableassertions",
    b"-esa",
    b"-enablesystemassertions",
    b"-dsa",
    b"-disablesystemassertions",
    b"--enable-preview",
    b"-Xint",
];

/// Beginnings of options that say nothing, whatever follows.
const BEGINNINGS: [&[u8]; 8] = [
    b"-ea:",
    b"-enableassertions:",
    b"-da:",
    b"-disableassertions:",
    b"-Xmx",
    b"-Xms",
    b"-Xmn",
    b"-Xss",
];

/// Flags of the VM that are silent: collectors, and sizes behind `=`.
const FLAGS: [&[u8]; 18] = [
    b"+UseSerialGC",
    b"+UseParallelGC",
    b"+UseG1GC",
    b"+UseZGC",
    b"+TieredCompilation",
    b"-TieredCompilation",
    b"-UsePerfData",
    b"+UseStringDeduplication",
    b"+ExitOnOutOfMemoryError",
    b"TieredStopAtLevel=",
    b"MaxRAMPercentage=",
    b"InitialRAMPercentage=",
    b"MaxMetaspaceSize=",
    b"MetaspaceSize=",
    b"ReservedCodeCacheSize=",
    b"ActiveProcessorCount=",
    b"ParallelGCThreads=",
    b"ConcGCThreads=",
];

/// Properties that make a JVM load, open or say something before its main.
const TALKING: [&[u8]; 10] = [
    b"com.sun.management",
    b"java.security.manager",
    b"java.system.class.loader",
    b"java.locale.providers",
    b"java.class.path",
    b"java.io.tmpdir",
    b"jdk.module.",
    b"user.dir",
    b"sun.java.launcher",
    b"sun.jnu.encoding",
];

/// Reads the words behind `java`.
pub(super) fn parse(words: &[Vec<u8>]) -> Result<CommandLine, ColdNote> {
    let mut options: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let word = word.as_slice();
        let next = || words.get(at + 1).cloned().ok_or(ColdNote::UnknownOption);
        if let Some((name, value)) = valued(word) {
            let (value, used) = match value {
                Some(value) => (value.to_vec(), 1),
                None => (next()?, 2),
            };
            if name == b"--module" {
                return Ok(module(words, at, options, value, used));
            }
            // One that is not final makes the JVM say so.
            if name == b"--add-modules" && value.starts_with(b"jdk.incubator") {
                return Err(ColdNote::UnknownOption);
            }
            options.push([name, b"=", &value].concat());
            at += used;
        } else if word == b"-jar" {
            let target = next()?;
            options.push(word.to_vec());
            let before = words[..=at].to_vec();
            return Ok(CommandLine {
                before,
                options,
                kind: TargetKind::Script,
                target,
                used: at + 2,
            });
        } else if word == b"-m" {
            return Ok(module(words, at, options, next()?, 2));
        } else if is_silent(word) {
            options.push(word.to_vec());
            at += 1;
        } else if word.starts_with(b"-") || word.starts_with(b"@") || word.ends_with(b".java") {
            return Err(ColdNote::UnknownOption);
        } else {
            let before = words[..at].to_vec();
            let target = word.to_vec();
            return Ok(CommandLine {
                before,
                options,
                kind: TargetKind::Class,
                target,
                used: at + 1,
            });
        }
    }
    // It shows how it is used.
    Err(ColdNote::Interactive)
}

/// An option with a value: its long name, and the value if it stands in the same word.
fn valued(word: &[u8]) -> Option<(&'static [u8], Option<&[u8]>)> {
    if let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == word) {
        return Some((name, None));
    }
    VALUED.iter().find_map(|name| match word.strip_prefix(*name)? {
        [] => Some((*name, None)),
        [b'=', value @ ..] => Some((*name, Some(value))),
        _ => None,
    })
}

/// A module, as if it stood behind `--module`.
fn module(
    words: &[Vec<u8>],
    at: usize,
    mut options: Vec<Vec<u8>>,
    target: Vec<u8>,
    used: usize,
) -> CommandLine {
    let name: &[u8] = if words[at] == b"-m" { b"-m" } else { b"--module" };
    let mut before = words[..at].to_vec();
    before.push(name.to_vec());
    options.push(name.to_vec());
    CommandLine { before, options, kind: TargetKind::Class, target, used: at + used }
}

/// Whether the word before a target says that it is a module.
pub(super) fn is_module(word: &[u8]) -> bool {
    word == b"-m" || word == b"--module"
}

fn is_silent(word: &[u8]) -> bool {
    if let Some(property) = word.strip_prefix(b"-D") {
        return !TALKING.iter().any(|talking| property.starts_with(talking));
    }
    if let Some(flag) = word.strip_prefix(b"-XX:") {
        return FLAGS.iter().any(|known| match known.strip_suffix(b"=") {
            Some(_) => flag.starts_with(known),
            None => flag == *known,
        });
    }
    ALONE.contains(&word) || BEGINNINGS.iter().any(|begin| word.starts_with(begin))
}

/// Whether the class path, or the module path, names places relative to the working directory.
pub(super) fn is_relative(options: &[Vec<u8>], variable: Lookup<'_>) -> bool {
    let relative =
        |path: &[u8]| path.split(|byte| *byte == b':').any(|part| !part.starts_with(b"/"));
    let value = |name: &[u8]| {
        options.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix(b"="))
    };
    if value(b"--module-path").is_some_and(relative) {
        return true;
    }
    // The jar alone is the class path then.
    if options.last().is_some_and(|option| option == b"-jar") {
        return false;
    }
    match value(b"--class-path").or_else(|| variable(b"CLASSPATH")) {
        Some(path) => relative(path),
        None => !options.last().is_some_and(|option| is_module(option)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_command_line_is_read_up_to_what_runs() {
        let check = |line: &str, want: Result<(TargetKind, &str, &str, usize), ColdNote>| {
            let got = parse(&words(line)).map(|line| {
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                (line.kind, text(line.target), text(line.before.join(&b' ')), line.used)
            });
            let want =
                want.map(|(kind, name, before, used)| (kind, name.into(), before.into(), used));
            assert_eq!(got, want, "{line}");
        };
        use TargetKind::{Class, Script};
        check("Main a", Ok((Class, "Main", "", 1)));
        check(
            "-cp a.jar -Xmx1g -Dx=y p.Main -cp",
            Ok((Class, "p.Main", "-cp a.jar -Xmx1g -Dx=y", 5)),
        );
        check("--class-path=a p.Main", Ok((Class, "p.Main", "--class-path=a", 2)));
        check("-ea -jar a.jar -x", Ok((Script, "a.jar", "-ea -jar", 3)));
        check("-p mods -m m/p.Main a", Ok((Class, "m/p.Main", "-p mods -m", 4)));
        check("-p mods --module=m a", Ok((Class, "m", "-p mods --module", 3)));
        check(
            "-XX:+UseSerialGC -XX:MaxRAMPercentage=5 A",
            Ok((Class, "A", "-XX:+UseSerialGC -XX:MaxRAMPercentage=5", 3)),
        );
        for line in [
            "-version",
            "--version A",
            "-X",
            "-Xlog:gc A",
            "-Xdebug A",
            "-javaagent:a.jar A",
            "-agentlib:jdwp A",
            "-Dcom.sun.management.jmxremote A",
            "-XX:+PrintFlagsFinal A",
            "-XX:+UseSerialGCx A",
            "-XX:Flags=x A",
            "@file A",
            "A.java",
            "-cp",
            "--add-modules jdk.incubator.vector A",
            "--dry-run A",
        ] {
            check(line, Err(ColdNote::UnknownOption));
        }
        check("-ea", Err(ColdNote::Interactive));
    }

    #[test]
    fn relative_places_are_those_of_the_path_that_counts() {
        let is = |line: &str, classpath: Option<&'static [u8]>| {
            let line = parse(&words(line)).unwrap();
            is_relative(&line.options, &move |name| classpath.filter(|_| name == b"CLASSPATH"))
        };
        assert!(is("A", None));
        assert!(is("-cp a.jar A", None));
        assert!(is("-cp /a.jar: A", None));
        assert!(!is("-cp /a.jar:/b A", None));
        assert!(!is("-cp /a.jar A", Some(b"b")));
        assert!(is("A", Some(b"b")));
        assert!(!is("A", Some(b"/b")));
        assert!(!is("-cp b -jar /a.jar", None));
        assert!(!is("-p /mods -m m", None));
        assert!(is("-p mods -m m", None));
    }
}
