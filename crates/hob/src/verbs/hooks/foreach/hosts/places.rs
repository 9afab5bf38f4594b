//! Which host is given the next set: how much each takes, and which take nothing for now. Knows no
//! clock and no connection; times are nanoseconds.

use std::collections::{BTreeMap, BTreeSet};

/// How long a host without room is passed over, the first time and at most.
const REST_MIN_NS: u64 = 20_000_000;
const REST_MAX_NS: u64 = 1_000_000_000;

/// A host that offers the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) host: String,
    pub(super) program: String,
    /// What tells its daemon from the one before it, and from another host of the same name.
    pub(super) id: String,
    pub(super) at_once: u32,
}

/// All hosts that were found.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<String, Place>);

#[derive(Debug)]
struct Place {
    program: String,
    ids: BTreeSet<String>,
    at_once: usize,
    open: usize,
    /// Takes nothing before this.
    rests_until_ns: u64,
    rest_ns: u64,
    /// Why it takes nothing until it is seen again.
    gone: Option<String>,
}

impl Places {
    /// These offer the directory now. One that is not among them is given nothing more once it says
    /// so itself.
    pub(super) fn seen(&mut self, found: &[Found]) {
        let mut all: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
        for one in found {
            all.entry(&one.host).or_default().push(one);
        }
        for (host, ones) in all {
            // A host may offer a directory under two names: the first counts.
            let program = &ones[0].program;
            let ones = ones.iter().filter(|one| one.program == *program);
            let at_once = ones.clone().map(|one| one.at_once as usize).sum();
            let ids = ones.map(|one| one.id.clone()).collect();
            let place = self.0.entry(host.to_owned()).or_insert_with(|| Place {
                program: program.clone(),
                ids: BTreeSet::new(),
                at_once: 0,
                open: 0,
                rests_until_ns: 0,
                rest_ns: REST_MIN_NS,
                gone: None,
            });
            place.program.clone_from(program);
            (place.ids, place.at_once, place.gone) = (ids, at_once, None);
        }
    }

    /// The host with most room, as a share of what it takes; with its program there.
    pub(super) fn next(&self, now_ns: u64) -> Option<(&str, &str)> {
        let free = self.0.iter().filter(|(_, place)| {
            place.gone.is_none() && place.rests_until_ns <= now_ns && place.open < place.at_once
        });
        let share = |place: &Place| place.open * 1000 / place.at_once.max(1);
        let least = free.min_by_key(|(_, place)| share(place));
        least.map(|(host, place)| (host.as_str(), place.program.as_str()))
    }

    /// It was given one more.
    pub(super) fn given(&mut self, host: &str) {
        self.with(host, |place| place.open += 1);
    }

    /// One that it was given has ended there.
    pub(super) fn ended(&mut self, host: &str) {
        self.with(host, |place| {
            place.open = place.open.saturating_sub(1);
            place.rest_ns = REST_MIN_NS;
        });
    }

    /// It has no room for what it was given.
    pub(super) fn busy(&mut self, host: &str, now_ns: u64) {
        self.with(host, |place| {
            place.open = place.open.saturating_sub(1);
            place.rests_until_ns = now_ns + place.rest_ns;
            place.rest_ns = (place.rest_ns * 2).min(REST_MAX_NS);
        });
    }

    /// It does not take what it was given, and nothing else until it is seen again.
    pub(super) fn gone(&mut self, host: &str, why: String) {
        self.with(host, |place| {
            place.open = place.open.saturating_sub(1);
            place.gone = Some(why);
        });
    }

    /// The daemons that it has now.
    pub(super) fn ids(&self, host: &str) -> BTreeSet<String> {
        self.0.get(host).map(|place| place.ids.clone()).unwrap_or_default()
    }

    /// When the next one has rested.
    pub(super) fn next_rested_ns(&self, now_ns: u64) -> Option<u64> {
        let rests = self.0.values().filter(|place| place.gone.is_none());
        rests.map(|place| place.rests_until_ns).filter(|at| *at > now_ns).min()
    }

    /// Why none of them takes anything any more; `None`: one does, or may soon.
    pub(super) fn none_left(&self) -> Option<String> {
        let gone: Option<Vec<&str>> = self.0.values().map(|place| place.gone.as_deref()).collect();
        let mut gone = gone?;
        gone.dedup();
        Some(gone.join("; "))
    }

    /// How many sets all of them take at one time.
    pub(super) fn at_once(&self) -> usize {
        self.0.values().map(|place| place.at_once).sum()
    }

    /// Each host with how many it takes.
    pub(super) fn shown(&self) -> String {
        let each = self.0.iter().map(|(host, place)| format!("{host} ({})", place.at_once));
        each.collect::<Vec<_>>().join(", ")
    }

    fn with(&mut self, host: &str, change: impl FnOnce(&mut Place)) {
        if let Some(place) = self.0.get_mut(host) {
            change(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(host: &str, id: &str, at_once: u32) -> Found {
        Found { host: host.to_owned(), program: "deploy".to_owned(), id: id.to_owned(), at_once }
    }

    fn fill(places: &mut Places, now_ns: u64) -> Vec<String> {
        let mut given = Vec::new();
        while let Some((host, _)) = places.next(now_ns) {
            let host = host.to_owned();
            places.given(&host);
            given.push(host);
        }
        given
    }

    #[test]
    fn each_is_given_its_share_and_no_more_than_it_takes() {
        let mut places = Places::default();
        places.seen(&[found("a", "1", 1), found("b", "2", 2)]);
        assert_eq!(places.at_once(), 3);
        let mut given = fill(&mut places, 0);
        given.sort();
        assert_eq!(given, ["a", "b", "b"]);
        places.ended("b");
        assert_eq!(fill(&mut places, 0), ["b"]);
    }

    #[test]
    fn one_without_room_is_passed_over_for_longer_each_time() {
        let mut places = Places::default();
        places.seen(&[found("a", "1", 1), found("b", "2", 1)]);
        fill(&mut places, 0);
        places.busy("a", 0);
        assert_eq!(places.next(REST_MIN_NS - 1), None);
        assert_eq!(places.next_rested_ns(0), Some(REST_MIN_NS));
        assert_eq!(fill(&mut places, REST_MIN_NS), ["a"]);
        places.busy("a", REST_MIN_NS);
        assert_eq!(places.next_rested_ns(REST_MIN_NS), Some(3 * REST_MIN_NS));
    }

    #[test]
    fn one_that_has_gone_is_given_nothing_until_it_is_seen() {
        let mut places = Places::default();
        places.seen(&[found("a", "1", 1), found("b", "2", 1)]);
        fill(&mut places, 0);
        places.gone("a", "hob stops there".to_owned());
        assert_eq!(places.none_left(), None);
        places.gone("b", "hob stops there".to_owned());
        assert_eq!(
            (places.next(0), places.none_left().unwrap().as_str()),
            (None, "hob stops there")
        );
        places.seen(&[found("a", "3", 1)]);
        assert_eq!(fill(&mut places, 0), ["a"]);
        assert!(places.ids("a").contains("3") && !places.ids("a").contains("1"));
    }
}
