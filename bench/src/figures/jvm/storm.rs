//! A thousand calls, four at once, with what waits started again meanwhile.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};

use super::Ground;
use crate::figures::reference;
use crate::hob::Program;
use crate::measure::{Series, Slot};
use crate::report::{Figure, Want};
use crate::say;

const CALLS: usize = 1000;
const CALLERS: usize = 4;

pub(super) fn measure(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let mut words = vec![ground.java().as_os_str().to_owned(), "-cp".into()];
    words.extend([ground.folder.clone().into_os_string(), "Hello".into()]);
    let program = Program {
        name: "println, 4 at once".to_owned(),
        warm: words.clone(),
        cold: words,
        folder: ground.folder.clone(),
        fresh: None,
    };
    let side = ground.hob.warm(&program, &[], 0);
    let want = reference(&ground.hob.cold(&program, 0))?;
    ground.hob.warm_up(&side, &want)?;
    let calls = ground.setting.rounds(CALLS);
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let taken = Mutex::new(Series::named(&side.name));
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut slot = Slot::new()?;
                    while next.fetch_add(1, Ordering::Relaxed) < calls {
                        let run = side.run(&mut slot)?;
                        if run.output != want {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                        let Ok(mut taken) = taken.lock() else { break };
                        taken.us.push(run.took.as_secs_f64() * 1e6);
                        taken.pids.push(run.pid);
                    }
                    Ok(())
                })
            })
            .collect();
        callers.into_iter().try_for_each(|caller| {
            caller.join().map_err(|_| anyhow::anyhow!("a caller panicked"))?
        })
    })?;
    let taken = taken.into_inner().map_err(|_| anyhow::anyhow!("a caller panicked"))?;
    figure.series(&taken);
    reasons(ground, figure, &taken)?;
    #[expect(clippy::cast_precision_loss, reason = "some thousand calls")]
    let failed = failed.into_inner() as f64;
    figure.target("4 at once: calls that failed", Want::AtMost(0.0), failed);
    let daemon = ground.hob.pid()?;
    ground.hob.stop()?;
    #[expect(clippy::cast_precision_loss, reason = "a few processes")]
    let left = left_over(&ground.hob.directory().to_string_lossy(), daemon)? as f64;
    figure.target("4 at once: processes left after `hob stop`", Want::AtMost(0.0), left);
    Ok(())
}

/// How many of the calls were warm, and why the others were not.
fn reasons(ground: &Ground<'_>, figure: &mut Figure, taken: &Series) -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for receipt in ground.hob.receipts(taken.pids.len() + 100)? {
        let pid = receipt["caller_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        if pid.is_some_and(|pid| taken.pids.contains(&pid)) {
            let why = if receipt["warm"] == true {
                "warm"
            } else {
                receipt["reason"].as_str().unwrap_or("?")
            };
            *counts.entry(why.to_owned()).or_default() += 1;
        }
    }
    let told: usize = counts.values().sum();
    ensure!(told > 0, "no receipt of the calls was found");
    for (why, count) in &counts {
        #[expect(clippy::cast_precision_loss, reason = "some thousand calls")]
        figure.fact(&format!("4 at once: {why}"), *count as f64);
    }
    say(&format!("jvm: {told} receipts of {} calls: {counts:?}", taken.pids.len()));
    Ok(())
}

/// Processes that were started from files of this daemon.
fn left_over(directory: &str, daemon: u32) -> Result<usize> {
    let mut left = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&line).contains(directory);
        left += usize::from(pid == daemon || is_ours);
    }
    Ok(left)
}
