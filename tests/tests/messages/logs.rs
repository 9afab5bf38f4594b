//! `hob log --output`: what a handler prints is found by its program's name.

use hob_tests::{End, run, wait};
use rustix::process::Signal;

use super::{ask, program, project};

const HANDLERS: &str = r"
import sys

def says(payload, message):
    print('heard', payload.decode())
    sys.stdout.flush()
    return 'done'

def fails(payload, message):
    print('before it', file=sys.stderr)
    raise ValueError('with a traceback')
";

#[test]
fn each_program_has_its_own_log_which_can_be_followed() {
    let world = project(HANDLERS, &(program("says", "says", "") + &program("fails", "fails", "")));
    let none = world.hob(&["log", "--output", "says"]).go();
    assert_eq!(none.end, End::Code(1), "{none:?}");
    assert!(none.complaint().contains("no daemon is running"), "{none:?}");
    assert_eq!(ask(&world, &["says", "one"]), "done");
    let logs = |words: &[&str]| world.hob(&["log", "--output"]).args(words).go();
    wait::until("it is printed", || logs(&["says"]).text().contains("heard one").then_some(()));
    let failed = world.hob(&["ask", "fails", "x"]).go();
    assert_eq!(failed.end, End::Code(1), "{failed:?}");
    wait::until("the traceback", || {
        logs(&["fails"]).text().contains("ValueError: with a traceback").then_some(())
    });
    assert!(logs(&["fails"]).text().contains("before it"), "{:?}", logs(&["fails"]));
    assert!(!logs(&["says"]).text().contains("traceback"), "another program's prints are in it");

    let followed = world.hob(&["log", "--output", "says", "-f", "-n", "1"]).start();
    followed.expect("heard one");
    ask(&world, &["says", "two"]);
    followed.expect("heard two");
    // A daemon that ends takes its logs along; the next one's are followed all the same.
    world.hob(&["stop"]).go().succeeded();
    assert!(!world.hob_dir().join("logs").exists());
    ask(&world, &["says", "three"]);
    followed.expect("heard three");
    run::kill(followed.pid(), Signal::INT);
    assert_eq!(followed.finish().end, End::Signal(2));

    let wrong = logs(&["sasy"]);
    assert!(wrong.complaint().contains("did you mean `says`?"), "{wrong:?}");
}
