//! However a program ends: its caller sees the end, and its receipt for how long it ran.

use hob_tests::World;

/// How a program of Python may end; a number says that of its child's.
const PYTHON: &str = "import atexit, builtins, json, os, signal, sys, threading
how = sys.argv[1]
print(how, flush=True)
if how == 'exits': sys.exit(3)
if how == 'raises': 1 / 0
if how == 'leaves': os._exit(4)
if how == 'is killed': os.kill(os.getpid(), signal.SIGKILL)
if how == 'is ended': os.kill(os.getpid(), signal.SIGTERM)
if how == 'is interrupted': raise KeyboardInterrupt
if how == 'executes': os.execv('/bin/sh', ['sh', '-c', 'echo done; exit 5'])
if how == 'aborts': os.abort()
if how == 'holds': builtins.held = type('Kept', (), {'__del__': lambda self: os.write(1, b'held')})()
if how == 'forks' and os.fork() == 0: os._exit(6)
if how == 'closes': os.closerange(3, 100)
if how == 'threads': threading.Thread(target=print, args=('late',)).start()
if how == 'hooks': atexit.register(print, 'hook')
";

const RUBY: &str = "require 'json'
how = ARGV[0]
puts how
STDOUT.flush
case how
when 'exits' then exit 3
when 'raises' then raise 'no'
when 'leaves' then exit! 4
when 'is killed' then Process.kill(:KILL, Process.pid)
when 'is ended' then Process.kill(:TERM, Process.pid)
when 'is interrupted' then raise Interrupt
when 'executes' then exec('/bin/sh', '-c', 'echo done; exit 5')
when 'aborts' then abort 'no'
when 'holds' then require 'openssl'
when 'forks' then fork { exit! 6 }
when 'closes' then (3..100).each { |fd| IO.for_fd(fd).close rescue nil }
when 'threads' then Thread.new { puts 'late' }.join
when 'hooks' then at_exit { puts 'hook' }
end
";

const ENDS: [&str; 14] = [
    "returns",
    "exits",
    "raises",
    "leaves",
    "is killed",
    "is ended",
    "is interrupted",
    "executes",
    "aborts",
    "holds",
    "forks",
    "closes",
    "threads",
    "hooks",
];

/// That the phases of a warm call have a `main`, and are all of its time, `warm_as_cold` looks itself.
#[test]
fn a_receipt_says_how_long_a_program_ran_however_it_ends() {
    let world = World::started();
    world.file("ends.py", PYTHON);
    world.file("ends.rb", RUBY);
    for script in ["ends.py", "ends.rb"] {
        for how in ENDS {
            world.warm_as_cold(&world.hob(&["run", script, how]));
        }
        // With a descriptor that it is to find closed in time.
        for how in ["returns", "holds", "raises"] {
            world.warm_as_cold(&world.hob(&["run", script, how]).after("exec 9>held"));
        }
    }
}
