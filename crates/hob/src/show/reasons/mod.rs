//! What each reason code means, in one sentence for a person: what happened, and what to do if
//! something can be done. `docs/reason-codes.md` says the same at length; tests hold the lists
//! equal to the enums that the codes come from, and the page to the lists.

pub(crate) mod codes;

/// What a warm call found.
pub const WARM: &[(&str, &str)] = &[
    ("copy-ready", "a forked copy was waiting"),
    ("standby-ready", "a preloaded process was waiting"),
    (
        "bare-interpreter",
        "its own warm state is being made; a copy of its interpreter performed it",
    ),
    ("installed-packages", "it was edited; a copy with its packages loaded performed it"),
    ("forked-on-demand", "no copy was waiting, so one was forked for it"),
    ("queued", "it waited for a worker"),
    ("worker-ready", "a handler's worker was waiting"),
    ("old-code", "its handler was edited, and what was loaded before performed it"),
    ("session", "its session had been started"),
    ("session-started", "its session was started for it"),
    ("front", "the front of the site answered it itself, without a program"),
    ("lane", "its sender was connected with a worker, and the daemon not asked"),
];

/// Why a call ran cold although the daemon was there.
pub const COLD: &[(&str, &str)] = &[
    ("asked", "--cold asked for it"),
    ("spawn-asked", "--isolation spawn asked for it"),
    ("not-hosted", "hob keeps no such programs warm; it runs as it is"),
    ("not-a-program", "this way of using an interpreter (-c, -, -i) is not kept warm"),
    ("interpreter-version", "this version of the interpreter is not supported"),
    ("learning", "the first call: it was watched, to learn what to preload"),
    ("being-learned", "another call of the program was being watched at that moment"),
    ("warming", "its warm state was being made; call again"),
    ("stale", "something that it loads has changed; the warm state is being made anew"),
    ("context", "the caller's groups, capabilities or namespaces are not the daemon's"),
    ("cgroup", "a limit of the caller's control group, or of the daemon's, is another"),
    ("priority", "its nice value or its like is not what the daemon or its runtime has"),
    ("limits", "its hard limits are above the daemon's, or its runtime starts with a limit"),
    ("descriptors", "descriptors beyond 0 to 2 were open, which its runtime does not take"),
    ("traced", "the caller is traced"),
    ("terminal", "hob was not in this terminal's session yet; the next calls there can be warm"),
    ("warm-failed", "the program could not be warmed; `hob status` says why"),
    ("busy", "too many calls at once"),
    ("memory", "the memory budget has no room for this program"),
    ("variables", "it reads a variable that is another in each call while it is loaded"),
    ("slower-warm", "its last calls were slower warm than cold; it is tried again later"),
    ("compared", "its last warm call like this failed; this one shows how it ends cold"),
    ("differs", "it fails warm and succeeds cold; `hob status` says how it ended"),
    ("not-as-loaded", "the program was not as its worker had loaded it, which executed it anew"),
    ("signals", "a signal is ignored or blocked, and its runtime had started otherwise"),
    ("processors", "its runtime had started for other processors"),
    ("encodings", "its runtime had decided on encodings before the call"),
    ("directory", "its runtime cannot take on this working directory"),
    ("environment", "its runtime cannot take on this environment"),
    ("edited", "it was edited so that it begins otherwise; the next calls find that loaded"),
    ("worker-closed", "the worker ended before it had read the call"),
    ("stopping", "the daemon was stopping"),
];

/// Why a call was refused.
pub const REFUSED: &[(&str, &str)] =
    &[("not-found", "there is no such program"), ("not-executable", "it cannot be executed")];

/// Why a call that could be run was not.
pub const NOT_RUN: &[(&str, &str)] = &[
    ("caller-left", "the caller left, or ran it by itself, before the call was given"),
    ("timed-out", "--timeout passed before the call was given to a worker"),
];

/// Why a request or a message was not given to a worker: the limit that was reached, by its name
/// in `hob.toml`, where it was one.
pub const NOT_GIVEN: &[(&str, &str)] = &[
    ("queue", "too many wait already (queue)"),
    ("sessions", "too many sessions (workers)"),
    ("timeout", "its time passed while it waited for a worker (timeout)"),
    ("limits.body", "its body is larger than the mount takes (limits.body)"),
    ("timeouts.body", "its body stopped coming (timeouts.body)"),
    ("body-broken", "its body broke off, or is not what its head says"),
    ("body-not-kept", "there was no room on the disk to keep its body"),
    ("no-host", "no other host offers its program, or none could be asked"),
];

/// What performed a message that no worker of this host did.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("other-host", "another host performed it"),
    ("stream", "a stream between hosts has it, and a host that offers it performs it"),
];

/// Why no daemon took a call.
pub const FALLBACK: &[(&str, &str)] = &[
    ("no-daemon", "no daemon was running; one was started for the next call"),
    ("sandbox", "a sandbox refuses hob's socket, or writing beside it; see `hob doctor`"),
    ("connect-timeout", "the daemon did not take the connection in time"),
    ("no-answer", "the daemon did not answer in time"),
    ("other-build", "the daemon is of another build; `hob restart` replaces it"),
    ("socket-dir-unsafe", "the socket's directory is not yours alone (0700); see `hob status`"),
    ("peer-uid", "the socket belongs to another user"),
    ("descriptors", "one of 0 to 2 was closed, or more than 64 beyond them were open"),
    ("traced", "the caller is traced"),
    ("system-refuses", "the system refused what it takes to watch the program; see `hob doctor`"),
    ("too-large", "arguments and environment are larger than a frame (1 MiB)"),
    ("bypassed", "HOB=0 bypassed hob"),
    ("daemon-closed", "the daemon closed the connection before the call was given"),
    ("protocol", "the daemon said what this client does not understand; `hob restart` helps"),
];

/// The meaning of a code in one of the lists; `None` for one of a newer build.
#[must_use]
pub fn meaning(list: &'static [(&'static str, &'static str)], code: &str) -> Option<&'static str> {
    list.iter().find(|(listed, _)| *listed == code).map(|(_, meaning)| *meaning)
}

/// The meaning of a receipt's code.
#[must_use]
pub fn of_receipt(code: &str) -> Option<&'static str> {
    [WARM, COLD, REFUSED, NOT_RUN, NOT_GIVEN, ELSEWHERE]
        .into_iter()
        .find_map(|list| meaning(list, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fallback::FallbackReason;
    use hob_core::outcome::{ColdReason, RefuseReason};

    fn codes(list: &[(&'static str, &str)]) -> Vec<&'static str> {
        list.iter().map(|(code, _)| *code).collect()
    }

    #[test]
    fn every_code_has_a_meaning_and_no_meaning_is_left_over() {
        let cold: Vec<_> = ColdReason::ALL.iter().map(|reason| reason.code()).collect();
        let refused: Vec<_> = RefuseReason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes(COLD), cold);
        assert_eq!(codes(REFUSED), refused);
        assert_eq!(codes(FALLBACK), FallbackReason::ALL.map(FallbackReason::code));
    }

    #[test]
    fn the_page_lists_every_code() {
        let page = include_str!("../../../../../docs/reason-codes.md");
        let lists = [WARM, COLD, REFUSED, NOT_RUN, NOT_GIVEN, ELSEWHERE, FALLBACK];
        for (code, _) in lists.into_iter().flatten() {
            assert!(page.contains(&format!("\n| `{code}` |")), "docs/reason-codes.md lacks {code}");
        }
    }

    #[test]
    fn a_meaning_is_a_fragment_that_fits_a_line() {
        for (code, meaning) in
            [WARM, COLD, REFUSED, NOT_RUN, NOT_GIVEN, ELSEWHERE, FALLBACK].into_iter().flatten()
        {
            assert!(meaning.len() <= 76 && !meaning.ends_with('.'), "{code}: {meaning}");
        }
        assert_eq!(of_receipt("a-later-code"), None);
    }
}
