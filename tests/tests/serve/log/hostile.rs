//! Whatever a client sends, each line of the log is one object.

use super::{read, serve, world};

/// What stands in headers below, and in targets, where it is not allowed everywhere.
const WORDS: [&[u8]; 16] = [
    b"\"",
    b"\\",
    b"\\u0000",
    b"%00",
    b"%ff",
    b"\t",
    b"\xff",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"}",
    b"{\"a\":1}",
    b"#",
    b"\\x7f",
    b"<script>",
    b"\xe2\x80\xa8",
    b"'",
];
const IN_TARGETS: [&[u8]; 8] =
    [b"%22", b"'", b"%5C", b"?\"", b"%E2%80%A8", b"}{", b"%3Cscript%3E", b"/a.txt"];
const REQUESTS: usize = 2000;

#[test]
fn lines_parse_whatever_was_sent() {
    let world = world("log = \"access.ndjson\"");
    let site = serve(&world);
    // A generator of numbers that any run repeats.
    let mut state = 0x9e37_79b9_u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut words = |of: &[&[u8]], most: usize| -> Vec<u8> {
        (0..next(most)).flat_map(|_| of[next(of.len())]).copied().collect()
    };
    let mut answered = 0;
    for number in 0..REQUESTS {
        let of: &[&[u8]] = if number % 4 == 0 { &WORDS } else { &IN_TARGETS };
        let (target, agent) = (words(of, 6), words(&WORDS, 400));
        let head = [
            b"GET /".as_slice(),
            &target,
            b" HTTP/1.1\r\nHost: a\r\nUser-Agent: ",
            &agent,
            b"\r\nReferer: x",
            &words(&WORDS, 5),
            b"\r\nConnection: close\r\n\r\n",
        ]
        .concat();
        let answer = site.raw(&head);
        let status = answer.split(|byte| *byte == b' ').nth(1).unwrap_or_default().to_vec();
        // What breaks a rule of HTTP is refused before it is a request, and has no line.
        if status != b"400" {
            answered += 1;
        }
        assert!(answer.starts_with(b"HTTP/1.1 "), "{number}: {}", head.escape_ascii());
    }
    site.stop();
    let lines = read(&std::fs::read_to_string(world.path("work/access.ndjson")).unwrap());
    let bounded = |line: &serde_json::Value, name: &str| {
        line[name].as_str().is_none_or(|text| text.len() <= 1024)
    };
    assert!(lines.iter().all(|line| bounded(line, "agent") && bounded(line, "target")));
    assert!(answered > 1000 && lines.len() >= answered, "{answered} of {}", lines.len());
}
