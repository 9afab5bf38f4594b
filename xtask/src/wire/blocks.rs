//! The constants of those who speak the wire in other languages: kinds, numbers, offsets, formats.
//!
//! The names are those of the files that hold them; the values are the schema's.

use hob_wire::caps::{BODY_MAX, PAYLOAD_MAX, WORD_MAX};
use hob_wire::frame::{FDS_MAX, HEADER_LEN, Kind, MAGIC, VERSION};
use hob_wire::frames::SCHEMA;
use hob_wire::frames::http::Source;
use hob_wire::hooks::{STAMPS_MAX, Started, Verdict};
use hob_wire::message::{Held, Manner, Reason, StateVerb};
use hob_wire::schema::{Field, Shape, offset};
use hob_wire::worker::{Paid, Role, TargetKind, Unfit};

use super::Block;

/// Every block of a program in another language.
pub(crate) fn blocks() -> Vec<Block> {
    vec![
        python_worker(),
        python_message(),
        python_client(),
        conformance_driver(),
        ruby_frames(),
        ruby_message(),
        ruby_world(),
        jvm_frames(),
        jvm_world(),
        java_wire(),
    ]
}

/// A name and its value.
type Constant = (&'static str, String);

fn kind(name: &'static str, kind: Kind) -> Constant {
    (name, (kind as u8).to_string())
}

fn number(name: &'static str, number: u8) -> Constant {
    (name, number.to_string())
}

fn size(name: &'static str, size: usize) -> Constant {
    (name, size.to_string())
}

fn fields(kind: Kind) -> &'static [Field] {
    SCHEMA.iter().find(|frame| frame.kind == kind).map_or(&[], |frame| frame.fields)
}

/// Where a field begins in its payload. A field that has no such place is a mistake in this file.
fn place(kind: Kind, path: &str) -> usize {
    offset(fields(kind), path).unwrap_or_else(|| panic!("{kind:?} has no place for {path}"))
}

/// How many bytes stand in fixed places at the beginning of a payload.
fn fixed(kind: Kind) -> usize {
    leading(fields(kind)).iter().map(|field| field.shape.size().unwrap_or(4)).sum()
}

/// The fields in fixed places, and the length of the first that has none.
fn leading(fields: &[Field]) -> &[Field] {
    let open = fields.iter().position(|field| field.shape.size().is_none());
    let Some(open) = open else { return fields };
    let counted = matches!(fields[open].shape, Shape::Blob(..));
    &fields[..open + usize::from(counted)]
}

/// The format of these fields, by the letters of a language.
fn format(kind: Kind, letter: fn(&Shape) -> &'static str) -> String {
    leading(fields(kind)).iter().map(|field| letter(&field.shape)).collect()
}

/// A letter of Python's `struct`.
fn python(shape: &Shape) -> &'static str {
    match shape {
        Shape::U8 | Shape::Flag | Shape::Number(_) | Shape::Bits(_) => "B",
        Shape::Pair(_) => "BB",
        Shape::U32 | Shape::Within(..) | Shape::Late(_) | Shape::Blob(..) => "I",
        Shape::I32 => "i",
        Shape::U64 => "Q",
        Shape::I64 => "q",
        Shape::Raw(_)
        | Shape::Rest(_)
        | Shape::Strings(_)
        | Shape::Maybe(_)
        | Shape::Times(..)
        | Shape::Many(..)
        | Shape::Part(..) => panic!("{shape:?} has no letter"),
    }
}

/// A letter of Ruby's `pack`.
fn ruby(shape: &Shape) -> &'static str {
    match python(shape) {
        "BB" => "CC",
        "I" => "V",
        "i" => "l<",
        "Q" => "Q<",
        "q" => "q<",
        _ => "C",
    }
}

/// A header, as `struct` takes it apart.
const PYTHON_HEADER: &str = "4sBBHI";

fn python_format(name: &'static str, module: &str, format: &str) -> Constant {
    (name, format!("{module}.Struct(\"<{format}\")"))
}

fn python_magic() -> String {
    format!("b\"{}\\x{VERSION:02x}\"", String::from_utf8_lossy(&MAGIC))
}

/// Constants of Python that stand in one line.
fn together(constants: &[Constant]) -> String {
    let names: Vec<&str> = constants.iter().map(|constant| constant.0).collect();
    let values: Vec<&str> = constants.iter().map(|constant| constant.1.as_str()).collect();
    format!("{} = {}", names.join(", "), values.join(", "))
}

fn roles() -> [Constant; 3] {
    [
        number("ZYGOTE", Role::Zygote as u8),
        number("STANDBY", Role::Standby as u8),
        number("COPY", Role::Copy as u8),
    ]
}

fn preparation() -> [Constant; 5] {
    [
        kind("PRELOAD", Kind::Preload),
        kind("READY", Kind::Ready),
        kind("FORK", Kind::Fork),
        kind("FORKED", Kind::Forked),
        kind("GONE", Kind::Gone),
    ]
}

fn on_lanes() -> [Constant; 5] {
    [
        kind("MESSAGE", Kind::Message),
        kind("ANSWER", Kind::Answer),
        kind("FAILURE", Kind::Failure),
        kind("LEND", Kind::Lend),
        kind("HANDLED", Kind::Handled),
    ]
}

/// What only interfaces with WebSockets have, which have several requests at one time.
fn on_sockets() -> [Constant; 5] {
    [
        kind("CANCEL", Kind::Cancel),
        kind("SOCKET_TEXT", Kind::SocketText),
        kind("SOCKET_BINARY", Kind::SocketBinary),
        kind("SOCKET_CLOSE", Kind::SocketClose),
        number("SOCKET", Source::Socket as u8),
    ]
}

fn on_streams() -> [Constant; 6] {
    [
        kind("REQUEST", Kind::Request),
        kind("RESPOND", Kind::Respond),
        kind("CHUNK", Kind::Chunk),
        kind("END", Kind::End),
        number("STREAM", Source::Stream as u8),
        number("FILE", Source::File as u8),
    ]
}

fn python_worker() -> Block {
    let give = |name, path| size(name, HEADER_LEN + place(Kind::Give, path));
    let lines = vec![
        together(&roles()),
        together(&[
            number("UNPAID", Paid::No as u8),
            number("PAID", Paid::Yes as u8),
            number("PLAIN", Paid::Plain as u8),
        ]),
        together(&[
            number("SCRIPT", TargetKind::Script as u8),
            number("MODULE", TargetKind::Module as u8),
            number("HANDLER", TargetKind::Handler as u8),
            number("APP", TargetKind::App as u8),
            number("BARE", TargetKind::Bare as u8),
            number("INSTALLED", TargetKind::Installed as u8),
        ]),
        together(&preparation()),
        together(&[
            number("OF_PROGRAM", Unfit::Program as u8),
            number("OF_DESCRIPTORS", Unfit::Descriptors as u8),
            number("OF_EDITED", Unfit::Edited as u8),
        ]),
        together(&[
            kind("GIVE", Kind::Give),
            kind("FINISHED", Kind::Finished),
            kind("NOTES", Kind::Notes),
            kind("SPANS", Kind::Spans),
            kind("FAILED", Kind::Failed),
            kind("JOINED", Kind::Joined),
            kind("ENDED", Kind::Ended),
            kind("EXECUTES", Kind::Executes),
        ]),
        together(&[size("FRAME_BYTES_MAX", PAYLOAD_MAX)]),
        together(&[size("HEADER_BYTES", HEADER_LEN)]),
        together(&[("MAGIC", python_magic())]),
        together(&[size("FRAME_FDS_MAX", FDS_MAX)]),
        "# Offsets within a whole `give` frame, see docs/wire.md.".to_owned(),
        together(&[
            give("AT_CALL", "call"),
            give("AT_GROUP", "group"),
            give("AT_UMASK", "world.umask"),
            give("AT_IGNORED", "world.ignored"),
            give("AT_BLOCKED", "world.blocked"),
        ]),
        together(&[
            give("AT_LIMITS", "world.limits"),
            give("AT_PRIORITY", "world.priority"),
            give("AT_ARGV", "argv"),
        ]),
    ];
    Block { name: "python-worker", lines }
}

fn manners() -> [Constant; 3] {
    [
        number("ASK", Manner::Ask as u8),
        number("TELL", Manner::Tell as u8),
        number("TELL_ONCE", Manner::TellOnce as u8),
    ]
}

fn python_message() -> Block {
    let whole = |kind| format!("{PYTHON_HEADER}{}", format(kind, python));
    let lines = vec![
        together(&on_lanes()),
        together(&on_streams()),
        together(&on_sockets()),
        together(&manners()),
        together(&[
            number("RAISED", Reason::Raised as u8),
            number("AGAIN", Reason::Again as u8),
            number("MALFORMED", Reason::Malformed as u8),
            number("CANCELLED", Reason::Cancelled as u8),
        ]),
        together(&[size("WORD_MAX", WORD_MAX)]),
        together(&[size("BODY_MAX", BODY_MAX)]),
        "# A whole message but for its words and payload: the header, then id, manner, remaining, \
         lengths."
            .to_owned(),
        "# The first four fields of the header, which are the same in every message, are one \
         number."
            .to_owned(),
        together(&[python_format(
            "FIXED",
            "struct",
            &format!("QI{}", format(Kind::Message, python)),
        )]),
        "# An answer: the header, id, the content type's length. A failure: the header, id, reason."
            .to_owned(),
        together(&[python_format("ANSWERED", "struct", &whole(Kind::Answer))]),
        together(&[python_format("FAILED", "struct", &whole(Kind::Failure))]),
        together(&[python_format("RESPONDED", "struct", &whole(Kind::Respond))]),
        together(&[kind("HINT", Kind::Hint), python_format("HINTED", "struct", &whole(Kind::Hint))]),
        together(&[python_format("PARTED", "struct", &whole(Kind::SocketText))]),
        together(&[python_format("CLOSED", "struct", &whole(Kind::SocketClose))]),
        together(&[python_format("FRAME", "struct", PYTHON_HEADER)]),
        together(&[python_format("REPORT", "struct", &format(Kind::Handled, python))]),
        together(&[python_format("LENT", "struct", &format(Kind::Lend, python))]),
    ];
    Block { name: "python-message", lines }
}

fn python_client() -> Block {
    let sent = format!("{PYTHON_HEADER}{}", format(Kind::Message, python));
    let numbered = format!("{PYTHON_HEADER}{}", format(Kind::Cancel, python));
    let answered = format!("QI{}", format(Kind::Answer, python));
    let mut lines = vec![
        together(&[("_MAGIC", python_magic())]),
        together(&[
            kind("_HELLO", Kind::Hello),
            kind("_MESSAGE", Kind::Message),
            kind("_ATTACH", Kind::Attach),
            kind("_CANCEL", Kind::Cancel),
            kind("_WANT_LANE", Kind::WantLane),
            kind("_LEAVE_LANE", Kind::LeaveLane),
            kind("_STATE", Kind::State),
        ]),
        together(&[
            kind("_ANSWER", Kind::Answer),
            kind("_FAILURE", Kind::Failure),
            kind("_LENT", Kind::Lent),
            kind("_ACCEPTED", Kind::Accepted),
            kind("_STATE_REPLY", Kind::StateReply),
        ]),
        together(&[
            number("_ASK", Manner::Ask as u8),
            number("_TELL", Manner::Tell as u8),
            number("_TELL_ONCE", Manner::TellOnce as u8),
        ]),
        together(&[
            number("_ADD", StateVerb::Add as u8),
            number("_COUNT", StateVerb::Count as u8),
            number("_SET", StateVerb::Set as u8),
            number("_GET", StateVerb::Get as u8),
            number("_DELETE", StateVerb::Delete as u8),
        ]),
        together(&[number("_THERE", Held::There as u8), number("_NO_ROOM", Held::NoRoom as u8)]),
        together(&[size("_PAYLOAD_MAX", PAYLOAD_MAX)]),
        together(&[size("_BODY_MAX", BODY_MAX)]),
        together(&[size("_WORD_MAX", WORD_MAX)]),
    ];
    lines.extend(client_offsets());
    lines.extend(client_codes());
    lines.extend([
        python_format_line("_HEADER", PYTHON_HEADER),
        python_format_line("_SENT", &sent),
        python_format_line("_NUMBERED", &numbered),
        "# An answer's header, the first four fields of which are one number; its id and its \
         type's length."
            .to_owned(),
        python_format_line("_ANSWERED", &answered),
        python_format_line("_STATED", &format(Kind::State, python)),
    ]);
    Block { name: "python-client", lines }
}

/// Where the client finds what is in replies.
fn client_offsets() -> Vec<String> {
    let at = |name, kind, path| size(name, HEADER_LEN + place(kind, path));
    let after = |name, kind| size(name, HEADER_LEN + fixed(kind));
    vec![
        "# Offsets within a whole frame: of a field, or of what follows those in fixed places."
            .to_owned(),
        together(&[at("_AT_ID", Kind::Cancel, "id"), at("_AT_LANE", Kind::Lent, "lane")]),
        together(&[
            at("_AT_TYPE", Kind::Answer, "content_type"),
            after("_AFTER_ANSWER", Kind::Answer),
        ]),
        together(&[
            at("_AT_REASON", Kind::Failure, "reason"),
            after("_AFTER_REASON", Kind::Failure),
        ]),
        together(&[after("_AFTER_NAME", Kind::Accepted)]),
        together(&[
            at("_AT_HELD", Kind::StateReply, "held"),
            after("_AFTER_HELD", Kind::StateReply),
        ]),
    ]
}

/// What a failure says to those who ask or tell.
fn client_codes() -> Vec<String> {
    let others = [Reason::Again, Reason::Context];
    let said = Reason::ALL.into_iter().filter(|reason| !others.contains(reason));
    let mut lines = vec!["_CODES = {".to_owned()];
    lines.extend(said.map(|reason| format!("    {}: \"{}\",", reason as u8, reason.code())));
    lines.push("}".to_owned());
    lines.push(together(&[number("_AGAIN", Reason::Again as u8)]));
    lines
}

fn python_format_line(name: &'static str, format: &str) -> String {
    together(&[python_format(name, "_struct", format)])
}

fn conformance_driver() -> Block {
    let lines = vec![
        together(&preparation()),
        together(&[
            kind("GIVE", Kind::Give),
            kind("FINISHED", Kind::Finished),
            kind("NOTES", Kind::Notes),
            kind("SPANS", Kind::Spans),
            kind("FAILED", Kind::Failed),
            kind("ENDED", Kind::Ended),
            kind("EXECUTES", Kind::Executes),
        ]),
        together(&on_lanes()),
        together(&on_streams()),
        "# Roles of a worker, and the kind of a target that answers messages.".to_owned(),
        together(&roles()),
        together(&[
            number("HANDLER", TargetKind::Handler as u8),
            number("APP", TargetKind::App as u8),
        ]),
    ];
    Block { name: "conformance-driver", lines }
}

/// Constants that stand in a line each.
fn apart(before: &str, constants: &[Constant], after: &str) -> Vec<String> {
    constants.iter().map(|(name, value)| format!("{before}{name} = {value}{after}")).collect()
}

fn quoted(name: &'static str, text: &str) -> Constant {
    (name, format!("\"{text}\""))
}

fn ruby_frames() -> Block {
    let magic = format!("\"{}\\x{VERSION:02x}\".b.freeze", String::from_utf8_lossy(&MAGIC));
    let mut constants = vec![
        size("HEADER_BYTES", HEADER_LEN),
        size("BYTES_MAX", PAYLOAD_MAX),
        size("FDS_MAX", FDS_MAX),
        ("MAGIC", magic),
        kind("ENDED", Kind::Ended),
    ];
    constants.extend(on_lanes());
    constants.extend([
        kind("REQUEST", Kind::Request),
        kind("RESPOND", Kind::Respond),
        kind("CHUNK", Kind::Chunk),
        kind("END_OF_BODY", Kind::End),
        kind("HINT", Kind::Hint),
    ]);
    constants.extend(preparation());
    constants.extend([
        kind("GIVE", Kind::Give),
        kind("FINISHED", Kind::Finished),
        kind("NOTES", Kind::Notes),
        kind("SPANS", Kind::Spans),
        kind("FAILED", Kind::Failed),
        kind("JOINED", Kind::Joined),
        kind("EXECUTES", Kind::Executes),
        number("PROGRAM", Unfit::Program as u8),
        number("ENVIRONMENT", Unfit::Environment as u8),
        number("DESCRIPTORS", Unfit::Descriptors as u8),
        number("EDITED", Unfit::Edited as u8),
    ]);
    Block { name: "ruby-frames", lines: apart("", &constants, "") }
}

fn jvm_frames() -> Block {
    let magic = u32::from_le_bytes([MAGIC[0], MAGIC[1], MAGIC[2], VERSION]);
    let constants = [
        size("HEADER_BYTES", HEADER_LEN),
        size("BYTES_MAX", PAYLOAD_MAX),
        ("MAGIC", format!("{magic:#x}")),
        number("STANDBY", Role::Standby as u8),
        number("EXITED", 0),
        number("JAR", TargetKind::Script as u8),
        number("CLASS", TargetKind::Class as u8),
        kind("ENDED", Kind::Ended),
        kind("PRELOAD", Kind::Preload),
        kind("READY", Kind::Ready),
        kind("GIVE", Kind::Give),
        kind("FINISHED", Kind::Finished),
        kind("FAILED", Kind::Failed),
        kind("JOINED", Kind::Joined),
        kind("EXECUTES", Kind::Executes),
    ];
    Block { name: "jvm-frames", lines: apart("    static final int ", &constants, ";") }
}

fn jvm_world() -> Block {
    let give = |name, path| size(name, place(Kind::Give, path));
    let constants = [
        size("LIMITS", hob_wire::call::LIMITS),
        give("AT_UMASK", "world.umask"),
        give("AT_LIMITS", "world.limits"),
        give("AT_PRIORITY", "world.priority"),
        give("AT_ARGV", "argv"),
        number("OF_SIGNALS", Unfit::Signals as u8),
        number("OF_LIMITS", Unfit::Limits as u8),
        number("OF_PRIORITY", Unfit::Priority as u8),
        number("OF_PROCESSORS", Unfit::Processors as u8),
        number("OF_ENCODINGS", Unfit::Encodings as u8),
        number("OF_DIRECTORY", Unfit::Directory as u8),
        number("OF_ENVIRONMENT", Unfit::Environment as u8),
        number("OF_DESCRIPTORS", Unfit::Descriptors as u8),
    ];
    Block { name: "jvm-world", lines: apart("    static final int ", &constants, ";") }
}

fn ruby_message() -> Block {
    let constants = [
        number("ASK", Manner::Ask as u8),
        number("RAISED", Reason::Raised as u8),
        number("CANCELLED", Reason::Cancelled as u8),
        number("AGAIN", Reason::Again as u8),
        number("STREAM", Source::Stream as u8),
        number("FILE", Source::File as u8),
        number("CONNECTION", Source::Connection as u8),
        size("BODY_MAX", BODY_MAX),
        size("FIXED_BYTES", fixed(Kind::Message)),
        quoted("FIXED", &format(Kind::Message, ruby)),
        quoted("FAILED", &format(Kind::Failure, ruby)),
        quoted("RESPONDED", &format(Kind::Respond, ruby)),
        quoted("HINTED", &format(Kind::Hint, ruby)),
        quoted("LENT", &format(Kind::Lend, ruby)),
        quoted("REPORT", &format(Kind::Handled, ruby)),
    ];
    Block { name: "ruby-message", lines: apart("", &constants, "") }
}

fn ruby_world() -> Block {
    let give = |name, path| size(name, place(Kind::Give, path));
    let constants = [
        size("LIMITS", hob_wire::call::LIMITS),
        give("AT_LIMITS", "world.limits"),
        give("AT_PRIORITY", "world.priority"),
        give("AT_ARGV", "argv"),
    ];
    Block { name: "ruby-world", lines: apart("", &constants, "") }
}

fn java_wire() -> Block {
    let constants = [
        size("HEADER", HEADER_LEN),
        size("PAYLOAD_MAX", PAYLOAD_MAX),
        kind("HELLO", Kind::Hello),
        kind("CANCEL", Kind::Cancel),
        kind("FAILURE", Kind::Failure),
        kind("RUN_SET", Kind::RunSet),
        kind("SET_BEGUN", Kind::SetBegun),
        kind("HOOK_STARTED", Kind::HookStarted),
        kind("HOOK_OUTPUT", Kind::HookOutput),
        kind("HOOK_ENDED", Kind::HookEnded),
        kind("SET_ENDED", Kind::SetEnded),
        number("BUSY", Reason::Busy as u8),
        number("STOPPING", Reason::Stopping as u8),
        number("CONTEXT", Reason::Context as u8),
        size("STAMPS_MAX", STAMPS_MAX),
        size("OUTCOMES", Verdict::ALL.len()),
        size("WAYS", Started::ALL.len()),
    ];
    Block { name: "java-wire", lines: apart("static final int ", &constants, ";") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_that_were_written_by_hand() {
        assert_eq!(place(Kind::Give, "world.priority"), 288);
        assert_eq!(fixed(Kind::Message), 33);
        assert_eq!(format(Kind::Message, python), "QBQIIII");
        assert_eq!(format(Kind::Handled, ruby), "Q<VVCQ<Q<C");
        assert_eq!(format(Kind::State, python), "QBqQI");
        assert_eq!(format(Kind::Failure, ruby), "Q<C");
        assert_eq!(python_magic(), r#"b"hob\x01""#);
    }
}
