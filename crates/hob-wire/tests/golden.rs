//! One file of bytes per kind of frame, in `runtimes/golden/`: what every runtime's tests read.
//! `HOB_UPDATE_GOLDEN=1 cargo test -p hob-wire --test golden` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot decode has failed")]

use std::borrow::Cow;
use std::path::PathBuf;

use hob_wire::call::{
    Asked, Call, ColdEnded, Hello, Isolation, Origin, Priority, Purpose, Received, Signal, Streams,
    Terminal, Usage, World,
};
use hob_wire::exit::Exit;
use hob_wire::frame::{self, Kind};
use hob_wire::frames::http::{Chunk, Close, End, Hint, MessagePart, Respond, Source};
use hob_wire::frames::{SCHEMA, again};
use hob_wire::hooks::{
    HookEnded, HookOutput, HookStarted, Part, Remarks, RunSet, SetBegun, SetEnded, Started, Stream,
    Verdict,
};
use hob_wire::launch::{Launch, Launched, Launcher};
use hob_wire::message::{
    Answer, Attach, Failure, Handled, Held, Judged, Lend, Lent, Manner, Message, Named, Numbered,
    Passed, Protocol, Reason, Served, State, StateReply, StateVerb, Traced, Turned,
};
use hob_wire::reply::{Ended, Fate, Gone, Prepared, Refused, RunCold};
use hob_wire::schema::{offset, walk, words};
use hob_wire::session::{OpenSession, SessionOpened};
use hob_wire::strings::Strings;
use hob_wire::worker::{
    Executes, Failed, Finished, Fork, Forked, Give, Joined, Notes, Paid, Preload, Ready, Role,
    Spans, TargetKind, Unfit,
};

fn strings(list: &[&[u8]]) -> Strings {
    list.iter().collect()
}

fn world() -> World {
    let mut limits = [(u64::MAX, u64::MAX); 16];
    limits[7] = (1024, 4096);
    let priority = Priority { nice: -3, io: 2 << 13 | 4, policy: 3, oom: 200, slack_ns: 50_000 };
    World { umask: 0o027, ignored: 1 << 12, blocked: 1, limits, priority }
}

#[expect(clippy::too_many_lines, reason = "one entry per kind of frame")]
fn golden() -> Vec<(Kind, u8, Vec<u8>)> {
    let mut all = Vec::new();
    let mut put = |kind, fds, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = Vec::new();
        encode(&mut payload);
        all.push((kind, fds, payload));
    };
    let argv = strings(&[b"script.py", b"", b"caf\xc3\xa9", b"\xff\xfe"]);
    let env = strings(&[b"PATH=/usr/bin:/bin", b"EMPTY=", b"ODD=\xff\n=x"]);
    let usage = Usage { user_us: 1500, system_us: 250, peak_kib: 9216 };
    let world = world();
    put(Kind::Hello, 0, &|out| Hello { build: *b"0123456789abcdef", pid: 42 }.encode(out));
    let call = Call {
        asked: Asked {
            cold: false,
            prepare: false,
            isolation: Isolation::Fork,
            ahead: 4,
            timeout_ms: 5000,
            purpose: Purpose::Verify,
        },
        pid: 42,
        terminal: Terminal { session: 40, group: 41 },
        processor: 1,
        start_ns: 1_000_000_007,
        connected_ns: 1_000_090_007,
        context: b"Groups:\t0\n".to_vec(),
        world: world.clone(),
        argv: argv.clone(),
        env: env.clone(),
        closed: 0b001,
        streams: Streams::Terminal,
        beyond: vec![9],
    };
    put(Kind::Call, 3, &|out| call.encode(out));
    put(Kind::Signal, 0, &|out| {
        Signal { number: 15, origin: Origin::Terminal, at_ns: 1_000_450_000 }.encode(out)
    });
    let cold = ColdEnded {
        exit: Exit::Signal(9),
        timed_out: true,
        main_ns: 5,
        finished_ns: 70_000_000,
        usage,
    };
    put(Kind::ColdEnded, 0, &|out| cold.encode(out));
    put(Kind::Control, 0, &|out| out.extend_from_slice(br#"{"verb":"status"}"#));
    let received = Received { exit: Exit::Code(3), at_ns: 1_000_700_007 };
    put(Kind::Received, 0, &|out| received.encode(out));
    put(Kind::Queued, 0, &|_| ());
    let run_cold = RunCold {
        call: 7,
        reason: b"learning".to_vec(),
        file: b"/usr/bin/python3".to_vec(),
        argv: argv.clone(),
        set: strings(&[b"PYENV_VERSION=3.11.7"]),
        launcher: true,
        successor: true,
    };
    put(Kind::RunCold, 0, &|out| run_cold.encode(out));
    let fate = Fate::Exited(Exit::Code(3));
    let ended = Ended { call: 7, fate, text: Vec::new(), cold: Vec::new() };
    put(Kind::Ended, 0, &|out| ended.encode(out));
    let refused = Refused { code: 127, text: b"nope: not found".to_vec() };
    put(Kind::Refused, 0, &|out| refused.encode(out));
    let prepared = Prepared { cold: b"learning".to_vec() };
    put(Kind::Prepared, 0, &|out| prepared.encode(out));
    put(Kind::ControlReply, 0, &|out| out.extend_from_slice(br#"{"pid":1}"#));
    put(Kind::Launcher, 0, &|out| Launcher { session: 40 }.encode(out));
    let launch = Launch {
        worker: 9,
        file: b"/usr/bin/python3".to_vec(),
        argv: argv.clone(),
        env: env.clone(),
        held_below: 64,
    };
    put(Kind::Launch, 3, &|out| launch.encode(out));
    put(Kind::Launched, 1, &|out| Launched { worker: 9, pid: 44 }.encode(out));
    let preload = Preload {
        role: Role::Zygote,
        kind: TargetKind::Script,
        target: b"/srv/app/script.py".to_vec(),
        prefix: strings(&[b"/usr/bin/python3", b"-u"]),
        modules: strings(&[b"json", b"os.path"]),
        argv: strings(&[b"script.py", b""]),
        volatile: strings(&[b"TRACEPARENT"]),
    };
    put(Kind::Preload, 0, &|out| preload.encode(out));
    let notes = strings(&[b"Mjson", b"F/usr/lib/python3.11/json/__init__.py", b"EHOME"]);
    let ready = Ready { role: Role::Zygote, pid: 43, threads: 1, notes: notes.clone() };
    put(Kind::Ready, 0, &|out| ready.encode(out));
    put(Kind::Fork, 1, &|out| Fork { worker: 9, paid: Paid::Yes }.encode(out));
    let forked = Forked { worker: 9, pid: 44, error: Vec::new() };
    put(Kind::Forked, 1, &|out| forked.encode(out));
    let gone = Gone { worker: 9, exit: Exit::Signal(11), usage };
    put(Kind::Gone, 0, &|out| gone.encode(out));
    let give = Give {
        call: 7,
        group: 41,
        world: Cow::Borrowed(&world),
        argv: Cow::Borrowed(&argv),
        env: Cow::Borrowed(&env),
        processors: &[0b101],
        closed: 0b001,
        beyond: Cow::Owned(vec![9]),
    };
    put(Kind::Give, 6, &|out| give.encode(out));
    let finished = Finished {
        call: 7,
        exit: Exit::Code(3),
        main_ns: 1_000_400_000,
        finished_ns: 1_000_500_000,
    };
    put(Kind::Finished, 0, &|out| finished.encode(out));
    put(Kind::Notes, 0, &|out| Notes { call: 7, notes: notes.clone() }.encode(out));
    put(Kind::Joined, 0, &|out| Joined { call: 7, at_ns: 1_000_350_000 }.encode(out));
    put(Kind::Executes, 0, &|out| {
        Executes { call: 7, at_ns: 1_000_400_000, why: Unfit::Signals }.encode(out);
    });
    let spans = strings(&[b"1000410000 50000 0 0 load", b"1000420000 20000 1 1 parse \xff"]);
    put(Kind::Spans, 0, &|out| Spans { call: 7, dropped: 2, spans: spans.clone() }.encode(out));
    put(Kind::Failed, 0, &|out| Failed { text: b"no module".to_vec() }.encode(out));
    messages(&mut put);
    hooks(&mut put);
    sessions(&mut put);
    all
}

fn sessions(put: &mut impl FnMut(Kind, u8, &dyn Fn(&mut Vec<u8>))) {
    let open = OpenSession {
        name: b"work".to_vec(),
        start: true,
        shared: true,
        token: b"secret".to_vec(),
        language: b"lisp".to_vec(),
        interpreter: b"/usr/bin/vm".to_vec(),
        libraries: b"src:/lib/core.jar".to_vec(),
        env: strings(&[b"PATH=/usr/bin", b"ODD=\xff"]),
    };
    put(Kind::OpenSession, 1, &|out| open.encode(out));
    let opened = SessionOpened { fresh: true, pid: 45, serves: b"own".to_vec() };
    put(Kind::SessionOpened, 0, &|out| opened.encode(out));
}

fn hooks(put: &mut impl FnMut(Kind, u8, &dyn Fn(&mut Vec<u8>))) {
    let run = RunSet {
        set: 21,
        umask: 0o027,
        spawn: true,
        kill_after_ms: 1_800_000,
        warn_after_ms: 5_000,
        remaining_ms: 60_000,
        target: b"host-1".to_vec(),
        directory: b"/etc/hooks.d".to_vec(),
        cwd: b"/srv".to_vec(),
        ignored: Some(strings(&[b".bak", b"~"])),
        params: strings(&[b"UUID=1-2", b"ODD=\xff"]),
        env: strings(&[b"PATH=/usr/bin:/bin", b"EMPTY="]),
    };
    put(Kind::RunSet, 0, &|out| run.encode(out));
    let begun = SetBegun { set: 21, call: 700, hooks: strings(&[b"10-a", b"20 \xff\n", b"30-c"]) };
    put(Kind::SetBegun, 0, &|out| begun.encode(out));
    let started = HookStarted { set: 21, hook: 1 };
    put(Kind::HookStarted, 0, &|out| started.encode(out));
    let output = HookOutput { set: 21, hook: 1, part: Part::ErrTail, bytes: b"caf\xc3\xa9\xff\n" };
    put(Kind::HookOutput, 0, &|out| output.encode(out));
    let ended = HookEnded {
        set: 21,
        hook: 1,
        outcome: Verdict::Error,
        exit: Some(Exit::Signal(11)),
        started: Started::Prestarted,
        remarks: Remarks { slow: true, changed: false, left_behind: true },
        pid: 45,
        retries: 2,
        at_us: 1_100,
        wall_us: 950,
        usage: Some(Usage { user_us: 1500, system_us: 250, peak_kib: 9216 }),
        reason: b"first".to_vec(),
        trouble: b"busy".to_vec(),
        text: b"a signal ended it: SIGSEGV".to_vec(),
        stdout: Stream { total: 9, cut: 2, stamps: vec![(100, 4), (u64::MAX, 5)] },
        stderr: Stream::default(),
    };
    put(Kind::HookEnded, 0, &|out| ended.encode(out));
    let ended = SetEnded {
        set: 21,
        outcome: Verdict::Error,
        wall_us: 2_050,
        not_run: strings(&[b"30-c"]),
        text: b"stopped".to_vec(),
    };
    put(Kind::SetEnded, 0, &|out| ended.encode(out));
}

fn messages(put: &mut impl FnMut(Kind, u8, &dyn Fn(&mut Vec<u8>))) {
    let message = Message {
        id: 11,
        manner: Manner::Ask,
        remaining_us: 5_000_000,
        program: b"greeter",
        key: b"tab-1",
        content_type: b"application/json",
        message_id: b"m-1",
        payload: b"{\"name\":\"x\"}",
    };
    put(Kind::Message, 0, &|out| message.encode(out));
    put(Kind::Request, 1, &|out| message.encode(out));
    let attach = Attach { directory: b"/srv/app".to_vec(), env: strings(&[b"PATH=/usr/bin"]) };
    put(Kind::Attach, 0, &|out| attach.encode(out));
    put(Kind::Cancel, 0, &|out| Numbered { id: 11 }.encode(out));
    let named = Named { id: 12, name: b"greeter".to_vec() };
    put(Kind::WantLane, 0, &|out| named.encode(out));
    put(Kind::LeaveLane, 0, &|out| Numbered { id: 13 }.encode(out));
    let passed = Passed {
        id: 0,
        lane: 0,
        turned: Turned::BodyBytes,
        protocol: Protocol::Http11,
        head_ns: 900,
        begun_ns: 1_000,
        judged_ns: 1_500,
        judged: Judged::Kept,
        whole_ns: 0,
        given_ns: 0,
        ended_ns: 0,
        passed_ns: 3_000,
        trace: Traced { high: 1, low: 2, parent: 3, span: 4 },
        program: b"/shop",
    };
    put(Kind::Passed, 0, &|out| passed.encode(out));
    let served = Served {
        stands_for: 3,
        status: 200,
        bytes: 24_900,
        judged: Judged::Shared,
        protocol: Protocol::Http2,
        head_ns: 0,
        begun_ns: 1_000,
        judged_ns: 2_000,
        queued_ns: 3_000,
        found_ns: 4_000,
        read_ns: 5_000,
        passed_ns: 6_000,
        trace: Traced::default(),
        mount: b"/git",
    };
    put(Kind::Served, 0, &|out| served.encode(out));
    answers(put);
}

fn answers(put: &mut impl FnMut(Kind, u8, &dyn Fn(&mut Vec<u8>))) {
    let state = State {
        id: 14,
        verb: StateVerb::Set,
        number: -1,
        ttl_us: 60_000_000,
        name: b"hits",
        value: b"\x00value",
    };
    put(Kind::State, 0, &|out| state.encode(out));
    let answer = Answer { id: 11, content_type: b"text/plain", payload: b"hello x" };
    put(Kind::Answer, 0, &|out| answer.encode(out));
    let failure = Failure { id: 11, reason: Reason::Raised, text: b"KeyError: 'name'" };
    put(Kind::Failure, 0, &|out| failure.encode(out));
    let respond =
        Respond { id: 11, source: Source::File, offset: 7, length: 4096, head: b"\xc8\0\0\0\0\0" };
    put(Kind::Respond, 1, &|out| respond.encode(out));
    put(Kind::Chunk, 0, &|out| Chunk { bytes: b"some" }.encode(out));
    put(Kind::End, 0, &|out| End {}.encode(out));
    put(Kind::SocketText, 0, &|out| MessagePart { more: true, bytes: b"some" }.encode(out));
    put(Kind::SocketBinary, 0, &|out| MessagePart { more: false, bytes: b"\0\xff" }.encode(out));
    put(Kind::SocketClose, 0, &|out| Close { code: 1000, reason: b"done" }.encode(out));
    let hint = Hint { id: 11, head: b"\x67\0\0\0\0\0" };
    put(Kind::Hint, 0, &|out| hint.encode(out));
    put(Kind::Lent, 1, &|out| Lent { id: 12, lane: 13 }.encode(out));
    let accepted = Named { id: 11, name: b"m-1".to_vec() };
    put(Kind::Accepted, 0, &|out| accepted.encode(out));
    let reply = StateReply { id: 14, held: Held::There, number: 42, value: b"value" };
    put(Kind::StateReply, 0, &|out| reply.encode(out));
    put(Kind::Lend, 3, &|out| Lend { lane: 13, uses: 256 }.encode(out));
    let handled = Handled {
        lane: 13,
        count: 100,
        raised: 1,
        newest_raised: false,
        main_ns: 1_000_400_000,
        finished_ns: 1_000_410_000,
        over: true,
    };
    put(Kind::Handled, 0, &|out| handled.encode(out));
}

/// The file of a kind: its name in words.
fn file(kind: Kind) -> PathBuf {
    let frame = SCHEMA.iter().find(|frame| frame.kind == kind).unwrap();
    let name = words(frame.name).replace(' ', "-");
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../runtimes/golden");
    golden.join(name).with_extension("bin")
}

#[test]
fn every_kind_has_a_golden_frame_and_its_bytes_have_not_moved() {
    let update = std::env::var_os("HOB_UPDATE_GOLDEN").is_some();
    let all = golden();
    for kind in Kind::ALL {
        assert!(all.iter().any(|(have, _, _)| *have == kind), "no golden frame for {kind:?}");
    }
    for (kind, fds, payload) in all {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, kind, fds, |out| out.extend_from_slice(&payload)).unwrap();
        let path = file(kind);
        if update {
            std::fs::write(&path, &bytes).unwrap();
        }
        let have = std::fs::read(&path).unwrap();
        assert_eq!(have, bytes, "{kind:?}: the wire changed; raise VERSION and read docs/wire.md");
    }
}

#[test]
fn golden_frames_are_as_the_schema_says_and_decode_to_what_encodes_them_again() {
    for frame in SCHEMA {
        let (kind, name) = (frame.kind, frame.name);
        let bytes = std::fs::read(file(kind)).unwrap();
        let (header, body, end) = frame::split(&bytes).unwrap().unwrap();
        assert_eq!((header.kind, end), (kind, bytes.len()), "{name}");
        // Some descriptors are there or not; there are never more than have a name.
        assert!(usize::from(header.fds) <= frame.fds.len(), "{name}");
        assert_eq!(header.fds == 0, frame.fds.is_empty(), "{name}");
        assert_eq!(walk(frame.fields, body), Ok(()), "{name}");
        let mut payload = Vec::new();
        again(kind, body, &mut payload).unwrap();
        assert_eq!(payload, body, "{name}");
    }
}

#[test]
fn no_golden_frame_is_taken_when_it_is_cut_or_has_more() {
    for frame in SCHEMA {
        let bytes = std::fs::read(file(frame.kind)).unwrap();
        let body = &bytes[frame::HEADER_LEN..];
        let ends_open = frame
            .fields
            .last()
            .is_some_and(|field| matches!(field.shape, hob_wire::schema::Shape::Rest(_)));
        let mut out = Vec::new();
        if !ends_open {
            let longer = [body, &[0][..]].concat();
            let trailing = hob_wire::DecodeError::Trailing(1);
            assert_eq!(again(frame.kind, &longer, &mut out), Err(trailing), "{}", frame.name);
            for cut in 0..body.len() {
                let cut = again(frame.kind, &body[..cut], &mut out);
                assert!(cut.is_err(), "{} was taken when it was cut", frame.name);
            }
        }
    }
}

#[test]
fn offsets_are_those_of_the_bytes() {
    let bytes = std::fs::read(file(Kind::Give)).unwrap();
    let body = &bytes[frame::HEADER_LEN..];
    let fields = Give::FIELDS;
    let at = |path| offset(fields, path).unwrap();
    assert_eq!(body[at("group")], 41);
    assert_eq!(body[at("world.umask")..][..4], 0o027_u32.to_le_bytes());
    assert_eq!(body[at("world.priority.oom")..][..4], 200_u32.to_le_bytes());
    assert_eq!(body[at("argv")..][..4], 4_u32.to_le_bytes());
    assert_eq!(offset(fields, "env"), None, "what follows argv has no place of its own");
    assert_eq!(offset(fields, "world.nothing"), None);
}
