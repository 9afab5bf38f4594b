//! What a site's metrics cost with 256 programs that have all been asked: from the request on its
//! control socket to the last byte, by one connection each, as a collector comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::Setting;
use crate::figures::private;
use crate::hob::Hob;
use crate::measure::{Series, microseconds};
use crate::report::{Figure, Want};
use crate::venv;

const PROGRAMS: usize = 256;
const ROUNDS: usize = 200;

pub(super) fn measure(setting: &Setting, figure: &mut Figure) -> Result<()> {
    let hob = private(setting, &[])?;
    let folder = hob.folder("site")?;
    std::fs::create_dir(folder.join("public"))?;
    std::fs::write(folder.join("public/a.txt"), "x\n")?;
    let mounts = (0..PROGRAMS).map(|at| format!("[mount.\"/p{at}\"]\nstatic = \"public\"\n"));
    std::fs::write(folder.join("hob.toml"), mounts.collect::<String>())?;
    venv::run(command(&hob, &folder).arg("trust"))?;
    let mut site = command(&hob, &folder)
        .args(["serve", ".", "--listen", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the site")?;
    let measured = scraped(&hob, &mut site, setting.rounds(ROUNDS));
    // A site that has ended by itself has failed what is measured.
    let _ = site.kill();
    site.wait()?;
    let (series, bytes) = measured?;
    figure.series(&series);
    figure.fact("their bytes", bytes);
    figure.target("metrics with 256 programs, in ms", Want::AtMost(1.0), series.p(0.5) / 1000.0);
    Ok(())
}

fn command(hob: &Hob, folder: &Path) -> Command {
    let mut command = Command::new(hob.binary());
    let environment = hob.environment();
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(folder);
    command
}

/// How long each look took, and how much came.
fn scraped(hob: &Hob, site: &mut Child, rounds: usize) -> Result<(Series, f64)> {
    let mut said = String::new();
    BufReader::new(site.stdout.take().context("it is a pipe")?).read_line(&mut said)?;
    let address = said.trim().strip_prefix("hob: serving http://").context("it serves")?;
    let address: SocketAddr = address.trim_end_matches('/').parse()?;
    for at in 0..PROGRAMS {
        let answer = asked(TcpStream::connect(address)?, &format!("/p{at}/a.txt"))?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let port = address.port().to_string();
    let control = hob.directory().join("serve").join(port).join("control");
    let (mut series, mut bytes) = (Series::named("a look at a site's metrics"), 0);
    for _ in 0..rounds {
        let begun = Instant::now();
        let answer = asked(UnixStream::connect(&control)?, "/metrics")?;
        series.us.push(microseconds(begun.elapsed()));
        let counted = answer.matches("\nhob_http_request_duration_seconds_count{").count();
        ensure!(counted == PROGRAMS, "{counted} programs have times");
        bytes = answer.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousand bytes")]
    Ok((series, bytes as f64))
}

fn asked(mut stream: impl Read + Write, target: &str) -> Result<String> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
