//! Ruby: the smallest script beside `/bin/true` and cold, and commands that Debian packages.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result};

use super::GAP as COMMANDS_GAP;
use crate::Setting;
use crate::figures::{GAP, arguments, private_in, reference, warm_part};
use crate::hob::{Hob, Program};
use crate::measure::{Order, Rounds, Series, Side, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 400;
const COMMAND_ROUNDS: usize = 20;
/// Where Debian puts its interpreter and its commands: found by the same `PATH` warm and cold.
const BIN: &str = "/usr/bin";

const SPEC: &str = "RSpec.describe 'it' do\n  it('adds') { expect(1 + 1).to eq 2 }\nend\n";
const RAKEFILE: &str = "task :default do\n  puts 'done'\nend\n";
const SOURCE: &str = "# frozen_string_literal: true\n\ndef add(one, other)\n  one + other\nend\n\n\
    puts add(1, 2)\n";

/// A command with its arguments, the file that it works on, and what its ratio is to reach.
type Line = (&'static str, &'static [&'static str], Option<(&'static str, &'static str)>, f64);

const LINES: [Line; 4] = [
    // Its usual format tells its own times.
    // Matchers and doubles are required by the first group of examples, behind the spec's own files.
    ("rspec", &["--format", "failures", "a_spec.rb"], Some(("a_spec.rb", SPEC)), 4.0),
    ("rake", &[], Some(("Rakefile", RAKEFILE)), 6.0),
    ("jekyll", &["--version"], None, 4.0),
    // It asks for its server before it requires the rest, which each call executes at that moment.
    ("rubocop", &["--cache", "false", "a.rb"], Some(("a.rb", SOURCE)), 1.8),
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private_in(setting, Path::new("/usr"))?;
    let mut figure = Figure::new("ruby", "Ruby: a script that prints one line, and commands");
    hello(setting, &hob, &mut figure)?;
    for line in LINES {
        let (name, _, _, least) = line;
        let program = command(&hob, line).with_context(|| format!("{name} is not there"))?;
        let how =
            Rounds { count: setting.rounds(COMMAND_ROUNDS), gap: COMMANDS_GAP, order: Order::Same };
        let (warm, cold) = pair(&hob, &program, how)?;
        figure.series(&warm);
        figure.series(&cold);
        let ratio = figure.ratio(&program.name, &cold, &warm).of_medians;
        figure.target(&format!("{name}, cold over hob"), Want::AtLeast(least), ratio);
    }
    hob.stop()?;
    Ok(figure)
}

/// Two passes, as for Python's hello: a cold interpreter between two calls puts them far apart.
fn hello(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let folder = hob.folder("hello")?;
    let file = folder.join("hello.rb");
    std::fs::write(&file, "puts 'hello'\n")?;
    let program = Program {
        name: "hello.rb".to_owned(),
        warm: vec![file.clone().into()],
        cold: vec![Path::new(BIN).join("ruby").into(), file.into()],
        folder,
        fresh: None,
    };
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    let plain = hob.plain("/bin/true", &[OsStr::new("/bin/true")], None);
    let beside_true = rounds(&[plain, warm.clone()], how, &mut Progress::new("hello"))?;
    let warm = Side { name: "hello.rb, hob, beside cold".to_owned(), ..warm };
    let beside_cold = rounds(&[warm, cold], how, &mut Progress::new("hello, cold"))?;
    beside_true.iter().chain(&beside_cold).for_each(|one| figure.series(one));
    let over = figure.ratio("hob over /bin/true", &beside_true[1], &beside_true[0]);
    let times = figure.ratio("cold over hob", &beside_cold[1], &beside_cold[0]);
    figure.target("hob over /bin/true", Want::AtMost(1.6), over.of_medians);
    figure.target("cold over hob", Want::AtLeast(30.0), times.of_medians);
    warm_part(figure, hob, &beside_true[1])
}

fn pair(hob: &Hob, program: &Program, how: Rounds) -> Result<(Series, Series)> {
    let (warm, cold) = (hob.warm(program, &[], 0), hob.cold(program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;
    let mut series = rounds(&[warm, cold], how, &mut Progress::new(&program.name))?.into_iter();
    match (series.next(), series.next()) {
        (Some(warm), Some(cold)) => Ok((warm, cold)),
        _ => anyhow::bail!("two sides give two series"),
    }
}

fn command(hob: &Hob, line: Line) -> Result<Program> {
    let (name, rest, input, _) = line;
    let folder = hob.folder(name)?;
    if let Some((file, text)) = input {
        std::fs::write(folder.join(file), text)?;
    }
    let file = Path::new(BIN).join(name);
    file.metadata()?;
    let mut warm = vec![name.into()];
    let mut cold = vec![file.into_os_string()];
    warm.extend(arguments(rest));
    cold.extend(arguments(rest));
    let shown = if input.is_some() { "FILE" } else { "--version" };
    Ok(Program { name: format!("{name} {shown}"), warm, cold, folder, fresh: None })
}
