//! Rings that are written and read.

use super::copy::copied;
use super::*;

fn ring(directory: &Path) -> (usize, PathBuf) {
    let ring = make(directory, 7).unwrap();
    (ring, files(directory).pop().unwrap())
}

#[test]
fn what_is_written_is_read_in_order_and_the_oldest_is_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let (ring, path) = ring(home.path());
    assert_eq!(read(&path).unwrap().records, Vec::<[u64; 4]>::new());
    for number in 0..3 {
        put(ring, [number, 10, 20]);
    }
    let copied = read(&path).unwrap();
    let words: Vec<_> = copied.records.iter().map(|record| record[1]).collect();
    assert_eq!((words, copied.written, copied.lost), (vec![0, 1, 2], 3, 0));
    assert!(copied.records.iter().all(|record| record[0] >= copied.first.stamp));
    assert_eq!((copied.process, copied.pairs[1]), (std::process::id(), copied.first));
    for number in 3..1_000_000 {
        put(ring, [number, 0, 0]);
    }
    let copied = read(&path).unwrap();
    let words: Vec<_> = copied.records.iter().map(|record| record[1]).collect();
    let expected: Vec<_> = (1_000_000 - RECORDS as u64 + 1..1_000_000).collect();
    assert_eq!((words, copied.written), (expected, 1_000_000));
}

/// What a stamp was can be told by the pairs around it at each age of a ring, and a young one is not
/// full of pairs.
#[test]
fn a_young_ring_has_pairs_at_each_age() {
    let home = tempfile::tempdir().unwrap();
    let (ring, path) = ring(home.path());
    let begun = std::time::Instant::now();
    // A machine that stands still meanwhile writes no pairs.
    let copied = loop {
        put(ring, [0; 3]);
        if begun.elapsed().as_millis() >= 50 {
            let copied = read(&path).unwrap();
            if copied.pairs.len() >= 3 || begun.elapsed().as_secs() >= 20 {
                break copied;
            }
        }
    };
    let (first, last) = (copied.pairs[0], *copied.pairs.last().unwrap());
    let newest = copied.records.last().unwrap()[0];
    let open = newest.saturating_sub(last.stamp);
    assert!(open <= (last.stamp - first.stamp).max(PAIR_TICKS.0), "{:?}", copied.pairs);
    assert!((3..=20).contains(&copied.pairs.len()), "{:?}", copied.pairs);
    assert!(copied.pairs.is_sorted_by_key(|pair| (pair.stamp, pair.monotonic_ns)));
}

#[test]
fn who_follows_a_ring_has_each_record_once_and_a_count_of_what_was_lost() {
    let home = tempfile::tempdir().unwrap();
    let (ring, path) = ring(home.path());
    let mut next = 0;
    let mut write = |count: u64| {
        (next..next + count).for_each(|number| put(ring, [number, 0, 0]));
        next += count;
    };
    write(3);
    let mut follower = Follower::open(&path).unwrap();
    follower.skip().unwrap();
    assert_eq!(follower.news().unwrap(), Copied::default());
    let all = |copied: &Copied| copied.records.iter().map(|record| record[1]).collect::<Vec<_>>();
    write(4);
    let news = follower.news().unwrap();
    assert_eq!((all(&news), news.lost), (vec![3, 4, 5, 6], 0));
    let most = RECORDS as u64;
    write(most + 93);
    std::fs::remove_file(&path).unwrap();
    let news = follower.news().unwrap();
    // One less than there are: the next one might be half over the oldest.
    assert_eq!((news.records.len() as u64, news.lost), (most - 1, 94));
    assert_eq!(all(&news)[0], 7 + 94);
    assert_eq!(follower.news().unwrap().records, Vec::<[u64; 4]>::new());
}

#[test]
fn what_was_overwritten_while_it_was_copied_is_left_out_and_counted() {
    let mut before = vec![0; WORDS];
    let mut after = vec![0; WORDS];
    let most = RECORDS as u64;
    before[at::COUNT] = 2 * most;
    after[at::COUNT] = 2 * most + 10;
    let records = vec![0; RECORDS * 4];
    let part = copied(&before, &records, &after);
    assert_eq!((part.records.len() as u64, part.lost), (most - 11, 10));
    after[at::COUNT] = 9 * most;
    // Whatever somebody has put into a file, it is read without harm.
    before[at::COUNT] = u64::MAX;
    before[at::PAIRS] = u64::MAX;
    assert!(copied(&before, &records, &after).records.len() <= RECORDS);
    (before[at::COUNT], before[at::PAIRS]) = (2 * most, 0);
    let nothing = copied(&before, &records, &after);
    assert_eq!((nothing.records.len() as u64, nothing.lost), (0, most - 1));
}

#[test]
fn a_copy_made_while_another_thread_writes_has_whole_records_only() {
    let home = tempfile::tempdir().unwrap();
    let (ring, path) = ring(home.path());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = &ends;
        scope.spawn(move || {
            let mut number = 0;
            while !ends.load(Ordering::Relaxed) {
                put(ring, [number, number, number]);
                number += 1;
            }
        });
        for _ in 0..200 {
            let copied = read(&path).unwrap();
            let whole = |record: &[u64; 4]| record[1] == record[2] && record[2] == record[3];
            assert!(copied.records.iter().all(whole));
            let follows = |pair: &[[u64; 4]]| pair[0][1] + 1 == pair[1][1];
            assert!(copied.records.windows(2).all(follows));
        }
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_no_ring_is_said() {
    let home = tempfile::tempdir().unwrap();
    let (_, path) = ring(home.path());
    let bytes = std::fs::read(&path).unwrap();
    let other = home.path().join("ring-1-1");
    let read_as = |bytes: &[u8]| {
        std::fs::write(&other, bytes).unwrap();
        read(&other).unwrap_err()
    };
    assert_eq!(read_as(&bytes[..FILE_BYTES - 1]), Unread::Truncated);
    assert_eq!(read_as(&bytes[..100]), Unread::Truncated);
    assert_eq!(read_as(b""), Unread::Truncated);
    let mut newer = bytes.clone();
    newer[7] = b'3';
    assert_eq!(read_as(&newer), Unread::OtherBuild);
    assert_eq!(read_as(&[0; FILE_BYTES]), Unread::OtherBuild);
    let mut older = bytes;
    older[8 * at::BOOT] ^= 1;
    assert_eq!(read_as(&older), Unread::OtherBoot);
    assert_eq!(read(&home.path().join("ring-1-2")).unwrap_err(), Unread::Unreadable);
    std::os::unix::fs::symlink(&path, home.path().join("ring-1-3")).unwrap();
    assert_eq!(read(&home.path().join("ring-1-3")).unwrap_err(), Unread::Unreadable);
}

#[test]
fn rings_of_ended_processes_go_but_for_the_newest() {
    let home = tempfile::tempdir().unwrap();
    let (_, own) = ring(home.path());
    // No process has a number above the kernel's bound.
    for number in 0..20 {
        std::fs::write(home.path().join(format!("ring-{}-0", 5_000_000 + number)), "").unwrap();
    }
    std::fs::write(home.path().join("ring-of-mine"), "").unwrap();
    forget_old(home.path());
    assert_eq!(files(home.path()).len(), 1 + ENDED_MAX);
    assert!(own.exists() && home.path().join("ring-of-mine").exists());
}
