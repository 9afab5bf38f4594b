//! A program in a terminal: the same session teaches it and calls it, since warm copies of a
//! session end with it.

use super::super::{Called, ENDLESS, input};
use crate::run::{Outcome, Run};
use crate::terminal::Terminal;
use crate::{World, is_warm};

/// Teaches with the terminal on 1 and 2 alone, so that nothing typed is taken; then waits until
/// something was typed, and calls.
const LEADER: &str = r#"
hob=$1 go=$2 n=0; shift 2
while [ "$hob" ] && [ $n -lt 30 ]; do
  "$@" </dev/null
  "$hob" last --json | grep -q '"warm": *true' && break
  n=$((n + 1))
done
echo READY
while [ ! -e "$go" ]; do sleep 0.01; done
echo GO
exec "$@"
"#;
/// So much is typed, and then the end: a terminal holds some 4,000 bytes.
const LINES: usize = 20;
const ENDS: usize = 6;

/// Runs it in a terminal; of hob, with its binary, once it was warm there.
pub(super) fn run(world: &World, run: &Run, hob: Option<&str>) -> Outcome {
    let go = world.path("go");
    // It is there if a terminal was used before.
    drop(std::fs::remove_file(&go));
    let leader = ["sh", "-c", LEADER, "sh", hob.unwrap_or_default()];
    let run = run.clone().under(&leader).under(&[&go]);
    let mut terminal = Terminal::open(&run);
    terminal.expect("READY\r\n");
    let text: String = input().split_inclusive('\n').take(LINES).collect();
    terminal.keys(&text);
    // Each is the end once, and some read on until they have come to it twice.
    for _ in 0..ENDS {
        terminal.keys("\x04");
    }
    std::fs::write(&go, "").expect("a file can be written");
    let pid = terminal.pid();
    let (end, out) = terminal.finish_or_kill(ENDLESS);
    let from = out.windows(4).rposition(|bytes| bytes == b"GO\r\n").unwrap_or(0);
    Outcome { pid, end, out: out[from..].to_vec(), err: Vec::new() }
}

/// A call through hob.
pub(super) fn call(world: &World, run: &Run) -> Called {
    let outcome = self::run(world, run, Some(&world.binary().to_string_lossy()));
    let record = world.records(1).pop().unwrap_or_default();
    let reason = record["reason"].as_str().unwrap_or("no-receipt").to_owned();
    Called { outcome, reason, warm: is_warm(&record) }
}
