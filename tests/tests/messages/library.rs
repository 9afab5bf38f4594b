//! `import hob`: from scripts, from threads, from handlers, and the state that all share.

use super::{ask, program, project, python};

const HANDLERS: &str = r"
import hob

def upper(payload, message):
    hob.counter('upper').add(1)
    return payload.upper()

def twice(payload, message):
    return hob.ask('upper', payload) + hob.ask('upper', payload)
";

#[test]
fn the_library_asks_and_tells_and_shares_state() {
    let world =
        project(HANDLERS, &(program("upper", "upper", "") + &program("twice", "twice", "")));
    let script = r"
import hob, os, threading
assert hob.ask('twice', b'ab') == b'ABAB'
answer = hob.ask('upper', {'a': [1, 2]})
assert answer.json() == {'A': [1, 2]}, answer
assert hob.ask('upper', 'text') == b'TEXT'
for large in (70_000, 900_000):
    for _ in range(4):
        assert hob.ask('upper', b'x' * large) == b'X' * large
try:
    hob.ask('upper', bytes(1 << 20))
except ValueError:
    pass
else:
    raise AssertionError('a payload over the cap was taken')
assert isinstance(hob.tell('upper', b'x', at_most_once=True), str)

hits = hob.counter('hits')
def add():
    for _ in range(50):
        hits.add(1)
        assert hob.ask('upper', b'a') == b'A'
threads = [threading.Thread(target=add) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if os.fork() == 0:
    hits.add(1)
    assert hob.ask('upper', b'child') == b'CHILD'
    os._exit(0)
assert os.wait()[1] == 0
assert hits.get() == 201, hits.get()
assert hits.add(-1) == 200

assert hob.cache.get('page') is None and hob.cache.get('page', b'-') == b'-'
hob.cache.set('page', b'\x00html', ttl=3600)
hob.cache.set('kept', 'text')
assert hob.cache.get('page') == b'\x00html' and hob.cache.get('kept') == b'text'
assert hob.cache.delete('page') and not hob.cache.delete('page')
assert hob.cache.get('page') is None
large = os.urandom(1_000_000)
for number in range(70):
    hob.cache.set('large-%d' % number, large)
assert hob.cache.get('large-0') is None and hob.cache.get('large-69') == large
try:
    hob.ask('nobody')
except hob.NotGiven as error:
    assert error.reason == 'no-program', error.reason
print('done')
";
    let outcome = python(&world, script).go();
    outcome.succeeded();
    assert_eq!(outcome.text(), "done\n");
}

#[test]
fn a_users_own_module_of_this_name_is_the_one_that_is_imported() {
    let world =
        project("import hob\ndef mine(p, m): return hob.WORD\n", &program("mine", "mine", ""));
    world.file("hob.py", "WORD = 'my own'\n");
    assert_eq!(ask(&world, &["mine"]), "my own");
}

#[test]
fn a_handler_with_a_thread_is_not_forked_and_answers_all_the_same() {
    let handlers = r"
import os, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
def handle(p, m): return '%d' % len(os.listdir('/proc/self/task'))
";
    let world = project(handlers, &program("threads", "handle", ""));
    for _ in 0..3 {
        assert_eq!(ask(&world, &["threads"]), "2");
    }
}
