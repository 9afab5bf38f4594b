//! The file of a handler or of an app is executed whole, in its order: what it does before an import
//! is there at the import. (Scripts and commands are held to this by `bench/orders`.)

use hob_tests::World;
use hob_tests::site::Site;

/// What a file does, and what a module that it then imports keeps.
const PYTHON: [(&str, &str); 13] = [
    ("conf.debug = True", "conf.debug"),
    ("conf.options['level'] = 7", "dict(conf.options)"),
    ("setattr(conf.Flags, 'size', 7)", "conf.Flags.size"),
    ("sys.path.insert(0, 'vendor')", "__import__('twin').VALUE"),
    ("sys.modules['twin'] = conf", "__import__('twin').__name__"),
    ("json.dumps = lambda *rest: 'patched'", "json.dumps(1)"),
    ("os.environ['MOMENT'] = 'own'", "os.environ.get('MOMENT')"),
    ("logging.basicConfig(level=logging.DEBUG)", "logging.getLogger('a').isEnabledFor(10)"),
    ("warnings.simplefilter('error')", "warnings.filters[0][0]"),
    ("decimal.getcontext().prec = 5", "str(decimal.Decimal(1) / 3)"),
    ("time.time = lambda: 1", "time.time() < 9"),
    ("sys.argv = ['own']", "sys.argv"),
    ("os.umask(0o77)", "(os.umask(0o77), os.umask(0o22))[0]"),
];

const RUBY: [(&str, &str); 5] = [
    ("$debug = true", "$debug.inspect"),
    ("Conf.level = 7", "Conf.level.inspect"),
    ("ENV['MOMENT'] = 'own'", "ENV['MOMENT'].inspect"),
    ("$LOAD_PATH.unshift(File.join(__dir__, 'vendor'))", "(require 'twin'; TWIN)"),
    ("module Louder; def to_s = 'louder'; end\nConf.singleton_class.prepend(Louder)", "Conf.to_s"),
];

const NAMES: &str = "import conf, decimal, json, logging, os, sys, time, warnings\n";

/// A project of such files, each with its module; the program and mounts of each.
fn project() -> World {
    let world = World::new();
    world.file("conf.py", "debug, options = False, {}\nclass Flags:\n    size = 1\n");
    world.file("twin.py", "VALUE = 'of the folder'\n");
    world.file("vendor/twin.py", "VALUE = 'vendored'\n");
    world.file("vendor/twin.rb", "TWIN = 'vendored'\n");
    world.file("conf.rb", "class Conf\n  class << self\n    attr_accessor :level\n  end\nend\n");
    let mut told = String::new();
    for (number, (sets, reads)) in PYTHON.iter().enumerate() {
        world.file(&format!("reader{number}.py"), format!("{NAMES}VALUE = repr({reads})\n"));
        let text = format!(
            "{NAMES}{sets}\nimport reader{number} as reader\n\n\
             def handle(payload, message):\n    return reader.VALUE\n\n\n\
             def application(environ, start_response):\n    \
             start_response('200 OK', [])\n    return [reader.VALUE.encode()]\n"
        );
        world.file(&format!("h{number}.py"), &text);
        for isolation in ["fork", "prefork"] {
            told += &format!(
                "[program.{isolation}{number}]\nhandler = \"h{number}.py:handle\"\n\
                 isolation = \"{isolation}\"\n"
            );
        }
        told += &format!("[mount.\"/{number}\"]\nwsgi = \"h{number}.py\"\n");
    }
    for (number, (sets, reads)) in RUBY.iter().enumerate() {
        world.file(&format!("reader{number}.rb"), format!("VALUE = ({reads}).to_s\n"));
        let text = format!(
            "require_relative 'conf'\n{sets}\nrequire_relative 'reader{number}'\n\
             def handle(payload)\n  VALUE\nend\n"
        );
        world.file(&format!("h{number}.rb"), &text);
        told += &format!("[program.ruby{number}]\nhandler = \"h{number}.rb:handle\"\n");
    }
    world.file("hob.toml", &told);
    world.hob(&["trust"]).go().succeeded();
    world
}

/// What a run of the file's own interpreter says.
fn cold(world: &World, words: &[&str]) -> String {
    let outcome = world.run(words).go();
    outcome.succeeded();
    outcome.text()
}

/// What Python itself says of a file of the project.
fn of_python(world: &World, number: usize) -> String {
    let line = format!("import h{number}; print(h{number}.handle(b'', None), end='')");
    cold(world, &["python3", "-c", &line])
}

#[test]
fn a_handler_is_loaded_in_its_files_own_order() {
    let world = project();
    let mut asked = Vec::new();
    for number in 0..PYTHON.len() {
        for isolation in ["fork", "prefork"] {
            asked.push((format!("{isolation}{number}"), of_python(&world, number)));
        }
    }
    for number in 0..RUBY.len() {
        let line = format!("require './h{number}'; print handle('')");
        asked.push((format!("ruby{number}"), cold(&world, &["ruby", "-e", &line])));
    }
    for (program, expected) in asked {
        for turn in 0..3 {
            let answer = world.hob(&["ask", &program]).go();
            answer.succeeded();
            assert_eq!(answer.text(), expected, "{program}, ask {turn}");
        }
    }
}

#[test]
fn an_app_is_loaded_in_its_files_own_order() {
    let world = project();
    let expected: Vec<String> = (0..PYTHON.len()).map(|number| of_python(&world, number)).collect();
    let site = Site::serve(&world, &[]);
    for (number, expected) in expected.iter().enumerate() {
        for turn in 0..2 {
            let answer = site.get(&format!("/{number}/"));
            assert_eq!(
                (answer.status, &answer.text()),
                (200, expected),
                "{number}, request {turn}"
            );
        }
    }
    site.stop();
}
