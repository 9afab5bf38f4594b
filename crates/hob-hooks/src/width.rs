//! How many hooks each runner of a crew runs at once: no more than do any good.
//!
//! A processor that runs one short hook after another has nothing to win by further ones beside it,
//! which cost it what its caches hold (`docs/why/hooks-figures.md`). It wins by each one that waits
//! for something else: a disk, the network, another hook. So a crew begins *wide*, with all the jobs
//! that it may have. While it uses nearly all of its processors' time it tries whether it still does
//! when it is *narrow*. If it does not, or if nothing ends for a moment, it is wide again, each time
//! for longer.
//!
//! A pure function of what it is told and of time, in nanoseconds of any clock.

/// What is seen before a judgement: some ten of the shortest sets.
const WINDOW_NS: u64 = 10_000_000;
/// The same while it is wide and has not been narrow in vain: it may be so for nothing.
const FIRST_WINDOW_NS: u64 = 5_000_000;
/// A narrow crew in which nothing ends for this long is wide, and a hook that takes as long keeps
/// those that began with it waiting no longer.
pub(crate) const STALL_NS: u64 = 8_000_000;
/// So many windows of a wide crew are judged together, and later ones with them.
const WIDE_WINDOWS: u32 = 2;
/// Thousandths of the processors' time. A crew that uses more than this becomes narrow. One that
/// never waits is at 940 to 970 then, and what it wins is some 50.
const NEARLY_ALL: u64 = 850;
/// A narrow crew becomes wide if in so many windows together it has used less than this. What a hook
/// has used is known at its end, and a shell that is made ready takes some milliseconds: one window
/// is at 600 to 1,100 although nothing waits, and a crew that believes it is wide for nothing.
const TOO_LITTLE: [(u32, u64); 3] = [(1, 600), (2, 800), (6, 870)];
/// How many windows a crew stays wide after it was narrow in vain: twice as many each time.
const PATIENCE: u32 = 32;
const PATIENCE_MAX: u32 = 1024;

/// How many hooks the runners of a crew run at once.
#[derive(Debug)]
pub(crate) struct Width {
    processors: u64,
    narrow: bool,
    /// A hook was lately started afresh.
    afresh: bool,
    /// When something last ended.
    end_ns: u64,
    /// When the window began, and what had been used by then.
    since_ns: u64,
    used_by_then_ns: u64,
    /// How many windows the crew has been as wide as it is. The first one is not judged: in it end
    /// what was begun before.
    windows: u32,
    /// What was used in them and what there was, older ones for less.
    used_ns: u64,
    there_ns: u64,
    /// How many windows it stays wide yet, and how many the next time.
    stays: u32,
    patience: u32,
}

impl Width {
    /// Of a crew with so many processors, that has used so much of their time by now.
    pub(crate) fn new(processors: usize, now_ns: u64, used_ns: u64) -> Width {
        Width {
            processors: u64::try_from(processors).unwrap_or(u64::MAX).max(1),
            narrow: false,
            afresh: false,
            end_ns: now_ns,
            since_ns: now_ns,
            used_by_then_ns: used_ns,
            windows: 0,
            used_ns: 0,
            there_ns: 0,
            stays: 0,
            patience: PATIENCE,
        }
    }

    /// How many hooks a runner runs at once; `None`: as many as it has sets.
    pub(crate) fn hooks(&self) -> Option<usize> {
        // A process that begins now and then leaves its processor idle, a fork of a shell does not.
        self.narrow.then_some(if self.afresh { 2 } else { 1 })
    }

    /// When to judge although nothing has ended; `None`: no need to.
    pub(crate) fn stalls_at_ns(&self) -> Option<u64> {
        self.narrow.then(|| self.end_ns.saturating_add(STALL_NS))
    }

    /// A hook has ended, which was started afresh or not.
    pub(crate) fn hook_ended(&mut self, now_ns: u64, afresh: bool) {
        (self.end_ns, self.afresh) = (now_ns, afresh);
    }

    /// Whether there is something to judge.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        let new = !self.narrow && self.patience == PATIENCE;
        now_ns.saturating_sub(self.since_ns) >= if new { FIRST_WINDOW_NS } else { WINDOW_NS }
            || self.stalls_at_ns().is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// Judges, when it is due. `used_ns`: how much processor time the crew has had in all.
    pub(crate) fn judge(&mut self, now_ns: u64, used_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        let there_ns = elapsed_ns.saturating_mul(self.processors);
        // What a long hook has used is known at its end.
        let most_ns = there_ns.saturating_add(there_ns / 10);
        let window_ns = used_ns.saturating_sub(self.used_by_then_ns).min(most_ns);
        let stalled = self.stalls_at_ns().is_some_and(|at_ns| at_ns <= now_ns);
        (self.since_ns, self.used_by_then_ns) = (now_ns, used_ns);
        self.stays = self.stays.saturating_sub(1);
        if self.windows > 0 {
            self.used_ns = (self.used_ns / 8 * 7).saturating_add(window_ns);
            self.there_ns = (self.there_ns / 8 * 7).saturating_add(there_ns);
        }
        let used = self.used_ns.saturating_mul(1000) / self.there_ns.max(1);
        match self.narrow {
            false if self.windows >= WIDE_WINDOWS && self.stays == 0 && used > NEARLY_ALL => {
                self.turn(true, now_ns);
            }
            true if stalled
                || TOO_LITTLE
                    .iter()
                    .any(|(windows, few)| self.windows >= *windows && used < *few) =>
            {
                self.stays = self.patience;
                self.patience = self.patience.saturating_mul(2).min(PATIENCE_MAX);
                self.turn(false, now_ns);
            }
            _ => self.windows = self.windows.saturating_add(1),
        }
    }

    fn turn(&mut self, narrow: bool, now_ns: u64) {
        (self.narrow, self.end_ns) = (narrow, now_ns);
        (self.windows, self.used_ns, self.there_ns) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSORS: u64 = 2;

    /// A crew whose time goes by.
    struct World {
        width: Width,
        now_ns: u64,
        used_ns: u64,
    }

    impl World {
        fn new() -> World {
            World { width: Width::new(2, 5, 7), now_ns: 5, used_ns: 7 }
        }

        /// A window in which hooks end all the time, and so many thousandths are used; shorter if it
        /// turns in the midst of it.
        fn window(&mut self, used: u64) {
            let narrow = self.width.narrow;
            for _ in 0..10 {
                if self.width.narrow != narrow {
                    return;
                }
                self.now_ns += WINDOW_NS / 10;
                self.used_ns += PROCESSORS * WINDOW_NS / 10 * used / 1000;
                self.width.hook_ended(self.now_ns, false);
                if self.width.is_due(self.now_ns) {
                    self.width.judge(self.now_ns, self.used_ns);
                }
            }
        }

        /// As `window`, as long as it is wide, or narrow, at most so many times. How many it were.
        fn windows_while(&mut self, narrow: bool, used: u64, most: u32) -> u32 {
            let mut count = 0;
            while count < most && self.width.hooks().is_some() == narrow {
                self.window(used);
                count += 1;
            }
            count
        }
    }

    #[test]
    fn begins_wide_and_stays_so_while_hooks_wait() {
        assert_eq!(World::new().windows_while(false, 840, 1000), 1000);
    }

    #[test]
    fn is_narrow_as_soon_as_and_as_long_as_nothing_waits() {
        let mut world = World::new();
        assert_eq!(world.windows_while(false, 960, 1000), 2);
        assert_eq!(world.windows_while(true, 940, 1000), 1000);
        assert_eq!(world.width.hooks(), Some(1));
        world.width.hook_ended(world.now_ns, true);
        assert_eq!(world.width.hooks(), Some(2));
    }

    #[test]
    fn one_window_in_which_something_was_made_ready_is_no_reason_to_be_wide() {
        let mut world = World::new();
        world.windows_while(false, 960, 1000);
        world.window(1100);
        world.window(620);
        world.window(1000);
        assert_eq!(world.windows_while(true, 960, 1000), 1000);
    }

    #[test]
    fn what_waits_when_it_is_narrow_makes_it_wide_for_twice_as_long_each_time() {
        let mut world = World::new();
        world.windows_while(false, 960, 1000);
        // The first window is that of what was begun before.
        assert_eq!(world.windows_while(true, 500, 1000), 2, "far too little");
        assert_eq!(world.windows_while(false, 960, 1000), PATIENCE);
        assert_eq!(world.windows_while(true, 850, 1000), 7, "a little too little");
        assert_eq!(world.windows_while(false, 960, 1000), 2 * PATIENCE);
        for _ in 0..20 {
            world.windows_while(true, 750, 1000);
            world.windows_while(false, 960, 10_000);
        }
        world.windows_while(true, 750, 1000);
        assert_eq!(world.windows_while(false, 960, 10_000), PATIENCE_MAX);
    }

    #[test]
    fn a_narrow_crew_in_which_nothing_ends_is_wide() {
        let mut world = World::new();
        assert_eq!(world.width.stalls_at_ns(), None, "it is as wide as can be");
        world.windows_while(false, 960, 1000);
        let at_ns = world.width.stalls_at_ns().unwrap();
        assert!(!world.width.is_due(at_ns - 1));
        assert!(world.width.is_due(at_ns));
        // However busy it is: whoever is narrow and long keeps the others waiting.
        world.width.judge(at_ns, world.used_ns + 2 * STALL_NS);
        assert_eq!(world.width.hooks(), None);
    }

    #[test]
    fn one_window_of_an_others_work_does_not_make_it_wide() {
        let mut world = World::new();
        world.windows_while(false, 960, 1000);
        assert_eq!(world.windows_while(true, 950, 10), 10);
        world.window(600);
        assert_eq!(world.windows_while(true, 950, 10), 10);
    }

    #[test]
    fn what_a_long_hook_has_used_counts_as_no_more_than_there_was() {
        let mut world = World::new();
        world.windows_while(false, 960, 1000);
        world.window(950);
        world.used_ns += 100 * WINDOW_NS;
        assert!(world.windows_while(true, 500, 1000) < 8);
    }
}
