//! The smallest script, through hob, cold, and beside `/bin/true`: the floor of a process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{GAP, HELLO, private, reference, same_interpreter, script, warm_part};
use crate::Setting;
use crate::hob::Hob;
use crate::measure::{Order, Rounds, Series, Side, Stdout, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

const ROUNDS: usize = 400;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    same_interpreter(setting, &hob)?;
    let program = script(setting, &hob, "hello.py", HELLO)?;
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;

    let beside_none = pass(setting, "hello, 16 more descriptors", &with_more(&warm))?;
    // Two passes, both interleaved. A cold Python between two calls would put them 100 ms apart,
    // and leave them the processor's caches as it left them; calls are to be 12 ms apart.
    let beside_true = pass(setting, "hello", &beside_true(&hob, &warm)?)?;
    let through_pipes = through_pipes(setting, &hob, [&warm, &cold])?;
    let cold_side = Side { name: "hello.py, hob, beside cold".to_owned(), ..warm };
    let beside_cold = pass(setting, "hello, cold", &[cold_side, cold])?;

    let mut figure = Figure::new("hello", "a Python script that prints one line, whole process");
    let all = beside_true.iter().chain(&beside_none).chain(&beside_cold);
    for one in all.chain(&through_pipes) {
        figure.series(one);
    }
    let [plain, warm] = [&beside_true[0], &beside_true[1]];
    let against_true = figure.ratio("hob over /bin/true", warm, plain);
    let [echo, read, _] = [0, 1, 2].map(|at| &through_pipes[at]);
    figure.ratio("hob over /bin/echo, each read through a pipe", read, echo);
    let against_cold = figure.ratio("cold over hob", &beside_cold[1], &beside_cold[0]);
    figure.target("hob over /bin/true", Want::AtMost(1.2), against_true.of_medians);
    let more = figure.ratio("16 more descriptors over none", &beside_none[1], &beside_none[0]);
    figure.target("16 more descriptors over none", Want::AtMost(1.1), more.of_medians);
    figure.target("cold over hob", Want::AtLeast(12.0), against_cold.of_medians);
    figure.target("hob, p99 over p50", Want::AtMost(3.0), warm.p(0.99) / warm.p(0.5));
    warm_part(&mut figure, &hob, warm)?;
    hob.stop()?;
    Ok(figure)
}

fn pass(setting: &Setting, name: &str, sides: &[Side]) -> Result<Vec<Series>> {
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    rounds(sides, how, &mut Progress::new(name))
}

/// The same call without and with further descriptors, as a shell's child under `flock` or `make -j`
/// has them.
fn with_more(warm: &Side) -> [Side; 2] {
    let named = |name: &str, more| Side { name: name.to_owned(), more, ..warm.clone() };
    [named("hello.py, hob, beside the next", 0), named("hello.py, hob, 16 more descriptors", 16)]
}

/// With the output read to its end, as most programs and shells call others: who still holds the
/// pipe when the caller has its exit code keeps the reader waiting.
fn through_pipes(setting: &Setting, hob: &Hob, [warm, cold]: [&Side; 2]) -> Result<Vec<Series>> {
    let echo = hob.plain("", &["/bin/echo", "hello"].map(OsStr::new), warm.group);
    let named = |name: &str, side: &Side| Side {
        name: format!("{name}, through a pipe"),
        stdout: Stdout::Pipe,
        ..side.clone()
    };
    let mut series =
        pass(setting, "hello, read", &[named("/bin/echo", &echo), named("hello.py, hob", warm)])?;
    series.extend(pass(setting, "hello, read, cold", &[named("hello.py, cold", cold)])?);
    Ok(series)
}

/// What a small process costs: a dynamic one, ours, and where a compiler is at hand a static one.
fn beside_true(hob: &Hob, warm: &Side) -> Result<Vec<Side>> {
    let mut sides = vec![hob.plain("/bin/true", &[OsStr::new("/bin/true")], None), warm.clone()];
    if let Some(floor) = floor(hob)? {
        sides.push(hob.plain("static, exits at once", &[floor.as_os_str()], None));
    }
    Ok(sides)
}

/// A static program that only exits, where a compiler for one is installed.
fn floor(hob: &Hob) -> Result<Option<PathBuf>> {
    if !Path::new("/usr/bin/musl-gcc").exists() {
        return Ok(None);
    }
    let folder = hob.folder("floor")?;
    let (source, program) = (folder.join("floor.c"), folder.join("floor"));
    std::fs::write(&source, "int main(void) { return 0; }\n")?;
    venv::run(Command::new("musl-gcc").args(["-O2", "-static", "-o"]).arg(&program).arg(&source))?;
    Ok(Some(program))
}
