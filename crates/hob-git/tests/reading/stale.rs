//! Nothing that is read is older than the request, whatever git does meanwhile.

use crate::repository::{Place, bytes, series, usual};

/// Pushes, force pushes, packing and pruning between two requests, in the order of a fixed series.
#[test]
fn no_answer_is_older_than_its_request() {
    let place = Place::new();
    place.commit("acme", &[("f", b"start")]);
    let mut reader = place.reader(usual());
    let mut other = place.reader(usual());
    for (round, state) in series().take(120).enumerate() {
        let text = format!("round {round}");
        place.write("acme/f", text.as_bytes());
        let amend: &[&str] = if state >> 62 == 0 { &["--amend"] } else { &[] };
        let commit = [&["commit", "--quiet", "--all", "--message", "x"], amend].concat();
        place.git("acme", &commit);
        match (state >> 33) % 5 {
            0 => place.git("acme", &["pack-refs", "--all", "--prune"]),
            1 => place.git("acme", &["repack", "-a", "-d", "--quiet"]),
            2 => {
                place.git("acme", &["reflog", "expire", "--expire=now", "--all"]);
                place.git("acme", &["gc", "--quiet", "--prune=now"])
            }
            _ => Vec::new(),
        };
        assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(text.clone().into_bytes()));
        if round % 7 == 0 {
            assert_eq!(bytes(&mut other, "acme", "HEAD", "f"), Ok(text.into_bytes()));
        }
    }
}

/// One thread pushes and packs without a pause, another one reads: each answer is one that was true
/// between the begin of its request and its end.
#[test]
fn what_is_read_amid_a_push_was_true_at_that_time() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let place = Place::new();
    place.commit("acme", &[("f", b"0")]);
    let (begun, done) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=60_u32 {
                place.write("acme/f", round.to_string().as_bytes());
                begun.store(round, Ordering::SeqCst);
                place.git("acme", &["commit", "--quiet", "--all", "--message", "x"]);
                if round % 4 == 0 {
                    place.git("acme", &["gc", "--quiet", "--prune=now"]);
                } else if round % 4 == 2 {
                    place.git("acme", &["pack-refs", "--all"]);
                }
                done.store(round, Ordering::SeqCst);
            }
        });
        let mut reader = place.reader(usual());
        let mut asked = 0_u64;
        while done.load(Ordering::SeqCst) < 60 || asked == 0 {
            let earliest = done.load(Ordering::SeqCst);
            let text = bytes(&mut reader, "acme", "main", "f").expect("a file");
            let latest = begun.load(Ordering::SeqCst);
            let read: u32 = String::from_utf8(text).expect("text").parse().expect("a number");
            assert!((earliest..=latest).contains(&read), "{earliest} <= {read} <= {latest}");
            asked += 1;
        }
    });
}

#[test]
fn a_repository_that_was_replaced_is_another_one() {
    let place = Place::new();
    let id = place.commit("acme", &[("f", b"old")]);
    let mut reader = place.reader(usual());
    assert_eq!(bytes(&mut reader, "acme", &id, "f"), Ok(b"old".to_vec()));
    std::fs::remove_dir_all(place.root().join("acme")).expect("removed");
    assert!(bytes(&mut reader, "acme", "main", "f").is_err());
    place.commit("acme", &[("f", b"new"), ("g", b"x")]);
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(b"new".to_vec()));
    assert!(bytes(&mut reader, "acme", &id, "f").is_err());
}
