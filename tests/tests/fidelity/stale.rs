//! Never stale: whatever the warm state was made from is replaced, in each way in which tools and
//! people replace it, and the very next call says what a cold one says.
//!
//! Python's own bytecode cache goes by time and size, and would be stale itself after some of
//! these edits: it is off, so that only hob can be wrong.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hob_tests::{Run, World};

/// A call, and what it must say.
struct Case<'w> {
    world: &'w World,
    run: Run,
}

impl Case<'_> {
    fn new<'w>(world: &'w World, words: &[&str]) -> Case<'w> {
        Case { world, run: world.hob(words).env("PYTHONDONTWRITEBYTECODE", "1") }
    }

    /// Warm it says this.
    #[track_caller]
    fn warm(&self, want: &str) {
        self.world.warm(&self.run, |outcome| {
            assert_eq!(outcome.text(), format!("{want}\n"), "{outcome:?}");
        });
    }

    /// The next call says this, and so does a warm one afterwards.
    #[track_caller]
    fn next(&self, want: &str) {
        let outcome = self.run.go();
        assert_eq!(outcome.text(), format!("{want}\n"), "{outcome:?}");
        self.warm(want);
    }
}

/// A world whose `main.py` prints what `part.py` makes when it is imported.
fn world_with(part: &str) -> World {
    let world = World::started();
    world.file("main.py", "import part\nprint(part.VALUE)\n");
    world.file("part.py", part);
    world
}

/// A module that knows where it lies.
fn beside(text: &str) -> String {
    format!("import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n{text}")
}

/// Gives a file the times that it had.
fn restore(path: &Path, before: &fs::Metadata) {
    let times = FileTimes::new()
        .set_modified(before.modified().unwrap())
        .set_accessed(before.accessed().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

fn edit_unseen(path: &Path, text: &str) {
    let before = fs::metadata(path).unwrap();
    assert_eq!(before.len(), text.len() as u64, "the edit keeps the size");
    fs::write(path, text).unwrap();
    restore(path, &before);
}

#[test]
fn a_configuration_file_that_an_import_reads_is_read_anew() {
    let world = world_with(&beside("VALUE = open(HERE + '/settings.ini').read()\n"));
    let settings = world.file("settings.ini", "one");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("one");
    edit_unseen(&settings, "two");
    case.next("two");
    let other = world.file("settings.new", "six");
    fs::rename(other, &settings).unwrap();
    case.next("six");
}

#[test]
fn a_configuration_file_that_appears_later_is_read() {
    let part = "try: VALUE = open(HERE + '/etc/deep/settings.ini').read()\n\
                except OSError: VALUE = 'none'\n";
    let world = world_with(&beside(part));
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("none");
    let settings = world.file("etc/deep/settings.ini", "there");
    case.next("there");
    fs::remove_file(settings).unwrap();
    case.next("none");
}

#[test]
fn what_an_import_finds_in_the_callers_directory_is_the_callers() {
    let world =
        world_with("try: VALUE = open('mine.ini').read()\nexcept OSError: VALUE = 'none'\n");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("none");
    world.file("mine.ini", "mine");
    case.next("mine");
    world.file("other/mine.ini", "other");
    let words = ["run", "../main.py"];
    let other = world.hob(&words).within(world.path("work/other"));
    world.warm(&other, |outcome| assert_eq!(outcome.text(), "other\n"));
}

#[test]
fn a_directory_that_is_made_anew_under_its_old_name_is_the_callers() {
    let world = world_with("import os\nVALUE = [open('mine.ini').read(), os.getcwd()]\n");
    let place = world.path("work/project");
    let here = place.display();
    let case = |text: &str| {
        world.file("project/mine.ini", text);
        let run = world.hob(&["run", "../main.py"]).within(&place);
        Case { world: &world, run: run.env("PYTHONDONTWRITEBYTECODE", "1") }
    };
    case("one").warm(&format!("['one', '{here}']"));
    fs::rename(&place, world.path("work/before")).unwrap();
    case("two").next(&format!("['two', '{here}']"));
    fs::remove_dir_all(&place).unwrap();
    case("three").next(&format!("['three', '{here}']"));
    world.file("part.py", "import os\nVALUE = ['new', os.getcwd(), os.listdir('.')]\n");
    case("three").next(&format!("['new', '{here}', ['mine.ini']]"));
}

#[test]
fn a_zygote_begins_in_the_directory_that_has_its_name_now() {
    let world = world_with("import os\nVALUE = os.getcwd()\n");
    world.file("main.py", "import os, part\nprint(part.VALUE, os.getppid())\n");
    let place = world.path("work/project");
    fs::create_dir(&place).unwrap();
    let run = world.hob(&["run", "../main.py"]).within(&place);
    let zygote = || {
        let parent = std::cell::Cell::new(0);
        world.warm(&run, |outcome| {
            let text = outcome.text();
            let (directory, pid) = text.trim_end().rsplit_once(' ').unwrap();
            assert_eq!(Path::new(directory), place, "{outcome:?}");
            parent.set(pid.parse().unwrap());
        });
        parent.get()
    };
    let before = zygote();
    fs::rename(&place, world.path("work/before")).unwrap();
    fs::create_dir(&place).unwrap();
    assert!(run.go().text().starts_with(place.to_str().unwrap()));
    hob_tests::run::kill(before, rustix::process::Signal::KILL);
    assert!(hob_tests::wait::ended(before, hob_tests::wait::LONG));
    assert_ne!(zygote(), before);
}

#[test]
fn what_an_import_only_asks_for_is_asked_anew() {
    let part = "VALUE = [os.path.exists(HERE + '/flag'), os.path.exists('mine'), os.getcwd()]\n";
    let world = world_with(&beside(part));
    let case = Case::new(&world, &["run", "main.py"]);
    let here = world.path("work").display().to_string();
    case.warm(&format!("[False, False, '{here}']"));
    let flag = world.file("flag", "");
    case.next(&format!("[True, False, '{here}']"));
    world.file("mine", "");
    case.next(&format!("[True, True, '{here}']"));
    fs::remove_file(flag).unwrap();
    case.next(&format!("[False, True, '{here}']"));
    fs::create_dir(world.path("work/other")).unwrap();
    let other = world.hob(&["run", "../main.py"]).within(world.path("work/other"));
    let want = format!("[False, False, '{here}/other']\n");
    world.warm(&other, |outcome| assert_eq!(outcome.text(), want));
}

#[test]
fn a_plug_in_that_appears_in_a_directory_that_an_import_lists_is_found() {
    let part =
        "import glob\nVALUE = sorted(p[len(HERE) + 1:] for p in glob.glob(HERE + '/plugins/*'))\n";
    let world = world_with(&beside(part));
    let first = world.file("plugins/a", "");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("['plugins/a']");
    world.file("plugins/b", "");
    case.next("['plugins/a', 'plugins/b']");
    fs::remove_file(first).unwrap();
    case.next("['plugins/b']");
}

#[test]
fn what_an_import_learns_from_another_program_is_never_kept() {
    let part = "import subprocess\n\
                VALUE = subprocess.run(['cat', 'version'], capture_output=True).stdout.decode()\n";
    let world = world_with(part);
    let version = world.file("version", "one");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("one");
    edit_unseen(&version, "two");
    case.next("two");
}

#[test]
fn a_program_that_writes_what_it_reads_while_importing_is_warm_all_the_same() {
    // It appends: nobody who imports it at the same time reads an emptied file.
    let part = "n = len(open(HERE + '/count').read())\n\
                open(HERE + '/count', 'a').write('x')\nVALUE = 'counted'\n";
    let world = world_with(&beside(part));
    let count = world.file("count", "");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("counted");
    let before = fs::metadata(&count).unwrap().len();
    for _ in 0..5 {
        case.warm("counted");
    }
    let after = fs::metadata(&count).unwrap().len();
    assert!(after >= before + 5, "each call counts: {before}, {after}");
}

/// Builds a shared object whose `value()` is this number; `None` without a compiler.
fn shared_object(world: &World, name: &str, value: u32) -> Option<PathBuf> {
    world.file("value.c", format!("int value(void) {{ return {value}; }}\n"));
    let built = world.run(&["cc", "-shared", "-fPIC", "-o", name, "value.c"]).go();
    if built.end != hob_tests::End::Code(0) {
        hob_tests::skipped("no C compiler");
        return None;
    }
    Some(world.path("work").join(name))
}

#[test]
fn a_shared_object_that_was_replaced_is_loaded_anew() {
    let part = "import ctypes, os\n\
                library = ctypes.CDLL(os.path.abspath('value.so'))\nVALUE = library.value()\n";
    let world = world_with(part);
    let Some(object) = shared_object(&world, "value.so", 1) else { return };
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("1");
    let Some(newer) = shared_object(&world, "value.so.new", 2) else { return };
    restore(&newer, &fs::metadata(&object).unwrap());
    fs::rename(newer, &object).unwrap();
    case.next("2");
}

#[test]
fn a_hard_link_changes_what_it_names_and_what_it_replaces() {
    let world = world_with("VALUE = 1\n");
    let part = world.path("work/part.py");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("1");
    // Another file takes its place under the same name and with the same times.
    let other = world.file("elsewhere/part.txt", "VALUE = 2\n");
    restore(&other, &fs::metadata(&part).unwrap());
    fs::remove_file(&part).unwrap();
    fs::hard_link(&other, &part).unwrap();
    case.next("2");
    edit_unseen(&other, "VALUE = 3\n");
    case.next("3");
    // A name that it is given while it is warm, and through which it is written then.
    let later = world.path("work/elsewhere/later.txt");
    fs::hard_link(&part, &later).unwrap();
    edit_unseen(&later, "VALUE = 4\n");
    case.next("4");
}

#[test]
fn a_package_that_loses_its_init_becomes_a_namespace() {
    let world = World::started();
    world.file("main.py", "import pack, pack.part\nprint(hasattr(pack, 'MINE'))\n");
    let init = world.file("pack/__init__.py", "MINE = 1\n");
    world.file("pack/part.py", "");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("True");
    fs::remove_file(&init).unwrap();
    case.next("False");
    world.file("pack/__init__.py", "MINE = 1\n");
    case.next("True");
}

#[test]
fn a_checkout_of_another_version_is_new_whatever_its_times() {
    let world = world_with("VALUE = 'one'\n");
    let git = |words: &[&str]| {
        let mut run = world.run(&["git"]).args(words).env("GIT_CONFIG_NOSYSTEM", "1");
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            run = run.env(name, "t");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            run = run.env(name, "t@example.org");
        }
        run.go().succeeded();
    };
    git(&["init", "-q", "."]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    git(&["branch", "one"]);
    let part = world.file("part.py", "VALUE = 'two'\n");
    let before = fs::metadata(&part).unwrap();
    git(&["commit", "-qam", "two"]);
    git(&["branch", "two"]);
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("two");
    for branch in ["one", "two", "one"] {
        git(&["checkout", "-q", branch]);
        restore(&part, &before);
        assert_eq!(fs::metadata(&part).unwrap().len(), before.len(), "the size is the same");
        case.next(branch);
    }
}

#[test]
fn edits_in_one_breath_are_all_seen() {
    let world = world_with("VALUE = 0\n");
    let part = world.path("work/part.py");
    let case = Case::new(&world, &["run", "main.py"]);
    case.warm("0");
    for turn in 0..60 {
        let digit = turn % 10;
        let text = format!("VALUE = {digit}\n");
        match turn % 4 {
            0 => fs::write(&part, &text).unwrap(),
            1 => edit_unseen(&part, &text),
            2 => fs::rename(world.file("part.new", &text), &part).unwrap(),
            _ => {
                let before = fs::metadata(&part).unwrap();
                let new = world.file("part.new", &text);
                restore(&new, &before);
                fs::rename(new, &part).unwrap();
            }
        }
        let outcome = case.run.go();
        assert_eq!(outcome.text(), format!("{digit}\n"), "turn {turn}: {outcome:?}");
        if turn % 12 == 11 {
            case.warm(&digit.to_string());
        }
    }
}

/// An environment's interpreter that is a link to a copy of the real one.
fn linked_interpreter(world: &World) -> (PathBuf, [PathBuf; 2]) {
    let real =
        world.run(&["python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))"]);
    let real = PathBuf::from(real.go().text().trim());
    let name = real.file_name().unwrap().to_owned();
    let copies = ["first", "second"].map(|folder| {
        let copy = world.path("work").join(folder).join(&name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        let _alone = hob_tests::alone();
        fs::copy(&real, &copy).unwrap();
        copy
    });
    fs::create_dir_all(world.path("work/env/bin")).unwrap();
    let link = world.path("work/env/bin/python3");
    symlink(&copies[0], &link).unwrap();
    (link, copies)
}

#[test]
fn a_replaced_interpreter_runs_the_next_call() {
    let world = world_with("import os, sys\nVALUE = os.stat(sys.executable).st_ino\n");
    let (link, [first, second]) = linked_interpreter(&world);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let case = Case::new(&world, &["run", "env/bin/python3", "main.py"]);
    case.warm(&inode(&first).to_string());
    // The environment's link is led elsewhere.
    let next = world.path("work/env/bin/next");
    symlink(&second, &next).unwrap();
    fs::rename(next, &link).unwrap();
    case.next(&inode(&second).to_string());
    // The interpreter's own file is replaced, as a package manager does.
    let newer = inode(&first);
    fs::rename(&first, &second).unwrap();
    case.next(&newer.to_string());
}

/// The environment's own `site-packages`.
fn environment(world: &World, options: &[&str]) -> PathBuf {
    world.run(&["python3", "-m", "venv"]).args(options).args(&["env"]).go().succeeded();
    let find = "import glob; print(glob.glob('env/lib/python*/site-packages')[0])";
    let found = world.run(&["python3", "-c", find]).go();
    world.path("work").join(found.text().trim())
}

#[test]
fn what_an_environment_is_configured_with_takes_effect() {
    let world = world_with("import sys\nVALUE = getattr(sys, 'mine', 'none')\n");
    let packages = environment(&world, &["--without-pip"]);
    let case = Case::new(&world, &["run", "env/bin/python3", "main.py"]);
    case.warm("none");
    let pth = packages.join("more.pth");
    fs::write(&pth, "import sys; sys.mine = 'pth'\n").unwrap();
    case.next("pth");
    edit_unseen(&pth, "import sys; sys.mine = 'htp'\n");
    case.next("htp");
}

#[test]
fn a_sitecustomize_that_appears_is_run_first() {
    let world = world_with("import sys\nVALUE = getattr(sys, 'mine', 'none')\n");
    fs::create_dir(world.path("work/lib")).unwrap();
    let mut case = Case::new(&world, &["run", "main.py"]);
    case.run = case.run.env("PYTHONPATH", world.path("work/lib"));
    case.warm("none");
    let site = world.file("lib/sitecustomize.py", "import sys\nsys.mine = 'site'\n");
    case.next("site");
    edit_unseen(&site, "import sys\nsys.mine = 'etis'\n");
    case.next("etis");
}

/// Writes a wheel of one module, as a build tool would.
const WHEEL: &str = "\
import base64, hashlib, sys, zipfile
name, version, text = sys.argv[1:]
info = f'{name}-{version}.dist-info'
files = {f'{name}.py': text,
         f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n',
         f'{info}/WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'}
record = ''
for path, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data.encode()).digest()).rstrip(b'=')
    record += f'{path},sha256={digest.decode()},{len(data.encode())}\\n'
files[f'{info}/RECORD'] = record + f'{info}/RECORD,,\\n'
with zipfile.ZipFile(f'{name}-{version}-py3-none-any.whl', 'w') as wheel:
    for path, data in files.items():
        wheel.writestr(path, data)
";

#[test]
fn what_pip_installs_upgrades_and_links_is_new() {
    let world = World::started();
    environment(&world, &[]);
    world.file("wheel.py", WHEEL);
    let main = "import importlib.metadata, part\n\
                print(part.VALUE, importlib.metadata.version('part'))\n";
    world.file("main.py", main);
    let pip = |words: &[&str]| {
        let install = ["env/bin/pip", "install", "--quiet", "--no-index", "--no-deps"];
        world.run(&install).args(&["--no-build-isolation"]).args(words).go_long().succeeded();
    };
    for (version, value) in [("1.0", "one"), ("2.0", "two")] {
        let text = format!("VALUE = '{value}'\n");
        world.run(&["python3", "wheel.py", "part", version, &text]).go().succeeded();
    }
    pip(&["./part-1.0-py3-none-any.whl"]);
    let case = Case::new(&world, &["run", "env/bin/python3", "main.py"]);
    case.warm("one 1.0");
    pip(&["--upgrade", "./part-2.0-py3-none-any.whl"]);
    case.next("two 2.0");
    // A project in development takes its place, and is edited then.
    world.file(
        "project/setup.py",
        "import setuptools\nsetuptools.setup(name='part', version='3.0', py_modules=['part'])\n",
    );
    let source = world.file("project/part.py", "VALUE = 'dev'\n");
    pip(&["-e", "./project"]);
    case.next("dev 3.0");
    edit_unseen(&source, "VALUE = 'ved'\n");
    case.next("ved 3.0");
    pip(&["--force-reinstall", "./part-1.0-py3-none-any.whl"]);
    case.next("one 1.0");
}

/// In a mount namespace of its own: an overlay whose lower layer is written behind its back.
const OVERLAY: &str = "\
set -eu
mkdir -p lower upper inner merged
printf 'import part\\nprint(part.VALUE)\\n' > lower/main.py
printf 'VALUE = 1\\n' > lower/part.py
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=inner merged
cd merged
warm() { for _ in $(seq 200); do
    \"$HOB_BINARY\" run main.py >/dev/null
    \"$HOB_BINARY\" last --json | grep -q '\"warm\":true' && return 0
    sleep 0.02
done; exit 3; }
warm; \"$HOB_BINARY\" run main.py
printf 'VALUE = 2\\n' > ../lower/part.py; \"$HOB_BINARY\" run main.py
warm; printf 'VALUE = 3\\n' > part.py; \"$HOB_BINARY\" run main.py
cd ..
warm() { for _ in $(seq 200); do
    \"$HOB_BINARY\" run plain/main.py >/dev/null
    \"$HOB_BINARY\" last --json | grep -q '\"warm\":true' && return 0
    sleep 0.02
done; exit 3; }
mkdir plain over
printf 'import part\\nprint(part.VALUE)\\n' | tee plain/main.py > over/main.py
printf 'VALUE = 4\\n' > plain/part.py
printf 'VALUE = 5\\n' > over/part.py
warm; \"$HOB_BINARY\" run plain/main.py
mount --bind over plain; \"$HOB_BINARY\" run plain/main.py
warm; umount plain; \"$HOB_BINARY\" run plain/main.py
\"$HOB_BINARY\" stop >/dev/null
";

#[test]
fn an_overlay_and_a_mount_over_a_watched_directory_are_seen_through() {
    let world = World::new();
    if world.run(&["unshare", "-m", "true"]).go().end != hob_tests::End::Code(0) {
        hob_tests::skipped("no right to make a mount namespace");
        return;
    }
    world.file("overlay.sh", OVERLAY);
    let run = world
        .run(&["unshare", "-m", "sh", "overlay.sh"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOB_BINARY", world.binary());
    let outcome = run.go();
    assert_eq!(outcome.text(), "1\n2\n3\n4\n5\n4\n", "{outcome:?}");
}

/// In a mount namespace of its own: programs are loaded for the first time, each while another
/// directory is mounted over theirs for a part of that time, at another moment each.
const MOUNTED_MEANWHILE: &str = "\
set -eu
for moment in 1 2 3 4 5 6; do
    mkdir \"plain$moment\" \"over$moment\"
    for folder in plain over; do
        cd \"$folder$moment\"
        printf 'import early, part, late\\nprint(part.VALUE)\\n' > main.py
        echo 'sum(range(15000000))' | tee early.py > late.py
        echo \"VALUE = '$folder'\" > part.py
        cd ..
    done
done
for moment in 1 2 3 4 5 6; do
    \"$HOB_BINARY\" run \"plain$moment/main.py\"
    sleep \"0.0$moment\"
    mount --bind \"over$moment\" \"plain$moment\"
    sleep \"0.3$moment\"
    umount -l \"plain$moment\"
    \"$HOB_BINARY\" run \"plain$moment/main.py\"; sleep 0.8
    \"$HOB_BINARY\" run \"plain$moment/main.py\"
done
\"$HOB_BINARY\" stop >/dev/null
";

#[test]
fn a_mount_that_comes_and_goes_while_a_zygote_loads_is_seen_through() {
    let world = World::new();
    if world.run(&["unshare", "-m", "true"]).go().end != hob_tests::End::Code(0) {
        hob_tests::skipped("no right to make a mount namespace");
        return;
    }
    world.file("meanwhile.sh", MOUNTED_MEANWHILE);
    let run = world
        .run(&["unshare", "-m", "sh", "meanwhile.sh"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOB_BINARY", world.binary());
    let outcome = run.go_long();
    assert_eq!(outcome.text(), "plain\n".repeat(18), "{outcome:?}");
    let from_zygote = |record: &serde_json::Value| record["reason"] != "bare-interpreter";
    let records = world.records(18);
    assert!(records.iter().any(|record| hob_tests::is_warm(record) && from_zygote(record)));
}

/// The largest resident memory of a world's processes, in KiB.
fn largest(world: &World) -> u64 {
    let folder = world.path("");
    let all = hob_tests::leftovers::processes(&folder);
    let resident = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:").map(str::to_owned));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    all.into_iter().map(|(pid, _)| resident(pid)).max().unwrap_or(0)
}

#[test]
fn a_release_that_is_switched_while_a_zygote_loads_is_not_half_the_old_one() {
    for by_link in [true, false] {
        let world = World::started();
        for version in ["1", "2"] {
            let name = |module: &str| format!("v{version}/{module}.py");
            world.file(&name("early"), format!("VALUE = {version}\nHELD = b'x' * 120_000_000\n"));
            world.file(&name("late"), format!("sum(range(50_000_000))\nVALUE = {version}\n"));
        }
        world.file("main.py", "import early, late\nprint(early.VALUE, late.VALUE)\n");
        let current = world.path("work/current");
        let switch = |to: &str| {
            if by_link {
                symlink(to, world.path("work/next")).unwrap();
                fs::rename(world.path("work/next"), &current).unwrap();
            } else {
                let _ = fs::rename(&current, world.path("work/last"));
                fs::rename(world.path("work").join(to), &current).unwrap();
            }
        };
        switch("v1");
        let path = current.display().to_string();
        let mut case = Case::new(&world, &["run", "main.py"]);
        case.run = case.run.env("PYTHONPATH", &path);
        assert_eq!(case.run.go().text(), "1 1\n");
        // A process of ours that has loaded the first module, and not the second one yet.
        hob_tests::wait::until("a zygote that loads", || (largest(&world) > 110_000).then_some(()));
        switch("v2");
        case.next("2 2");
    }
}
