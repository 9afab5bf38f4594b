//! Which way an app's requests go: on a lane to a worker, by the loop, or into the one queue before
//! both. Decides, and does nothing by itself: who asks here speaks with lanes and loop.
//!
//! Invariants: at most as many requests are given as the app has workers, but for those that only the
//! loop can take; who waits longest is served first; the queue has its bound.

use std::collections::VecDeque;

use tokio::sync::oneshot;

/// Where lanes are refused, or do not last, one is asked for again after so many answers by the loop,
/// at most.
const PAUSE_MAX: u32 = 63;
/// A lane that has had fewer requests has cost more than it saved.
const LASTING: u32 = 16;

/// Where a request goes.
#[derive(Debug)]
pub(super) enum Way<L> {
    /// On a lane, which is its own until it ends.
    Lane(L),
    /// By the loop.
    Loop,
}

/// What a request finds that comes.
#[derive(Debug)]
pub(super) enum Found<L> {
    /// A way.
    Free(Way<L>),
    /// It waits for one.
    Queued(oneshot::Receiver<Way<L>>),
    /// Too many wait.
    Full,
}

/// Whether a lane is to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Lane,
    Nothing,
}

/// The ways of one app.
#[derive(Debug)]
pub(super) struct Desk<L> {
    /// Requests that are given at one time: as many as there may be workers.
    given_max: usize,
    queue_max: usize,
    /// Lanes without a request; the one that was used last is used next.
    idle: Vec<L>,
    /// All lanes.
    lent: usize,
    /// Lanes that were asked for.
    coming: usize,
    by_loop: usize,
    /// Lanes that the loop wants back for what waits there.
    owed: usize,
    waiting: VecDeque<oneshot::Sender<Way<L>>>,
    /// How many answers by the loop until a lane is asked for, now and after the next refusal.
    pause: u32,
    next_pause: u32,
}

impl<L> Desk<L> {
    pub(super) fn new(given_max: usize, queue_max: usize) -> Desk<L> {
        Desk {
            given_max,
            queue_max,
            idle: Vec::new(),
            lent: 0,
            coming: 0,
            by_loop: 0,
            owed: 0,
            waiting: VecDeque::new(),
            pause: 0,
            next_pause: 1,
        }
    }

    /// A request that may go either way.
    pub(super) fn enter(&mut self) -> Found<L> {
        if let Some(way) = self.free() {
            return Found::Free(way);
        }
        if self.waiting.len() >= self.queue_max {
            self.waiting.retain(|waiting| !waiting.is_closed());
        }
        if self.waiting.len() >= self.queue_max {
            return Found::Full;
        }
        let (gives, given) = oneshot::channel();
        self.waiting.push_back(gives);
        Found::Queued(given)
    }

    /// A request that only the loop can take, which has a queue of its own.
    pub(super) fn by_loop(&mut self) {
        self.by_loop += 1;
    }

    /// The loop has done with a request.
    pub(super) fn loop_is_done(&mut self) -> Want {
        self.by_loop -= 1;
        self.owed = self.owed.min(self.by_loop);
        let has_room = self.given() < self.given_max;
        let want = if has_room && self.pause == 0 { Want::Lane } else { Want::Nothing };
        match want {
            Want::Lane => self.coming += 1,
            Want::Nothing => self.pause = self.pause.saturating_sub(1),
        }
        self.serve();
        want
    }

    /// What became of a lane that was asked for.
    pub(super) fn came(&mut self, lane: Option<L>) {
        self.coming -= 1;
        match lane {
            Some(lane) => {
                self.lent += 1;
                self.idle.push(lane);
            }
            None => self.rest(),
        }
        self.serve();
    }

    fn rest(&mut self) {
        self.pause = self.next_pause;
        self.next_pause = (2 * self.next_pause + 1).min(PAUSE_MAX);
    }

    /// A lane has done with a request.
    pub(super) fn lane_is_free(&mut self, lane: L) {
        if self.owed > 0 {
            // Closed, it lets its worker go back.
            self.owed -= 1;
            self.lent -= 1;
        } else {
            self.idle.push(lane);
        }
        self.serve();
    }

    /// A lane is over, and its request too.
    pub(super) fn lane_is_over(&mut self) {
        self.lent -= 1;
        self.serve();
    }

    /// A lane was over before its request, after so many others: that goes by the loop.
    pub(super) fn diverted(&mut self, had: u32) {
        if had < LASTING {
            self.rest();
        } else {
            self.next_pause = 1;
        }
        self.lent -= 1;
        self.by_loop += 1;
    }

    /// A request has been at the loop for long: it may wait for a worker that is lent to nobody who
    /// uses it. The next lane that is free goes back.
    pub(super) fn spare(&mut self) {
        match self.idle.pop() {
            Some(_) => self.lent -= 1,
            None => self.owed += 1,
        }
    }

    /// How many are given, or about to be.
    fn given(&self) -> usize {
        self.lent + self.coming + self.by_loop
    }

    fn free(&mut self) -> Option<Way<L>> {
        if let Some(lane) = self.idle.pop() {
            return Some(Way::Lane(lane));
        }
        (self.given() < self.given_max).then(|| {
            self.by_loop += 1;
            Way::Loop
        })
    }

    /// Gives to those who wait what is free.
    fn serve(&mut self) {
        while !self.waiting.is_empty() {
            let Some(mut way) = self.free() else { return };
            while let Some(first) = self.waiting.pop_front() {
                match first.send(way) {
                    Ok(()) => break,
                    // It has left meanwhile.
                    Err(back) => way = back,
                }
                if self.waiting.is_empty() {
                    return self.take_back(way);
                }
            }
        }
    }

    /// A way that nobody went: others may.
    pub(super) fn give_back(&mut self, way: Way<L>) {
        self.take_back(way);
        self.serve();
    }

    fn take_back(&mut self, way: Way<L>) {
        match way {
            Way::Lane(lane) => self.idle.push(lane),
            Way::Loop => self.by_loop -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A desk of two workers and a queue of two, of which `lanes` are lent.
    fn desk(lanes: u32) -> Desk<u32> {
        let mut desk = Desk::new(2, 2);
        for lane in 0..lanes {
            desk.by_loop();
            assert_eq!(desk.loop_is_done(), Want::Lane);
            desk.came(Some(lane));
        }
        desk
    }

    fn way(found: Found<u32>) -> Option<u32> {
        match found {
            Found::Free(Way::Lane(lane)) => Some(lane),
            Found::Free(Way::Loop) => None,
            other @ (Found::Queued(_) | Found::Full) => panic!("{other:?}"),
        }
    }

    fn queued(found: Found<u32>) -> oneshot::Receiver<Way<u32>> {
        match found {
            Found::Queued(given) => given,
            other @ (Found::Free(_) | Found::Full) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lane_is_used_before_the_loop_and_no_more_are_given_than_there_are_workers() {
        let mut desk = desk(1);
        assert_eq!(way(desk.enter()), Some(0));
        assert_eq!(way(desk.enter()), None);
        let (mut first, mut second) = (queued(desk.enter()), queued(desk.enter()));
        assert!(matches!(desk.enter(), Found::Full));
        desk.lane_is_free(0);
        assert!(matches!(first.try_recv(), Ok(Way::Lane(0))));
        // The loop's place is a lane's now, for which the next waits.
        assert_eq!(desk.loop_is_done(), Want::Lane);
        assert!(second.try_recv().is_err());
        desk.came(Some(1));
        assert!(matches!(second.try_recv(), Ok(Way::Lane(1))));
    }

    #[test]
    fn who_has_left_takes_nobodys_place() {
        let mut desk = desk(2);
        let (_, _) = (desk.enter(), desk.enter());
        let gone = [queued(desk.enter()), queued(desk.enter())];
        drop(gone);
        let mut waits = queued(desk.enter());
        desk.lane_is_over();
        assert!(matches!(waits.try_recv(), Ok(Way::Loop)));
    }

    #[test]
    fn after_refusals_and_short_lanes_the_loop_is_asked_less_often() {
        let mut desk: Desk<u32> = Desk::new(2, 2);
        let mut asked = 0;
        for _ in 0..100 {
            desk.by_loop();
            if desk.loop_is_done() == Want::Lane {
                asked += 1;
                desk.came(None);
            }
        }
        assert_eq!(asked, 6);
        let mut desk = self::desk(1);
        assert_eq!(way(desk.enter()), Some(0));
        desk.diverted(LASTING - 1);
        assert_eq!(desk.loop_is_done(), Want::Nothing);
        desk.by_loop();
        assert_eq!(desk.loop_is_done(), Want::Lane);
    }

    #[test]
    fn a_lane_that_the_loop_may_need_goes_back() {
        let mut desk = desk(1);
        assert_eq!(way(desk.enter()), Some(0));
        assert_eq!(way(desk.enter()), None);
        desk.spare();
        desk.lane_is_free(0);
        // It is gone: there is room for one by the loop.
        assert_eq!(way(desk.enter()), None);
        assert!(matches!(desk.enter(), Found::Queued(_)));
    }
}
