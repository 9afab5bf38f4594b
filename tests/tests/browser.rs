//! A page as a browser shows it: its document, and the colours of its picture.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hob_tests::{Outcome, World, wait};

/// How long a browser may take to start and show a page. On a machine that is busy with other
/// tests one takes many times as long as alone, and now and then one never comes up.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);
/// How often one is started until it does.
const STARTS_MAX: usize = 3;

/// What a browser shows, each time with a new folder of its own. One at a time: they are large.
pub(crate) fn browse(world: &World, words: &[&str]) -> Outcome {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for start in 0..STARTS_MAX {
        let mut argv: Vec<String> = BROWSER.map(str::to_owned).to_vec();
        let profile = world.path(format!("browser-{start}"));
        argv.push(format!("--user-data-dir={}", profile.display()));
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        let running = world.run(&argv).start();
        if wait::ended(running.pid(), SHOWN_WITHIN) {
            return running.finish();
        }
    }
    panic!("no browser showed the page: {words:?}");
}

/// Without what a browser does for people, and as root.
const BROWSER: [&str; 15] = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--no-zygote",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-breakpad",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1200,900",
];

/// Counts the pixels of a picture by their colour: `rrggbb count` a line, the most first.
const COLOURS: &str = r#"
import collections, struct, sys, zlib
raw = open(sys.argv[1], 'rb').read()
at, image, size = 8, b'', None
while at < len(raw):
    length, kind = struct.unpack('>I4s', raw[at:at + 8])
    body = raw[at + 8:at + 8 + length]
    at += 12 + length
    if kind == b'IHDR':
        width, height, depth, colour = struct.unpack('>IIBB', body[:10])
        assert depth == 8 and colour in (2, 6), (depth, colour)
    if kind == b'IDAT':
        image += body
step = 3 if colour == 2 else 4
image, row, last = zlib.decompress(image), width * step, bytearray(width * step)
seen = collections.Counter()
for y in range(height):
    start = y * (row + 1)
    how, line = image[start], bytearray(image[start + 1:start + 1 + row])
    for x in range(row):
        a = line[x - step] if x >= step else 0
        b, c = last[x], last[x - step] if x >= step else 0
        if how == 1: line[x] = line[x] + a & 255
        elif how == 2: line[x] = line[x] + b & 255
        elif how == 3: line[x] = line[x] + (a + b) // 2 & 255
        elif how == 4:
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))
            line[x] = line[x] + near[2] & 255
    seen.update(bytes(line[x:x + 3]).hex() for x in range(0, row, step))
    last = line
for colour, count in seen.most_common():
    print(colour, count)
"#;

/// How many pixels of the page have each of these colours, as it is shown.
pub(crate) fn pixels(world: &World, page: &str, more: &[&str], colours: &[&str]) -> Vec<u64> {
    let picture = world.path("page.png");
    let mut words = vec![format!("--screenshot={}", picture.display())];
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words.push(format!("file://{}", world.path("work").join(page).display()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let shown = browse(world, &words);
    assert!(picture.exists(), "{shown:?}");
    world.file("colours.py", COLOURS);
    let counted = world.run(&["python3", "colours.py", picture.to_str().unwrap()]).go();
    counted.succeeded();
    let text = counted.text();
    let of = |colour: &&str| {
        let line = text.lines().find(|line| line.starts_with(*colour));
        line.map_or(0, |line| line.split_once(' ').unwrap().1.parse().unwrap())
    };
    colours.iter().map(of).collect()
}
