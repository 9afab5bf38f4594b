//! Parked continuations: the futures of asynchronous handlers, packed by type in pages of 64, and
//! what each of them owes an answer to. A parked future costs its own size and a header of 20
//! bytes: no box, no reference count, no waker.
//!
//! Invariants: a page belongs to one type of future and never moves while one of its slots is
//! taken, so that a future is pinned from the moment it is parked; a bit of `free` is clear exactly
//! while its slot holds a header and a future; a future is not removed while it is being polled.
//!
//! One of the three modules with `unsafe` code: a slab of futures of many types that stay where
//! they are is not to be had from safe Rust without a box for each. Miri runs over its tests.
#![expect(unsafe_code, reason = "futures of many types are packed and pinned in pages")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::hash::{Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use crate::memory::parcel::Slot;
use crate::memory::when::When;
use crate::shard::Shard;

const SLOTS: usize = 64;
/// Ask slots keep 28 bits for the number of a task.
const TASKS_MAX: usize = (1 << 28) - 1;

/// Whose a continuation is, and who waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) actor: u32,
    pub(crate) asker: Slot,
    // In halves, for an alignment of four: a future of twenty bytes then costs forty.
    when: [u32; 2],
}

impl Header {
    #[expect(clippy::cast_possible_truncation, reason = "the word is taken in two halves")]
    pub(crate) fn new(actor: u32, asker: Slot, when: When) -> Header {
        Header { actor, asker, when: [(when.bits() >> 32) as u32, when.bits() as u32] }
    }

    pub(crate) fn when(&self) -> When {
        When::from_bits((u64::from(self.when[0]) << 32) | u64::from(self.when[1]))
    }
}

#[repr(C)]
struct Parked<F> {
    header: Header,
    future: F,
}

/// What is known of a type of future.
struct Kind {
    layout: Layout,
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>, &Shard) -> Poll<()>,
    drop: unsafe fn(NonNull<u8>),
}

/// A future whose end is an answer. The shard knows what to do with it.
pub(crate) trait Continuation: 'static {
    type Answer: Send + 'static;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Answer>;
}

impl<F> Continuation for F
where
    F: Future + 'static,
    F::Output: Send + 'static,
{
    type Answer = F::Output;
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Future::poll(self, cx)
    }
}

/// Ready: it has answered, and its future is gone.
unsafe fn poll<F: Continuation>(at: NonNull<u8>, cx: &mut Context<'_>, shard: &Shard) -> Poll<()> {
    let at = at.cast::<Parked<F>>().as_ptr();
    // SAFETY: the caller says that a `Parked<F>` lies here and that nobody else has a reference to
    // it; a page never moves, so the future is pinned.
    let future = unsafe { Pin::new_unchecked(&mut (*at).future) };
    match future.poll(cx) {
        Poll::Ready(answer) => {
            // SAFETY: as above; a header is plain numbers.
            let header = unsafe { (&raw const (*at).header).read() };
            shard.answered(header, answer);
            // SAFETY: as above; nobody polls or drops it again, for it is released right after. It
            // is marked as polled still, for whatever its drop does.
            let end = AssertUnwindSafe(|| unsafe { (&raw mut (*at).future).drop_in_place() });
            // It has answered: a panic of what it leaves behind is nobody's.
            let _ = catch_unwind(end);
            Poll::Ready(())
        }
        Poll::Pending => Poll::Pending,
    }
}

unsafe fn drop_future<F>(at: NonNull<u8>) {
    let at = at.cast::<Parked<F>>().as_ptr();
    // SAFETY: the caller says that a `Parked<F>` lies here, and forgets it.
    unsafe { (&raw mut (*at).future).drop_in_place() };
}

struct Page {
    /// None: given back.
    at: Option<NonNull<u8>>,
    slab: u32,
    /// The chunk that it is a part of, or `BY_ITSELF`.
    chunk: u32,
    free: u64,
    /// From one place to the next: its slab's, at hand.
    stride: usize,
}

struct Slab {
    kind: Kind,
    /// Pages with a free slot; the last one is used first.
    partial: Vec<u32>,
    /// Memory for pages, and of which chunk it is.
    spare: Vec<(NonNull<u8>, u32)>,
    /// How many pages have memory.
    pages: usize,
}

/// Memory for many pages of one slab.
struct Chunk {
    /// None: given back.
    at: Option<NonNull<u8>>,
    /// How many pages of it are not spare.
    used: usize,
}

/// A slab that has less than a chunk allocates its pages one by one, and stays small.
const CHUNK_BYTES: usize = 2 << 20;
const CHUNK: Layout = match Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};
const BY_ITSELF: u32 = u32::MAX;
const RECENT: usize = 8;

/// All continuations of a shard.
pub(crate) struct Tasks {
    pages: Vec<Page>,
    unused: Vec<u32>,
    slabs: Vec<Slab>,
    chunks: Vec<Chunk>,
    unused_chunks: Vec<u32>,
    by_type: HashMap<TypeId, u32, crate::memory::hash::ByType>,
    /// What was found there last, by the low bits of its key.
    recent: [Option<(TypeId, u32)>; RECENT],
    /// Which one is being polled, or parked, or dropped: no other is, and none is released.
    polled: Option<u32>,
    parked: usize,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("parked", &self.parked).finish_non_exhaustive()
    }
}

fn split(index: u32) -> (usize, usize) {
    (index as usize / SLOTS, index as usize % SLOTS)
}

impl Tasks {
    pub(crate) fn new() -> Tasks {
        Tasks {
            pages: Vec::new(),
            unused: Vec::new(),
            slabs: Vec::new(),
            chunks: Vec::new(),
            unused_chunks: Vec::new(),
            by_type: HashMap::default(),
            recent: [None; RECENT],
            polled: None,
            parked: 0,
        }
    }

    /// How many are parked.
    #[cfg(test)]
    pub(crate) fn parked(&self) -> usize {
        self.parked
    }

    #[inline]
    fn slab<F: Continuation>(&mut self) -> u32 {
        let of = TypeId::of::<F>();
        // The compiler knows which line that is.
        let mut key = crate::memory::hash::Same::default();
        of.hash(&mut key);
        #[expect(clippy::cast_possible_truncation, reason = "its low bits are wanted")]
        let line = key.finish() as usize % RECENT;
        if let Some((known, slab)) = self.recent[line]
            && known == of
        {
            return slab;
        }
        let slab = self.find_slab::<F>();
        self.recent[line] = Some((of, slab));
        slab
    }

    #[cold]
    fn find_slab<F: Continuation>(&mut self) -> u32 {
        if let Some(&slab) = self.by_type.get(&TypeId::of::<F>()) {
            return slab;
        }
        let slab = u32::try_from(self.slabs.len()).unwrap_or(u32::MAX);
        let layout = Layout::new::<Parked<F>>().pad_to_align();
        let kind = Kind { layout, poll: poll::<F>, drop: drop_future::<F> };
        self.slabs.push(Slab { kind, partial: Vec::new(), spare: Vec::new(), pages: 0 });
        self.by_type.insert(TypeId::of::<F>(), slab);
        slab
    }

    /// A free place for one more; until [`Tasks::taken`] or [`Polled`] says otherwise, nothing is
    /// parked or released. None: there are too many.
    #[inline]
    fn reserve<F: Continuation>(&mut self) -> Option<(NonNull<u8>, u32)> {
        assert!(self.polled.is_none(), "a shard parks or polls one continuation at a time");
        let slab = self.slab::<F>();
        let page = match self.slabs[slab as usize].partial.last() {
            Some(&page) => page,
            None => self.grow(slab)?,
        };
        let entry = &self.pages[page as usize];
        let slot = entry.free.trailing_zeros();
        let stride = Layout::new::<Parked<F>>().pad_to_align().size();
        // SAFETY: within the page, which has `SLOTS` places of this stride.
        let at = entry.at.map(|at| unsafe { at.add(slot as usize * stride) });
        #[expect(clippy::cast_possible_truncation, reason = "there are 64 slots")]
        let index = page * SLOTS as u32 + slot;
        self.polled = Some(index);
        Some((at.expect("a page in use has memory"), index))
    }

    /// What was reserved holds a continuation now.
    #[inline]
    fn taken(&mut self, index: u32) {
        let (page, _) = split(index);
        let entry = &mut self.pages[page];
        // The lowest one that is free, still.
        entry.free &= entry.free - 1;
        if entry.free == 0 {
            self.slabs[entry.slab as usize].partial.pop();
        }
        self.parked += 1;
        self.polled = None;
    }

    /// One has answered, and its future is gone.
    #[inline]
    fn ended(&mut self, index: u32) {
        self.polled = None;
        self.release(index);
    }

    /// One more page; its number is the last of its slab's `partial`.
    fn grow(&mut self, slab: u32) -> Option<u32> {
        if self.unused.is_empty() && self.pages.len() >= TASKS_MAX / SLOTS {
            return None;
        }
        let (at, chunk) = self.memory(slab)?;
        let stride = self.slabs[slab as usize].kind.layout.size();
        let entry = Page { at: Some(at), slab, chunk, free: u64::MAX, stride };
        let page = match self.unused.pop() {
            Some(page) => {
                self.pages[page as usize] = entry;
                page
            }
            None => {
                self.pages.push(entry);
                u32::try_from(self.pages.len() - 1).expect("pages are bounded by `TASKS_MAX`")
            }
        };
        self.slabs[slab as usize].partial.push(page);
        Some(page)
    }

    /// Memory for one more page of a slab, and its chunk.
    fn memory(&mut self, slab: u32) -> Option<(NonNull<u8>, u32)> {
        let slab = &mut self.slabs[slab as usize];
        let layout = page_layout(&slab.kind)?;
        slab.pages += 1;
        if let Some((at, chunk)) = slab.spare.pop() {
            self.chunks[chunk as usize].used += 1;
            return Some((at, chunk));
        }
        let in_chunk = CHUNK_BYTES / layout.size();
        if slab.pages <= in_chunk || in_chunk < 2 || layout.align() > CHUNK.align() {
            // A future has a header beside it, so its page is not empty.
            // SAFETY: the size is not zero.
            let at = NonNull::new(unsafe { alloc(layout) });
            return Some((at.unwrap_or_else(|| handle_alloc_error(layout)), BY_ITSELF));
        }
        // SAFETY: the size is not zero.
        let at = NonNull::new(unsafe { alloc(CHUNK) });
        let at = at.unwrap_or_else(|| handle_alloc_error(CHUNK));
        populate(at);
        let entry = Chunk { at: Some(at), used: 1 };
        let chunk = match self.unused_chunks.pop() {
            Some(chunk) => {
                self.chunks[chunk as usize] = entry;
                chunk
            }
            None => {
                self.chunks.push(entry);
                u32::try_from(self.chunks.len() - 1).expect("there are fewer chunks than pages")
            }
        };
        // SAFETY: within the chunk; a page's size is a multiple of its alignment.
        let parts = (1..in_chunk).rev().map(|nth| unsafe { at.add(nth * layout.size()) });
        slab.spare.extend(parts.map(|part| (part, chunk)));
        Some((at, chunk))
    }

    /// Takes a page's memory back. Of the chunks of a slab one stays that has no page in use.
    fn give_back(&mut self, at: NonNull<u8>, slab: u32, chunk: u32) {
        let slab = &mut self.slabs[slab as usize];
        let Some(layout) = page_layout(&slab.kind) else { return };
        slab.pages -= 1;
        if chunk == BY_ITSELF {
            // SAFETY: allocated in `memory` with this layout; no slot of it is taken.
            unsafe { dealloc(at.as_ptr(), layout) };
            return;
        }
        slab.spare.push((at, chunk));
        let entry = &mut self.chunks[chunk as usize];
        entry.used -= 1;
        if entry.used == 0 && slab.spare.len() >= 2 * (CHUNK_BYTES / layout.size()) {
            slab.spare.retain(|(_, of)| *of != chunk);
            if let Some(at) = entry.at.take() {
                // SAFETY: allocated in `memory` with this layout; none of its pages is in use, and
                // none is spare any more.
                unsafe { dealloc(at.as_ptr(), CHUNK) };
            }
            self.unused_chunks.push(chunk);
        }
    }

    fn place(&self, index: u32) -> Option<(NonNull<u8>, &Kind)> {
        let (page, slot) = split(index);
        let page = self.pages.get(page)?;
        if page.free & (1 << slot) != 0 {
            return None;
        }
        let kind = &self.slabs[page.slab as usize].kind;
        // SAFETY: within the page: `slot` is below `SLOTS`.
        page.at.map(|at| (unsafe { at.add(slot * page.stride) }, kind))
    }

    /// Whose it is.
    pub(crate) fn header(&self, index: u32) -> Option<Header> {
        let (at, _) = self.place(index)?;
        // SAFETY: the slot is taken, and a parked continuation begins with its header, which nobody
        // holds a reference to.
        Some(unsafe { at.cast::<Header>().read() })
    }

    /// The continuations of actors for which `doomed` holds.
    pub(crate) fn of(&self, doomed: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = Vec::new();
        for (number, page) in self.pages.iter().enumerate().filter(|(_, page)| page.at.is_some()) {
            let mut taken = !page.free;
            while taken != 0 {
                let index = number * SLOTS + taken.trailing_zeros() as usize;
                taken &= taken - 1;
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                if self.header(index).is_some_and(|header| doomed(header.actor)) {
                    found.push(index);
                }
            }
        }
        found
    }

    #[inline]
    fn release(&mut self, index: u32) {
        let (page, slot) = split(index);
        let entry = &mut self.pages[page];
        let was_full = entry.free == 0;
        entry.free |= 1 << slot;
        self.parked -= 1;
        let slab = &mut self.slabs[entry.slab as usize];
        let number = u32::try_from(page).unwrap_or(u32::MAX);
        if was_full {
            slab.partial.push(number);
        }
        // One empty page is kept, so that asks that come and go allocate nothing.
        if entry.free == u64::MAX && slab.partial.len() > 1 && slab.partial.last() == Some(&number)
        {
            slab.partial.pop();
            let (at, of, chunk) = (entry.at.take(), entry.slab, entry.chunk);
            if let Some(at) = at {
                self.give_back(at, of, chunk);
            }
            self.unused.push(number);
        }
    }
}

/// Has the kernel map a chunk at once: a fault for each of its 512 pages costs more than clearing
/// them. (One huge page was tried, and costs more still where the kernel has to make one first.)
fn populate(at: NonNull<u8>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is a chunk's, freshly allocated; what is in it stays as it is. An old
        // kernel refuses, and maps the pages when they are touched.
        let _ = unsafe { madvise(at.as_ptr().cast(), CHUNK_BYTES, Advice::LinuxPopulateWrite) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = at;
}

fn page_layout(kind: &Kind) -> Option<Layout> {
    let size = kind.layout.size().checked_mul(SLOTS)?;
    Layout::from_size_align(size, kind.layout.align()).ok()
}

/// Parks the continuation that `make` makes; from here on it stays where it is. It is written
/// where it is going to lie: a copy of what was just written, in other pieces, has to wait for it.
/// It comes back if there are too many.
#[inline]
pub(crate) fn park<F: Continuation>(
    tasks: &RefCell<Tasks>,
    header: Header,
    make: impl FnOnce() -> F,
) -> Result<u32, F> {
    let reserved = tasks.borrow_mut().reserve::<F>();
    let Some((at, index)) = reserved else { return Err(make()) };
    let at = at.cast::<Parked<F>>().as_ptr();
    let busy = Polled(tasks);
    // SAFETY: the place is free, of this size and aligned for it, and stays so while it is
    // reserved, whatever `make` does; what it writes is looked at by nobody before `taken`.
    unsafe {
        (&raw mut (*at).future).write(make());
        (&raw mut (*at).header).write(header);
    }
    std::mem::forget(busy);
    tasks.borrow_mut().taken(index);
    Ok(index)
}

/// Continues a task. Ready: it has answered, and is no more. If this panics it is to be removed.
/// Pending too if there is no such task.
#[inline]
pub(crate) fn proceed(
    tasks: &RefCell<Tasks>,
    index: u32,
    cx: &mut Context<'_>,
    shard: &Shard,
) -> Poll<()> {
    let (at, poll) = {
        let mut tasks = tasks.borrow_mut();
        assert!(tasks.polled.is_none(), "a shard polls one continuation at a time");
        let Some((at, kind)) = tasks.place(index) else { return Poll::Pending };
        let poll = kind.poll;
        tasks.polled = Some(index);
        (at, poll)
    };
    let polled = Polled(tasks);
    // SAFETY: the slot is taken, by the type whose `poll` this is; `remove` leaves it alone while
    // it is marked as polled, and it is polled by this call only.
    let ready = unsafe { poll(at, cx, shard) };
    if ready.is_ready() {
        std::mem::forget(polled);
        tasks.borrow_mut().ended(index);
    }
    ready
}

/// Ends the mark, also when a future panics.
struct Polled<'a>(&'a RefCell<Tasks>);

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().polled = None;
    }
}

/// Drops a continuation, and says whose it was. A task that is just being polled stays.
pub(crate) fn remove(tasks: &RefCell<Tasks>, index: u32) -> Option<Header> {
    let (at, drop, header) = {
        let mut tasks = tasks.borrow_mut();
        if tasks.polled == Some(index) {
            return None;
        }
        let header = tasks.header(index)?;
        let (at, kind) = tasks.place(index)?;
        let drop = kind.drop;
        // What the future's own drop does may come back here, and must find the slot taken and
        // untouchable.
        let before = tasks.polled.replace(index);
        assert!(before.is_none(), "nothing is removed in the middle of a poll");
        (at, drop, header)
    };
    let polled = Polled(tasks);
    let released = Released(tasks, index);
    // SAFETY: the slot is taken, by the type whose `drop` this is; it is released right after,
    // also when the drop panics.
    unsafe { drop(at) };
    std::mem::drop(polled);
    std::mem::drop(released);
    Some(header)
}

struct Released<'a>(&'a RefCell<Tasks>, u32);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().release(self.1);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for page in 0..self.pages.len() {
            let Some(at) = self.pages[page].at else { continue };
            let kind = &self.slabs[self.pages[page].slab as usize].kind;
            let mut taken = !self.pages[page].free;
            while taken != 0 {
                let slot = taken.trailing_zeros() as usize;
                taken &= taken - 1;
                // SAFETY: the slot is taken, and its future is dropped here only.
                unsafe { (kind.drop)(at.add(slot * kind.layout.size())) };
            }
            if self.pages[page].chunk == BY_ITSELF
                && let Some(layout) = page_layout(kind)
            {
                // SAFETY: allocated in `memory` with this layout.
                unsafe { dealloc(at.as_ptr(), layout) };
            }
        }
        for at in self.chunks.iter().filter_map(|chunk| chunk.at) {
            // SAFETY: allocated in `memory` with this layout; the futures in it were dropped above.
            unsafe { dealloc(at.as_ptr(), CHUNK) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Large, so that a few pages fill a chunk.
    async fn never(held: Arc<()>) {
        let large = [0u8; 8_000];
        std::future::pending::<()>().await;
        drop((held, large));
    }

    fn park(tasks: &RefCell<Tasks>, held: &Arc<()>) -> u32 {
        let header = Header::new(3, Slot::NONE, When::TELL);
        super::park(tasks, header, || never(Arc::clone(held))).ok().unwrap()
    }

    #[test]
    fn a_place_stays_free_when_what_was_to_be_parked_there_never_comes() {
        let held = Arc::new(());
        let tasks = RefCell::new(Tasks::new());
        let header = Header::new(3, Slot::NONE, When::TELL);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            let mut made = 0..2;
            let make = || {
                let future = never(Arc::clone(&held));
                assert_eq!(made.next(), Some(1), "as a handler may");
                future
            };
            super::park(&tasks, header, make).is_ok()
        }));
        assert!(failed.is_err());
        assert_eq!((tasks.borrow().parked(), Arc::strong_count(&held)), (0, 1));
        let task = park(&tasks, &held);
        assert_eq!(tasks.borrow().of(|actor| actor == 3), [task]);
        assert_eq!(remove(&tasks, task).map(|header| header.actor), Some(3));
        assert_eq!((tasks.borrow().parked(), Arc::strong_count(&held)), (0, 1));
    }

    #[test]
    fn memory_comes_in_chunks_when_there_is_much_and_is_given_back() {
        let held = Arc::new(());
        let tasks = RefCell::new(Tasks::new());
        let many: Vec<u32> = (0..SLOTS * 20).map(|_| park(&tasks, &held)).collect();
        let chunks = |tasks: &RefCell<Tasks>| {
            tasks.borrow().chunks.iter().filter(|chunk| chunk.at.is_some()).count()
        };
        assert!(chunks(&tasks) > 2);
        assert_eq!(Arc::strong_count(&held), 1 + many.len());
        for &task in many.iter().rev() {
            assert_eq!(remove(&tasks, task).map(|header| header.actor), Some(3));
            assert!(remove(&tasks, task).is_none());
        }
        // One for the page that is kept, and one that is spare.
        assert!(tasks.borrow().parked() == 0 && chunks(&tasks) <= 2);
        assert_eq!(Arc::strong_count(&held), 1);
        // What is there still when the shard ends is dropped with it.
        let again: Vec<u32> = (0..SLOTS * 9).map(|_| park(&tasks, &held)).collect();
        drop(tasks);
        assert_eq!((Arc::strong_count(&held), again.len()), (1, SLOTS * 9));
    }
}
