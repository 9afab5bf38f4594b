//! A class and a script: cold, warm, and by the ways that others have of keeping a JVM.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Ground, missing};
use crate::figures::{arguments, reference, warm_part};
use crate::hob::Program;
use crate::measure::{Order, Rounds, Series, Side, Slot, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 60;
/// A standby is started after each call, and has to be ready before the next one: a JVM of its own
/// takes a tenth of a second, one with Clojure ten times that.
const GAP: Duration = Duration::from_millis(120);
const CLOJURE_GAP: Duration = Duration::from_millis(700);
const NAILGUN: &str = "/usr/bin/ng-nailgun";
const NAILGUN_JAR: &str = "/usr/share/java/nailgun-server.jar";
/// The last release in which it starts.
const NAILGUN_RELEASE: u32 = 23;
/// How long nailgun's server may take to listen.
const LISTENS_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// `println` of a class, in each JDK.
pub(super) fn classes(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    for (release, java) in &ground.javas {
        let mut words = vec![java.clone().into_os_string()];
        words.extend(arguments(&["-cp"]));
        words.push(ground.folder.clone().into());
        words.push("Hello".into());
        let name = format!("println, JDK {release}");
        let nailgun = if *release > NAILGUN_RELEASE {
            missing(&format!("nailgun on JDK {release}"), "its server needs a security manager");
            None
        } else {
            Nailgun::start(ground, java)?
        };
        let peer = nailgun.as_ref().map(|nailgun| nailgun.side(ground, &name));
        let [plain, warm, cold, peer] =
            beside(ground, figure, &ground.program(&name, words), peer.as_slice(), GAP)?;
        let over = figure.ratio(&format!("{name}: hob over /bin/true"), &warm, &plain);
        let times = figure.ratio(&format!("{name}: cold over hob"), &cold, &warm);
        figure.target(&format!("{name}: hob over /bin/true"), Want::AtMost(2.2), over.of_medians);
        figure.target(&format!("{name}: cold over hob"), Want::AtLeast(15.0), times.of_medians);
        if !peer.us.is_empty() {
            let ratio = figure.ratio(&format!("{name}: hob over nailgun"), &warm, &peer);
            figure.target(
                &format!("{name}: hob over nailgun"),
                Want::AtMost(1.0),
                ratio.of_medians,
            );
        }
    }
    Ok(())
}

/// `hello.clj` by Clojure's own main, as a caller types it and as `hob run hello.clj`.
pub(super) fn scripts(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let mut words = vec![ground.java().as_os_str().to_owned()];
    words.extend(arguments(&["-cp", &ground.clojure, "clojure.main", "hello.clj"]));
    let babashka =
        ["/usr/local/bin/bb", "/usr/bin/bb"].into_iter().find(|at| Path::new(at).exists());
    let peer = babashka.map(|file| {
        let words = [file, "hello.clj"].map(OsStr::new);
        let side = ground.hob.plain("hello.clj, babashka", &words, Some(0));
        Side { folder: ground.folder.clone(), ..side }
    });
    if peer.is_none() {
        missing("babashka", "no registry has it; put `bb` into /usr/local/bin");
    }
    let program = ground.program("hello.clj", words);
    let [_, warm, cold, _] = beside(ground, figure, &program, peer.as_slice(), CLOJURE_GAP)?;
    let times = figure.ratio("hello.clj: cold over hob", &cold, &warm);
    figure.target("hello.clj: cold over hob", Want::AtLeast(50.0), times.of_medians);
    figure.target("hello.clj: ms", Want::AtMost(8.0), warm.p(0.5) / 1e3);
    Ok(())
}

/// `/bin/true`, hob, cold and a peer in one run; the peer's series is empty where there is none.
fn beside(
    ground: &Ground<'_>,
    figure: &mut Figure,
    program: &Program,
    peer: &[Side],
    gap: Duration,
) -> Result<[Series; 4]> {
    let plain = ground.hob.plain("/bin/true", &[OsStr::new("/bin/true")], None);
    let (hob, cold) = (ground.hob.warm(program, &[], 0), ground.hob.cold(program, 0));
    let want = reference(&cold)?;
    ground.hob.warm_up(&hob, &want)?;
    let mut sides = vec![plain, hob, cold];
    sides.extend(peer.iter().cloned());
    let how = Rounds { count: ground.setting.rounds(ROUNDS), gap, order: Order::Same };
    let mut all = rounds(&sides, how, &mut Progress::new(&program.name))?;
    all.iter().for_each(|one| figure.series(one));
    warm_part(figure, &ground.hob, &all[1])?;
    figure.receipt = Some(ground.hob.last()?);
    all.resize_with(4, || Series::named(""));
    <[Series; 4]>::try_from(all).map_err(|_| anyhow::anyhow!("four sides give four series"))
}

/// Nailgun's server, which ends with this.
struct Nailgun {
    server: Child,
    port: String,
}

impl Nailgun {
    /// `None` where there is no nailgun.
    fn start(ground: &Ground<'_>, java: &Path) -> Result<Option<Nailgun>> {
        if !Path::new(NAILGUN).exists() {
            missing("nailgun", "Debian's package `nailgun`: `make bench-deps`");
            return Ok(None);
        }
        // It takes no port of the system's choice, and says which one it has in no file.
        let free = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let port = free.local_addr()?.port().to_string();
        drop(free);
        let path = format!("{NAILGUN_JAR}:{}", ground.folder.display());
        let mut command = Command::new(java);
        ground.hob.place(&mut command);
        let words = ["-cp", &path, "com.martiansoftware.nailgun.NGServer"];
        command.args(words).arg(format!("127.0.0.1:{port}"));
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let nailgun = Nailgun { server: server.spawn().context("nailgun's server")?, port };
        let side = nailgun.side(ground, "nailgun");
        let start = std::time::Instant::now();
        // The class is loaded by the first calls, as in hob's warm-up.
        let mut good = 0;
        while good < 20 {
            ensure!(start.elapsed() < LISTENS_MAX, "nailgun's server does not answer");
            match side.run(&mut Slot::new()?)?.output.stdout.as_slice() {
                b"hello\n" => good += 1,
                _ => std::thread::sleep(POLL),
            }
        }
        Ok(Some(nailgun))
    }

    fn side(&self, ground: &Ground<'_>, name: &str) -> Side {
        let words = [NAILGUN, "--nailgun-port", &self.port, "Hello"].map(OsStr::new);
        let side = ground.hob.plain(&format!("{name}, nailgun"), &words, Some(0));
        Side { folder: ground.folder.clone(), ..side }
    }
}

impl Drop for Nailgun {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
