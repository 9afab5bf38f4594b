"""Frames of the wire (docs/wire.md), as the runtime writes and reads them."""


def u32(number):
    return number.to_bytes(4, "little")


def u64(number):
    return number.to_bytes(8, "little")


def encode_blob(data):
    return u32(len(data)) + data


def encode_strings(strings):
    data = b"".join([s + b"\0" for s in strings])
    return u32(len(strings)) + u32(len(data)) + data


def encode_frame(kind, payload, fds=0):
    if len(payload) > FRAME_BYTES_MAX:
        raise WireError("a frame of %d bytes is beyond the cap" % len(payload))
    return MAGIC + bytes((kind, fds, 0, 0)) + u32(len(payload)) + payload


def encode_ready(role, pid, threads, notes):
    return encode_frame(READY, bytes((role,)) + u32(pid) + u32(threads) + encode_strings(notes))


def encode_forked(worker, pid, error):
    payload = u64(worker) + u32(pid) + encode_blob(error)
    return encode_frame(FORKED, payload, 1 if pid else 0)


def encode_gone(worker, exit_pair, usage):
    user_us, system_us, peak_kib = usage
    payload = u64(worker) + bytes(exit_pair) + u64(user_us) + u64(system_us) + u64(peak_kib)
    return encode_frame(GONE, payload)


# The number of a call is kept as the eight bytes that it came in; that of a dummy call:
NO_CALL = u64(0)
NO_TEXT_NOT_COLD = bytes(8)


def encode_ended(call, exit_pair):
    return ENDED_HEAD + call + bytes(exit_pair) + NO_TEXT_NOT_COLD


ENDED_HEAD = MAGIC + bytes((ENDED, 0, 0, 0)) + u32(18)


def encode_finished(call, exit_pair, main_ns, finished_ns):
    return encode_frame(FINISHED, call + bytes(exit_pair) + u64(main_ns) + u64(finished_ns))


def encode_joined(call, at_ns):
    return encode_frame(JOINED, call + u64(at_ns))


def encode_executes(call, at_ns, why):
    return encode_frame(EXECUTES, call + u64(at_ns) + bytes((why,)))


def encode_notes(call, notes):
    return encode_frame(NOTES, call + encode_strings(notes))


def encode_failed(text):
    return encode_frame(FAILED, encode_blob(text.encode("utf-8", "backslashreplace")))


class WireError(Exception):
    """A frame that breaks a rule; it ends the connection."""


def decode_header(head):
    """The kind, the number of descriptors and the payload's length of a frame."""
    length = from_bytes(head[8:12], "little")
    if head[:4] != MAGIC or head[6:8] != b"\0\0" or length > FRAME_BYTES_MAX:
        raise WireError("not a frame of version 1")
    return head[4], head[5], length


def decode_blob(data, at):
    end = at + 4 + from_bytes(data[at : at + 4], "little")
    if end > len(data):
        raise WireError("a blob beyond its frame")
    return bytes(data[at + 4 : end]), end


def decode_strings(data, at):
    count = from_bytes(data[at : at + 4], "little")
    blob, end = decode_blob(data, at + 4)
    strings = blob.split(b"\0")
    if strings.pop() or len(strings) != count:
        raise WireError("a list of strings with a wrong count")
    return strings, end


def decode_numbers(data, at):
    count = from_bytes(data[at : at + 4], "little")
    ends = range(at + 8, at + 8 + 4 * count, 4)
    return [from_bytes(data[end - 4 : end], "little") for end in ends]


def decode_preload(payload):
    role, kind = payload[0], payload[1]
    target, at = decode_blob(payload, 2)
    prefix, at = decode_strings(payload, at)
    modules, at = decode_strings(payload, at)
    argv, at = decode_strings(payload, at)
    volatile, _ = decode_strings(payload, at)
    return role, kind, target, prefix, modules, argv, volatile


def decode_fork(payload):
    return from_bytes(payload[:8], "little"), payload[8]


def decode_fds(ancillary):
    """The descriptors that came with a frame."""
    fds = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [from_bytes(data[i : i + 4], "little") for i in range(0, len(data) - 3, 4)]
    return fds


def receive(channel):
    """One whole frame as (kind, payload, descriptors), or None at the end of the channel."""
    head = receive_head(channel)
    if head is None:
        return None
    kind, length, fds = head
    return kind, receive_bytes(channel, length), fds


def receive_head(channel):
    """The head of a frame as (kind, length of what follows, descriptors), or None at the end."""
    room = _socket.CMSG_SPACE(4 * FRAME_FDS_MAX)
    head, ancillary, _, _ = channel.recvmsg(HEADER_BYTES, room, MSG_CMSG_CLOEXEC)
    if not head:
        return None
    fds = decode_fds(ancillary)
    while len(head) < HEADER_BYTES:
        head += channel.recv(HEADER_BYTES - len(head)) or _cut_off()
    kind, _, length = decode_header(head)
    return kind, length, fds


def receive_bytes(channel, length):
    payload = b""
    while len(payload) < length:
        payload += channel.recv(length - len(payload)) or _cut_off()
    return payload


def _cut_off():
    raise WireError("the channel ended inside a frame")


def send_all(fd, data):
    sent = posix.write(fd, data)
    while sent < len(data):
        sent += posix.write(fd, memoryview(data)[sent:])
