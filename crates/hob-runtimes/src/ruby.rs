//! The row of CRuby.

use std::path::Path;

use crate::exec::no_files;
use crate::program::{ColdNote, CommandLine, Lookup, Program, RuntimeId, Start};
use crate::projects::Project;
use crate::row::{App, File, Files, Handlers, Mode, Runtime, Version};

pub(crate) const ROW: Runtime = Runtime {
    id: RuntimeId::Ruby,
    name: "ruby",
    title: "Ruby 3.0 to 3.4",
    is_interpreter,
    suffixes: &[b".rb"],
    has_bare: false,
    forks: true,
    learns: true,
    // The timer of an interpreter of its own, and an extension that polls, have the lowest numbers.
    descriptors_from: Some(8),
    takes_closed: true,
    held_below: 0,
    has_modules: false,
    commands: &[b"ruby"],
    environments: None,
    home: None,
    expand: no_files,
    parse,
    is_talking,
    is_relative,
    beside: &[],
    is_archive,
    // The interpreter keeps the name of its script from its start.
    is_named: true,
    words,
    variables: &["RUBY*", "GEM_*", "BUNDLE*", "RAILS_ENV", "RACK_ENV", "XDG_*"],
    version,
    supported: (3, 0)..=(3, 4),
    files: &FILES,
    command,
    handlers: Handlers::Function,
    apps: &APPS,
    new: &NEW,
};

const NEW: [Project; 1] = [Project {
    kind: "rb",
    title: "a script of Ruby, a function that answers, and a test",
    files: &[
        ("main.rb", include_str!("../../../runtimes/ruby/new/main.rb")),
        ("core.rb", include_str!("../../../runtimes/ruby/new/core.rb")),
        ("test.rb", include_str!("../../../runtimes/ruby/new/test.rb")),
        ("hob.toml", include_str!("../../../runtimes/ruby/new/hob.toml")),
    ],
    steps: &[
        ("hob run main.rb Ada", "Run it; from the second call on it is warm"),
        ("hob trust && hob ask PROJECT Ada", "Ask its function"),
        ("hob run test.rb", "Test it"),
    ],
}];

/// What `rackup` takes, too.
const APPS: [App; 1] = [App {
    interface: "rack",
    file: "config.ru",
    callables: &[],
    websocket: false,
    concurrent: false,
}];

/// The one that interpreters are started with is written last: it finds the others beside it.
const FILES: [File; 23] = [
    ("ruby/frames.rb", include_bytes!("../../../runtimes/ruby/frames.rb")),
    ("ruby/system.rb", include_bytes!("../../../runtimes/ruby/system.rb")),
    ("ruby/script.rb", include_bytes!("../../../runtimes/ruby/script.rb")),
    ("ruby/world.rb", include_bytes!("../../../runtimes/ruby/world.rb")),
    ("ruby/pages.rb", include_bytes!("../../../runtimes/ruby/pages.rb")),
    ("ruby/ends.rb", include_bytes!("../../../runtimes/ruby/ends.rb")),
    ("ruby/spans.rb", include_bytes!("../../../runtimes/ruby/spans.rb")),
    ("ruby/zygote.rb", include_bytes!("../../../runtimes/ruby/zygote.rb")),
    ("ruby/message.rb", include_bytes!("../../../runtimes/ruby/message.rb")),
    ("ruby/http.rb", include_bytes!("../../../runtimes/ruby/http.rb")),
    ("ruby/rack.rb", include_bytes!("../../../runtimes/ruby/rack.rb")),
    ("ruby/paths.rb", include_bytes!("../../../runtimes/ruby/paths.rb")),
    ("ruby/moments.rb", include_bytes!("../../../runtimes/ruby/moments.rb")),
    ("ruby/wraps.rb", include_bytes!("../../../runtimes/ruby/wraps.rb")),
    ("ruby/watch.rb", include_bytes!("../../../runtimes/ruby/watch.rb")),
    ("ruby/preload.rb", include_bytes!("../../../runtimes/ruby/preload.rb")),
    ("ruby/learn.rb", include_bytes!("../../../runtimes/ruby/learn.rb")),
    ("ruby/texts.rb", include_bytes!("../../../runtimes/ruby/texts.rb")),
    ("ruby/statements.rb", include_bytes!("../../../runtimes/ruby/statements.rb")),
    ("ruby/leading.rb", include_bytes!("../../../runtimes/ruby/leading.rb")),
    ("ruby/bundles.rb", include_bytes!("../../../runtimes/ruby/bundles.rb")),
    ("ruby/ahead.rb", include_bytes!("../../../runtimes/ruby/ahead.rb")),
    ("ruby/worker.rb", include_bytes!("../../../runtimes/ruby/worker.rb")),
];

/// `ruby`, `ruby3.1`.
fn is_interpreter(name: &[u8]) -> bool {
    let Some(version) = name.strip_prefix(b"ruby") else { return false };
    let Some(minor) = version.strip_prefix(b"3.") else { return version.is_empty() };
    !minor.is_empty() && minor.iter().all(u8::is_ascii_digit)
}

/// Reads the interpreter's options as it does itself: each letter may be joined to the next, but
/// for those with values. What changes how the script is read or run (`-n`, `-p`, `-x`, `-s`,
/// `-C`, `-S`, ...) is left to the interpreter.
fn parse(words: &[Vec<u8>]) -> Result<CommandLine, ColdNote> {
    // The interpreter alone reads its program from standard input.
    let alone = ColdNote::StandardInput;
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_slice() {
            b"-" => return Err(ColdNote::StandardInput),
            b"--" => return CommandLine::script(words, at + 1, options, alone),
            b"-e" => return Err(ColdNote::InlineCode),
            [b'-', b'-', ..] if is_warm(word) => {
                options.push(word.clone());
                at += 1;
            }
            [b'-', b'-', ..] => return Err(ColdNote::UnknownOption),
            [b'-', b'I' | b'r', rest @ ..] => {
                if rest.is_empty() {
                    let value = words.get(at + 1).ok_or(ColdNote::UnknownOption)?;
                    options.push([word.as_slice(), value].concat());
                    at += 2;
                } else {
                    options.push(word.clone());
                    at += 1;
                }
            }
            [b'-', b'W', ..] | b"-w" => {
                options.push(word.clone());
                at += 1;
            }
            [b'-', b'e', ..] => return Err(ColdNote::InlineCode),
            [b'-', ..] => return Err(ColdNote::UnknownOption),
            _ => return CommandLine::script(words, at, options, alone),
        }
    }
    Err(alone)
}

/// Long options that a zygote started with them repeats exactly.
fn is_warm(word: &[u8]) -> bool {
    let options: [&[u8]; 5] = [
        b"--enable=frozen-string-literal",
        b"--enable-frozen-string-literal",
        b"--disable=gems",
        b"--disable-gems",
        b"--disable=did_you_mean",
    ];
    options.contains(&word)
}

/// Options from the environment that the runtime does not see performed: libraries that are
/// loaded before it, and whatever is not known to be harmless.
fn is_talking(variable: Lookup<'_>) -> bool {
    let Some(options) = variable(b"RUBYOPT") else { return false };
    let mut words = options.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    !words.all(|word| word.starts_with(b"-W") || word == b"-w")
}

/// Whether `RUBYLIB` or `-I` name the working directory or something in it.
fn is_relative(options: &[Vec<u8>], variable: Lookup<'_>) -> bool {
    let dirs = |path: &[u8]| {
        path.split(|byte| *byte == b':').any(|dir| !dir.is_empty() && !dir.starts_with(b"/"))
    };
    variable(b"RUBYLIB").is_some_and(dirs)
        || options.iter().any(|option| option.strip_prefix(b"-I").is_some_and(dirs))
        || options.iter().any(|option| option.starts_with(b"-r."))
}

/// A command of a bundle is another program than the next one.
fn words(program: &Program) -> usize {
    let name = program.target.name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    // Debian's have the version of their Ruby behind the name.
    let end = name.iter().position(u8::is_ascii_digit).unwrap_or(name.len());
    if matches!(&name[..end], b"bundle" | b"bundler") { 2 } else { 0 }
}

fn is_archive(start: Start<'_>) -> bool {
    start.is_directory
}

/// From the name of the real file (`ruby3.1`); a plain `ruby`, as version managers install it,
/// from the directory of its standard library, `../lib/ruby/3.N.0`.
fn version(real: &Path) -> Option<Version> {
    let name = real.file_name()?.to_str()?;
    if let Some(minor) = name.strip_prefix("ruby3.") {
        return Some((3, minor.parse().ok()?));
    }
    let library = real.parent()?.parent()?.join("lib/ruby");
    let mut found = None;
    for entry in std::fs::read_dir(library).ok()? {
        let name = entry.ok()?.file_name();
        let Some(minor) =
            name.to_str().and_then(|name| name.strip_prefix("3.")?.strip_suffix(".0"))
        else {
            continue;
        };
        // Of two it cannot be told.
        if found.replace((3, minor.parse().ok()?)).is_some() {
            return None;
        }
    }
    found
}

/// The interpreter performs `-r` before it opens its script. In a copy the runtime returns from
/// there, and the interpreter runs the script as it always does.
fn command(program: &Program, files: Files<'_>, mode: Mode<'_>) -> Vec<Vec<u8>> {
    let mut argv = vec![program.prefix.first().unwrap_or(&program.interpreter).clone()];
    argv.push([b"-r", files.main(&ROW).as_slice()].concat());
    argv.extend(program.options.iter().cloned());
    if program.argv.first().is_some_and(|name| name.starts_with(b"-")) {
        argv.push(b"--".to_vec());
    }
    match mode {
        Mode::Serve => {
            argv.extend(program.argv.first().cloned());
            argv.push(b"serve".to_vec());
        }
        Mode::Handler => argv.extend([b"/dev/null".to_vec(), b"serve".to_vec()]),
        Mode::Learn(notes) => {
            argv.extend(program.argv.iter().cloned());
            argv.extend([notes.to_vec(), b"learn".to_vec()]);
        }
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_the_interpreter_reads_it() {
        let check = |line: &str, want: Result<(&str, &str, usize), ColdNote>| {
            let words: Vec<Vec<u8>> =
                line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let got = parse(&words).map(|line| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                (text(&line.target), text(&line.options.join(&b' ')), line.used)
            });
            let want =
                want.map(|(target, options, used)| (target.to_owned(), options.to_owned(), used));
            assert_eq!(got, want, "{line}");
        };
        check("s.rb a b", Ok(("s.rb", "", 1)));
        check("-w -Ilib -I test s.rb -w", Ok(("s.rb", "-w -Ilib -Itest", 5)));
        check("-W:no-deprecated -W0 -- -s.rb", Ok(("-s.rb", "-W:no-deprecated -W0", 4)));
        check("-rjson s.rb", Ok(("s.rb", "-rjson", 2)));
        check("-e 1", Err(ColdNote::InlineCode));
        check("-ne 1", Err(ColdNote::UnknownOption));
        check("-", Err(ColdNote::StandardInput));
        check("-w", Err(ColdNote::StandardInput));
        check("-S rake", Err(ColdNote::UnknownOption));
        check("-v s.rb", Err(ColdNote::UnknownOption));
        check("--version", Err(ColdNote::UnknownOption));
        check("--yjit s.rb", Err(ColdNote::UnknownOption));
    }

    #[test]
    fn options_of_the_environment_that_load_or_change_something_are_not_performed_ahead() {
        let talks = |value: &'static str| {
            is_talking(&move |name| (name == b"RUBYOPT").then_some(value.as_bytes()))
        };
        assert!(!talks(""));
        assert!(!talks("-W0 -W:no-deprecated"));
        assert!(talks("-rbundler/setup"));
        assert!(talks("--yjit"));
        assert!(!is_talking(&|_| None));
    }
}
