//! Never stale: what is edited takes effect on the next message, on lanes too.

use hob_tests::End;

use super::{ask, program, project, python, trusted};

const HANDLERS: &str = "import helper\ndef handle(p, m): return helper.WORD\n";

#[test]
fn an_edited_handler_or_module_takes_effect_on_the_next_ask() {
    let world = project(HANDLERS, &program("word", "handle", ""));
    world.file("helper.py", "WORD = 'first'\n");
    assert_eq!(ask(&world, &["word"]), "first");
    world.file("helper.py", "WORD = 'second'\n");
    assert_eq!(ask(&world, &["word"]), "second");
    world.file("handlers.py", "def handle(p, m): return 'third'\n");
    assert_eq!(ask(&world, &["word"]), "third");
    trusted(&world, &program("word", "other", ""));
    let outcome = world.hob(&["ask", "word"]).go();
    assert_eq!(outcome.end, End::Code(126), "{outcome:?}");
    world.file("handlers.py", "def other(p, m): return 'fourth'\n");
    assert_eq!(ask(&world, &["word"]), "fourth");
}

#[test]
fn an_edit_between_two_asks_on_a_lane_takes_effect_on_the_second() {
    let world = project(HANDLERS, &program("word", "handle", ""));
    let script = r"
import hob, os
def write(word):
    with open('helper.new', 'w') as file:
        file.write('WORD = %r\n' % word)
    os.rename('helper.new', 'helper.py')
for turn in range(12):
    write('w%d' % turn)
    # A sender that was lent no lane asks for one again after 64 messages.
    for _ in range(70):
        answer = hob.ask('word').decode()
        assert answer == 'w%d' % turn, (turn, answer)
print('fresh')
";
    world.file("helper.py", "WORD = 'first'\n");
    let outcome = python(&world, script).go();
    outcome.succeeded();
    assert_eq!(outcome.text(), "fresh\n");
    let on_lanes = super::counted::all_are_counted(&world, 12 * 70).by_reason("lane");
    assert!(on_lanes > 0, "no ask went on a lane");
}

#[test]
fn a_nearer_or_untrusted_configuration_takes_effect_on_the_next_ask() {
    let world = project("def handle(p, m): return 'outer'\n", &program("word", "handle", ""));
    world.file("inner/handlers.py", "def handle(p, m): return 'inner'\n");
    let inner = world.path("work/inner");
    let script = r#"
import hob, os, subprocess, sys
os.chdir('inner')
answers = [hob.ask('word').decode() for _ in range(3)]
with open('hob.toml', 'w') as file:
    file.write('[program.word]\nhandler = "handlers.py:handle"\n')
try:
    hob.ask('word')
except hob.NotGiven as error:
    answers.append(error.reason)
subprocess.run([sys.argv[1], 'trust'], check=True, stdout=subprocess.DEVNULL)
answers += [hob.ask('word').decode() for _ in range(3)]
subprocess.run([sys.argv[1], 'trust', '--remove'], check=True, stdout=subprocess.DEVNULL)
try:
    hob.ask('word')
except hob.NotGiven as error:
    answers.append(error.reason)
print(' '.join(answers))
"#;
    let outcome = python(&world, script).args(&[world.binary()]).go();
    outcome.succeeded();
    let want = "outer outer outer untrusted inner inner inner untrusted\n";
    assert_eq!(outcome.text(), want);
    assert!(inner.join("hob.toml").exists());
}
