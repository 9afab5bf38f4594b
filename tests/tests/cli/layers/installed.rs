//! Right after an edit, in copies of the layer that has the script's installed packages.

use hob_tests::{Outcome, Run, World, wait};

/// Long enough that a layer gains something.
const HEAVY: &str = "import json, string\nfrom . import part\nTOTAL = sum(range(12_000_000))\n\ndef fails():\n    raise ValueError(part.NAME)\n";

/// What it finds, in the order of its imports.
const SHOWS: &str = "
print([name for name in sys.modules if name.partition('.')[0] in NAMES], sys.path[0] == HERE)
";

/// A script of one own module over an installed package. Each edit gives it another value.
struct Edited {
    world: World,
    value: u32,
}

impl Edited {
    /// Its layer is there.
    fn new() -> Edited {
        let world = World::started();
        let site = world.run(&["python3", "-c", "import site; print(site.getusersitepackages())"]);
        let site = std::path::PathBuf::from(site.go().text().trim());
        std::fs::create_dir_all(site.join("heavy")).expect("a directory can be made");
        std::fs::write(site.join("heavy/__init__.py"), HEAVY).expect("a file can be written");
        std::fs::write(site.join("heavy/part.py"), "NAME = 'part'\n").expect("likewise");
        std::os::unix::fs::symlink(&site, world.path("work/site")).expect("a link can be made");
        let mut edited = Edited { world, value: 0 };
        edited.script("import heavy");
        edited.edit();
        edited.world.warmed(&["run", "script.py"]);
        wait::until("a copy of the layer waits", || {
            edited.edit();
            edited.run().go().succeeded();
            (edited.layers() > 0).then_some(())
        });
        edited.settle();
        edited
    }

    fn script(&self, imports: &str) {
        let head = "import os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\nNAMES = 'heavy', 'own', 'json', 'string', 'decimal'\n";
        let text = format!("{head}{imports}\nimport own\nprint(own.VALUE)\n{SHOWS}");
        self.world.file("script.py", text);
    }

    fn edit(&mut self) {
        self.value += 1;
        self.world.file("own.py", format!("VALUE = {}\n", self.value));
    }

    fn run(&self) -> Run {
        self.world.hob(&["run", "script.py"])
    }

    /// How many copies of layers wait.
    fn layers(&self) -> u64 {
        let status = self.world.status();
        let pools = status["pools"].as_array().expect("a list of pools").iter();
        let name = |pool: &&serde_json::Value| {
            pool["program"].as_str().is_some_and(|name| name.ends_with("(installed)"))
        };
        pools.filter(name).filter_map(|pool| pool["ready"].as_u64()).sum()
    }

    fn reason(&self, outcome: &Outcome) -> String {
        self.world.record(outcome.pid)["reason"].as_str().unwrap_or("none").to_owned()
    }

    /// The call after an edit does what it does cold, and says what performed it.
    fn as_cold(&mut self, reason: &str) -> Outcome {
        self.edit();
        let outcome = self.run().go();
        assert_eq!(outcome, self.run().env("HOB", "0").go());
        assert_eq!(self.reason(&outcome), reason, "{outcome:?}");
        outcome
    }

    /// Until the program's own state is warm again, and its layer.
    fn settle(&self) -> Outcome {
        let outcome = self.world.warmed(&["run", "script.py"]);
        wait::until("a copy of the layer waits", || (self.layers() > 0).then_some(()));
        outcome
    }
}

#[test]
fn the_call_after_an_edit_finds_its_packages_loaded_and_sees_what_it_sees_cold() {
    let mut edited = Edited::new();
    for _ in 0..3 {
        edited.as_cold("installed-packages");
        edited.settle();
    }
    for imports in [
        "import string, heavy.part as part\nprint(part.NAME)",
        "from heavy import *\nprint(TOTAL)",
        "import decimal, heavy",
        "import heavy, sys\ndel sys.modules['heavy.part']\nfrom heavy import part\nprint(part is sys.modules['heavy.part'])",
    ] {
        edited.script(imports);
        edited.edit();
        // It begins otherwise than what is there: the interpreter is executed, or it is loaded by then.
        let outcome = edited.run().go();
        assert_eq!(outcome, edited.run().env("HOB", "0").go());
        edited.settle();
    }
}

#[test]
fn what_the_edited_script_does_not_import_any_more_is_not_there() {
    let mut edited = Edited::new();
    edited.script("print('heavy' in sys.modules)");
    assert!(edited.as_cold("edited").text().starts_with("False\n"));
    assert!(edited.settle().text().starts_with("False\n"));
}

#[test]
fn another_module_of_that_name_is_found_where_it_is_found_cold() {
    let mut edited = Edited::new();
    edited.world.file("vendor/heavy.py", "NAME = 'vendored'\n");
    edited.script(
        "sys.path.insert(0, os.path.join(HERE, 'vendor'))\nimport heavy\nprint(heavy.NAME)",
    );
    assert!(edited.as_cold("edited").text().starts_with("vendored\n"));
    edited.settle();
    // It stands before what is installed.
    edited.world.file("heavy.py", "NAME = 'own'\n");
    edited.script("import heavy\nprint(heavy.NAME)");
    assert!(edited.as_cold("bare-interpreter").text().starts_with("own\n"));
}

#[test]
fn an_edited_package_is_the_new_one() {
    let mut edited = Edited::new();
    edited.world.file("site/heavy/part.py", "NAME = 'new part'\n");
    edited.script("import heavy\nprint(heavy.part.NAME)");
    assert!(edited.as_cold("bare-interpreter").text().starts_with("new part\n"));
}

#[test]
fn a_package_that_loads_a_module_of_the_scripts_is_as_new_as_that() {
    let mut edited = Edited::new();
    edited.world.file("plugin.py", "NAME = 1\n");
    edited.world.file("site/heavy/part.py", "from plugin import NAME\n");
    edited.script("import heavy\nprint(heavy.part.NAME)");
    edited.as_cold("bare-interpreter");
    edited.world.warmed(&["run", "script.py"]);
    // Of other sizes: what Python has compiled is told apart by that and by the second.
    for name in [22, 333, 4444] {
        edited.world.file("plugin.py", format!("NAME = {name}\n"));
        let outcome = edited.run().go();
        assert!(outcome.text().starts_with(&format!("{name}\n")), "{outcome:?}");
        edited.world.warmed(&["run", "script.py"]);
    }
}

#[test]
fn an_error_there_shows_what_it_shows_cold() {
    let mut edited = Edited::new();
    for imports in ["import heavy\nheavy.fails()", "import heavy.nothing", "from heavy import no"] {
        edited.script(imports);
        edited.edit();
        let outcome = edited.run().go();
        assert_eq!(outcome, edited.run().env("HOB", "0").go());
        assert!(outcome.complaint().contains("Error"), "{outcome:?}");
        wait::until("a copy of the layer waits", || (edited.layers() > 0).then_some(()));
    }
}
