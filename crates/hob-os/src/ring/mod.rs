//! Rings: what a thread notes of the last while, in a file that outlives it.
//!
//! A thread writes records of [`RECORD_BYTES`] into a mapped file of its own, one behind the other,
//! and over the oldest ones when it is full. No lock, no system call, nothing to flush: what a
//! process wrote is in the page cache, where `kill -9` leaves it. What the words of a record mean is
//! for others to say (`hob_core::span`).
//!
//! ```text
//!   0  head: magic, sizes, process, clock, pairs        HEAD_BYTES
//!   |  record 0 | record 1 | ...                        RECORDS × RECORD_BYTES
//! ```
//! One thread writes a file, others only read it ([`read`]), and copy it whole: the count of records
//! is read before and after, so that a reader knows which it has seen half-written, and leaves them
//! out. A record is stamped by the processor's counter where that counts evenly, and by the
//! monotonic clock elsewhere; pairs of both tell what a stamp was. A ring has two of them when it is
//! made, then one whenever it is twice as old, up to one a second: at each age what stamps mean
//! follows from the file alone.

mod copy;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags};

pub use copy::{Copied, Follower, Unread, read};

/// Records of a ring. A power of two.
pub const RECORDS: usize = 16_384;
/// Bytes of a record: a stamp, and three words that the writer gives.
pub const RECORD_BYTES: usize = 32;
/// Bytes before the first record.
pub const HEAD_BYTES: usize = 4096;
/// Bytes of a whole file.
pub const FILE_BYTES: usize = HEAD_BYTES + RECORDS * RECORD_BYTES;
/// What a ring's file is called begins so; the process and a number follow.
pub const NAME: &str = "ring-";
/// The most rings of a process: the threads that note something are few, and stated.
const RINGS_MAX: usize = 64;
/// Rings of ended processes that are kept, the newest.
const ENDED_MAX: usize = 8;

/// `hobring` and the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"hobring2");
/// Words of the head.
const WORDS: usize = HEAD_BYTES / 8;
/// Where in the head what stands.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const RECORDS: usize = 1;
    pub(super) const PROCESS: usize = 2;
    pub(super) const CLOCK: usize = 3;
    pub(super) const BOOT: usize = 4;
    /// How many pairs were written.
    pub(super) const PAIRS: usize = 6;
    /// In a cache line of its own: each record changes it.
    pub(super) const COUNT: usize = 8;
    pub(super) const FIRST_PAIR: usize = 16;
    /// The newest pairs, around.
    pub(super) const PAIR: usize = 32;
}
/// Pairs that are kept.
const PAIRS: usize = 64;
/// How much the counter counts until there is another pair, at least and at most: about a
/// millisecond, about a second.
const PAIR_TICKS: (u64, u64) = (1 << 21, 1 << 31);
const PAIR_NS: (u64, u64) = (1_000_000, 1_000_000_000);

/// One moment by all clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pair {
    /// What records are stamped with.
    pub stamp: u64,
    /// Nanoseconds of the monotonic clock.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970.
    pub real_ns: u64,
}

/// Whether this process notes anything.
static IS_ON: AtomicBool = AtomicBool::new(false);
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
/// When this process began to note: with a ring's own begin it tells how fast the counter counts.
static BEGUN: OnceLock<Pair> = OnceLock::new();
static RINGS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's ring; 0: it has none yet, 1: it gets none.
    static OWN: Cell<usize> = const { Cell::new(0) };
    /// Records stamped later than this need another pair.
    static PAIRED_UNTIL: Cell<u64> = const { Cell::new(0) };
}
const NONE: usize = 1;

/// From now on threads of this process note what they do, in files of this directory. Rings of
/// ended processes there are removed, but for the newest.
pub fn begin(directory: &Path) {
    if DIRECTORY.set(directory.to_path_buf()).is_ok() {
        BEGUN.get_or_init(pair_now);
        forget_old(directory);
        IS_ON.store(true, Ordering::Release);
    }
}

/// Notes something in this thread's ring. Where there is none it does nothing.
#[inline]
pub fn record(words: [u64; 3]) {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }
    let own = OWN.get();
    if own <= NONE {
        return first(own, words);
    }
    put(own, words);
}

#[cold]
fn first(own: usize, words: [u64; 3]) {
    if own == NONE {
        return;
    }
    let number = RINGS.fetch_add(1, Ordering::Relaxed);
    let directory = DIRECTORY.get().filter(|_| number < RINGS_MAX);
    // Without room for it there is no ring, and nothing else is the worse for it.
    let made = directory.and_then(|directory| make(directory, number).ok());
    OWN.set(made.unwrap_or(NONE));
    if let Some(ring) = made {
        put(ring, words);
    }
}

#[inline]
fn put(ring: usize, words: [u64; 3]) {
    let stamp = now();
    let [a, b, c] = words;
    // SAFETY: `make` mapped `FILE_BYTES` there, and nothing unmaps them; all accesses are atomic,
    // and the place of a record is inside whatever the count is.
    unsafe {
        let count = &*(ring as *const AtomicU64).add(at::COUNT);
        let number = count.load(Ordering::Relaxed);
        let place = usize::try_from(number).unwrap_or_default() % RECORDS;
        let record = &*((ring + HEAD_BYTES + place * RECORD_BYTES) as *const [AtomicU64; 4]);
        // Who reads must see the count before what is written over: it tells which is the oldest.
        fence(Ordering::Release);
        record[0].store(stamp, Ordering::Relaxed);
        record[1].store(a, Ordering::Relaxed);
        record[2].store(b, Ordering::Relaxed);
        record[3].store(c, Ordering::Relaxed);
        count.store(number.wrapping_add(1), Ordering::Release);
    }
    if stamp > PAIRED_UNTIL.get() {
        add_pair(ring, pair_now());
    }
}

#[cold]
fn add_pair(ring: usize, pair: Pair) {
    // SAFETY: as in `put`; the head has the words.
    let head = unsafe { &*(ring as *const [AtomicU64; WORDS]) };
    let number = usize::try_from(head[at::PAIRS].load(Ordering::Relaxed)).unwrap_or_default();
    let words = [pair.stamp, pair.monotonic_ns, pair.real_ns];
    for (offset, word) in words.into_iter().enumerate() {
        head[at::PAIR + number % PAIRS * 3 + offset].store(word, Ordering::Relaxed);
    }
    head[at::PAIRS].store((number as u64).wrapping_add(1), Ordering::Release);
    let begun = BEGUN.get().map_or(pair.stamp, |begun| begun.stamp);
    let (least, most) = pair_every();
    let next = pair.stamp.saturating_sub(begun).clamp(least, most);
    PAIRED_UNTIL.set(pair.stamp.saturating_add(next));
}

/// Makes a ring, and maps it; its address.
fn make(directory: &Path, number: usize) -> io::Result<usize> {
    let path = directory.join(format!("{NAME}{}-{number}", std::process::id()));
    let _ = rustix::fs::unlink(&path);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))?;
    map_new(&file).inspect_err(|_| _ = rustix::fs::unlink(&path))
}

fn map_new(file: &OwnedFd) -> io::Result<usize> {
    // All of it now: a disk that is full later must not stop who writes to the mapping.
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, FILE_BYTES as u64)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address of the kernel's choice, of a file that has these bytes.
    let ring = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), FILE_BYTES, access, MapFlags::SHARED, file, 0)?
    };
    // SAFETY: as in `put`; nobody else knows of it yet.
    let head = unsafe { &*ring.cast::<[AtomicU64; WORDS]>() };
    let boot = boot();
    let begun = *BEGUN.get_or_init(pair_now);
    let first = pair_now();
    let words = [
        (at::RECORDS, RECORDS as u64),
        (at::PROCESS, u64::from(std::process::id())),
        (at::CLOCK, u64::from(counts_evenly())),
        (at::BOOT, boot[0]),
        (at::BOOT + 1, boot[1]),
        (at::FIRST_PAIR, first.stamp),
        (at::FIRST_PAIR + 1, first.monotonic_ns),
        (at::FIRST_PAIR + 2, first.real_ns),
    ];
    words.into_iter().for_each(|(at, word)| head[at].store(word, Ordering::Relaxed));
    add_pair(ring as usize, begun);
    add_pair(ring as usize, first);
    head[at::MAGIC].store(MAGIC, Ordering::Release);
    Ok(ring as usize)
}

/// Removes rings of ended processes, but for the newest.
fn forget_old(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let ended = entries.filter_map(|entry| {
        let name = entry.file_name();
        let process = process_of(name.as_bytes())?;
        let lives = std::fs::exists(format!("/proc/{process}")).unwrap_or(true);
        let meta = entry.metadata().ok().filter(|_| !lives)?;
        Some((meta.modified().ok()?, entry.path()))
    });
    let mut ended: Vec<_> = ended.collect();
    ended.sort_unstable();
    let surplus = ended.len().saturating_sub(ENDED_MAX);
    for (_, path) in ended.into_iter().take(surplus) {
        let _ = std::fs::remove_file(path);
    }
}

/// The process whose ring a file of this name is.
fn process_of(name: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(name).ok()?.strip_prefix(NAME)?;
    text.split_once('-')?.0.parse().ok()
}

/// The files of rings in a directory.
#[must_use]
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let rings = entries.filter(|entry| process_of(entry.file_name().as_bytes()).is_some());
    let mut files: Vec<_> = rings.map(|entry| entry.path()).collect();
    files.sort_unstable();
    files
}

/// This moment by all clocks.
#[must_use]
pub fn pair_now() -> Pair {
    let stamp = now();
    Pair { stamp, monotonic_ns: clock(libc::CLOCK_MONOTONIC), real_ns: clock(libc::CLOCK_REALTIME) }
}

/// What a record is stamped with.
#[inline]
fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if counts_evenly() {
        // SAFETY: every processor of this architecture has it.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    clock(libc::CLOCK_MONOTONIC)
}

fn pair_every() -> (u64, u64) {
    if counts_evenly() { PAIR_TICKS } else { PAIR_NS }
}

/// Whether the processor's counter counts evenly, whatever the processor does, and the kernel has
/// found nothing else.
#[inline]
fn counts_evenly() -> bool {
    static EVENLY: OnceLock<bool> = OnceLock::new();
    *EVENLY.get_or_init(|| is_invariant() && is_trusted())
}

#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const LEAF: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= LEAF && __cpuid(LEAF).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// Whether the kernel would keep time by it. One that does not say leaves it to the processor.
fn is_trusted() -> bool {
    let known = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    std::fs::read_to_string(known).map_or(true, |all| all.split_whitespace().any(|it| it == "tsc"))
}

/// Through the vDSO, unlike [`crate::clock`]: who writes here lives long.
fn clock(which: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, which writes to it or fails.
    unsafe { libc::clock_gettime(which, &raw mut at) };
    let (secs, nanos) = (at.tv_sec.unsigned_abs(), at.tv_nsec.unsigned_abs());
    secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

/// Which start of the machine this is.
fn boot() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |range| digits.get(range).and_then(|half| u64::from_str_radix(half, 16).ok());
    [half(0..16).unwrap_or(0), half(16..32).unwrap_or(0)]
}
