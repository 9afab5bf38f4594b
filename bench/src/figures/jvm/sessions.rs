//! Sessions: one eval, a close, input by lines, and ten thousand scripts.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Ground;
use super::nrepl::Client;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 200;
/// Evals before the first that counts.
const WARM_UP: usize = 200;
const LINE_ROUNDS: usize = 10;
const LINES: [usize; 4] = [1, 10, 100, 1000];
const SCRIPTS: usize = 10_000;

/// Reads all lines and says how long that took.
const READER: &str = "(let [from (System/nanoTime)
      lines (count (doall (line-seq (java.io.BufferedReader. *in*))))]
  (println lines (quot (- (System/nanoTime) from) 1000)))
";
/// What a session holds after a forced collection: metaspace, and heap.
const HELD: &str = "(do (dotimes [_ 3] (System/gc))
  (println (.getUsed (.getUsage (first (filter #(= \"Metaspace\" (.getName %))
             (java.lang.management.ManagementFactory/getMemoryPoolMXBeans)))))
           (.getUsed (.getHeapMemoryUsage (java.lang.management.ManagementFactory/getMemoryMXBean)))))";

/// One eval over TCP, one close, and `hob session eval` as a whole process.
pub(super) fn evals(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let repl = Repl::start(ground)?;
    let mut client = Client::connect(repl.port)?;
    let count = ground.setting.rounds(ROUNDS);
    for _ in 0..WARM_UP {
        client.ask("eval", &[("code", "(+ 1 2)")])?;
    }
    let mut series = [
        "session: eval, TCP",
        "session: connect and clone",
        "session: close",
        "hob session eval, whole process",
    ]
    .map(Series::named);
    let mut progress = Progress::new("session");
    for round in 0..count {
        progress.at(round, count);
        let (took, said) = client.ask("eval", &[("code", "(+ 1 2)")])?;
        ensure!(said.contains("5:value1:3"), "an eval says {said}");
        series[0].us.push(us(took));
        let start = Instant::now();
        let mut other = Client::connect(repl.port)?;
        series[1].us.push(us(start.elapsed()));
        let (took, said) = other.ask("close", &[])?;
        ensure!(said.contains("session-closed"), "a close says {said}");
        series[2].us.push(us(took));
        let start = Instant::now();
        let output = ground.hob(&["session", "eval", "-S", "bench", "(+ 1 2)"]).output()?;
        series[3].us.push(us(start.elapsed()));
        ensure!(output.stdout == b"3\n", "`hob session eval` says {output:?}");
    }
    progress.done();
    series.iter().for_each(|one| figure.series(one));
    figure.target("session: eval, ms", Want::AtMost(1.5), series[0].p(0.5) / 1e3);
    figure.target("session: close, ms", Want::AtMost(2.0), series[2].p(0.5) / 1e3);
    Ok(())
}

/// What a line of input costs in a session and cold: the script itself says how long it read.
pub(super) fn lines(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let script = ground.folder.join("lines.clj");
    std::fs::write(&script, READER)?;
    ground.ask(&["session", "eval", "-S", "bench", "-q", "1"])?;
    for count in LINES {
        let input = ground.folder.join("input");
        let text = (0..count).fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "line {line} of what is typed");
            text
        });
        std::fs::write(&input, text)?;
        let mut series =
            ["session", "cold"].map(|side| Series::named(&format!("{count} lines, {side}")));
        for _ in 0..ground.setting.rounds(LINE_ROUNDS) {
            let mut cold = Command::new(ground.java());
            ground.hob.place(&mut cold);
            cold.args(["-cp", &ground.clojure, "clojure.main"]).arg(&script);
            let session = ground.hob(&["run", "-S", "bench", "lines.clj"]);
            for (at, mut command) in [session, cold].into_iter().enumerate() {
                let output = command.stdin(File::open(&input)?).output()?;
                let said = String::from_utf8(output.stdout)?;
                let took = said.trim().strip_prefix(&format!("{count} "));
                series[at].us.push(took.with_context(|| format!("it says {said}"))?.parse()?);
            }
        }
        series.iter().for_each(|one| figure.series(one));
        let ratio =
            figure.ratio(&format!("{count} lines: session over cold"), &series[0], &series[1]);
        figure.target(
            &format!("{count} lines: session over cold"),
            Want::AtMost(1.1),
            ratio.of_medians,
        );
    }
    Ok(())
}

/// Scripts that each define a namespace of their own, with and without unloading.
pub(super) fn many(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let all = ground.setting.rounds(SCRIPTS);
    for (session, keep) in [("flat", false), ("kept", true)] {
        let mut held = Vec::new();
        let mut times = Series::named(&format!("a script, session {session}"));
        let mut progress = Progress::new(&format!("scripts: {session}"));
        for number in 1..=all {
            progress.at(number, all);
            let text = format!(
                "(ns script-{number})\n(defn one [x] (map inc x))\n(defn two [] (one [1 {number}]))\n\
                 (println (count (two)))\n"
            );
            std::fs::write(ground.folder.join("many.clj"), text)?;
            let words: &[&str] = if keep {
                &["run", "-S", session, "--keep", "many.clj"]
            } else {
                &["run", "-S", session, "many.clj"]
            };
            let start = Instant::now();
            let output = ground.hob(words).output()?;
            times.us.push(us(start.elapsed()));
            ensure!(output.stdout == b"2\n", "script {number} says {output:?}");
            if number == all / 10 || number == all {
                let said = ground.ask(&["session", "eval", "-S", session, "-q", HELD])?;
                let bytes: Vec<f64> =
                    said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
                held.push(<[f64; 2]>::try_from(bytes).ok().context("two numbers")?);
            }
        }
        progress.done();
        figure.series(&times);
        for (at, what) in ["metaspace", "heap"].into_iter().enumerate() {
            let (first, last) = (held[0][at], held[1][at]);
            figure.fact(&format!("{what} MB, {session}, script {}", all / 10), first / 1e6);
            figure.fact(&format!("{what} MB, {session}, script {all}"), last / 1e6);
            if !keep {
                figure.target(
                    &format!("{what}: the last over the tenth"),
                    Want::AtMost(1.05),
                    last / first,
                );
            }
        }
        ground.ask(&["session", "kill", session])?;
    }
    Ok(())
}

fn us(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

/// `hob session repl` with a port.
struct Repl {
    running: Child,
    port: u16,
}

impl Repl {
    fn start(ground: &Ground<'_>) -> Result<Repl> {
        let mut command = ground.hob(&["session", "repl", "-S", "bench", "--port", "0"]);
        let mut running = command.stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(running.stdout.take().context("a pipe")?);
        let port = loop {
            let mut line = String::new();
            ensure!(said.read_line(&mut line)? > 0, "`hob session repl` says no port");
            if let Some((_, port)) = line.split_once("on port ") {
                break port
                    .split(|one: char| !one.is_ascii_digit())
                    .next()
                    .unwrap_or("")
                    .parse()?;
            }
        };
        Ok(Repl { running, port })
    }
}

impl Drop for Repl {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
