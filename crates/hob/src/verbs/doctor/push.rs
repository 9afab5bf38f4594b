//! The collector that receipts are pushed to: whether the user's configuration can be used, and
//! whether it takes them. Nothing is said where nothing is configured.

use hob_core::status::PushPart;
use hob_daemon::recorder::push::Settings;
use hob_os::start::Start;

use super::{Finding, fault, fine, hosts, warning};
use crate::verbs::daemon::push;

const CHECK: &str = "export";

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let Some(path) = hosts::config(start) else { return Vec::new() };
    let settings = match Settings::read(&path) {
        Ok(None) => return Vec::new(),
        Ok(Some(settings)) => settings,
        Err(why) => {
            let fix = hosts::fix_of(&why, &path);
            return vec![fault(CHECK, format!("no receipts are pushed: {why}"), fix)];
        }
    };
    if let Err(why) = push::address(&settings) {
        let fix = format!("correct {}, then: hob restart", path.display());
        return vec![fault(CHECK, format!("no receipts are pushed: {why}"), fix)];
    }
    let to = &settings.url;
    let Some(status) = hosts::status(start) else {
        return vec![fine(CHECK, format!("a daemon pushes its receipts to {to}; none runs"))];
    };
    let Some(part) = status.push.filter(|part| part.to == *to) else {
        let text = format!("the daemon was started with another configuration than {path:?} has");
        return vec![warning(CHECK, text, "hob restart")];
    };
    vec![told(&part)]
}

fn told(part: &PushPart) -> Finding {
    let PushPart { to, waiting, sent, dropped, rejected_spans, why } = part;
    let mut text = format!("receipts are pushed to {to}: {sent} sent, {waiting} wait");
    for (count, what) in
        [(dropped, "were dropped"), (rejected_spans, "of their spans were not kept there")]
    {
        if *count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    match why {
        Some(why) => warning(
            CHECK,
            format!("{text}; the last attempt: {why}"),
            "start the collector, or correct `otlp` and `headers` of [export] in config.toml, then: \
             hob restart",
        ),
        None => fine(CHECK, text),
    }
}
