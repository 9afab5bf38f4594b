//! The daemon's own log: where it is, whether it can be written, and whether the user's configuration
//! of it can be used.

use hob_core::log::Category;
use hob_core::status::LogPart;
use hob_os::start::Start;

use super::{Finding, fine, hosts, warning};

const CHECK: &str = "log";

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let config = hosts::config(start);
    if let (Err(why), Some(path)) = (hob_daemon::log_configured(config.as_deref()), &config) {
        return vec![warning(CHECK, why.clone(), hosts::fix_of(&why, path))];
    }
    let part = hosts::status(start).and_then(|status| status.log);
    part.map(|part| told(&part)).into_iter().collect()
}

fn told(part: &LogPart) -> Finding {
    let LogPart { path, on, lost, why } = part;
    let all = on.len() == Category::ALL.len();
    let on = match on.as_slice() {
        [] => String::new(),
        _ if all => "; all categories are on".to_owned(),
        on => format!("; on: {}", on.join(", ")),
    };
    let text = format!("the daemon's own log is {path}{on}");
    match why {
        Some(why) if *lost > 0 => warning(
            CHECK,
            format!("{text}; lines that were not written: {lost}, the last one: {why}"),
            "make room there, or name another directory in HOB_DIR, then: hob restart",
        ),
        Some(_) | None => fine(CHECK, text),
    }
}
