package hob;

import static hob.HooksResult.NotRun.Reason;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/** The frames of {@code docs/wire.md}, as far as a caller of hook sets has to do with them. */
final class Wire {
  // wire:begin java-wire (`cargo xtask wire` writes these lines)
  static final int HEADER = 12;
  static final int PAYLOAD_MAX = 1048576;
  static final int HELLO = 1;
  static final int CANCEL = 10;
  static final int FAILURE = 24;
  static final int RUN_SET = 48;
  static final int SET_BEGUN = 49;
  static final int HOOK_STARTED = 50;
  static final int HOOK_OUTPUT = 51;
  static final int HOOK_ENDED = 52;
  static final int SET_ENDED = 53;
  static final int BUSY = 5;
  static final int STOPPING = 10;
  static final int CONTEXT = 14;
  static final int STAMPS_MAX = 4096;
  static final int OUTCOMES = 7;
  static final int WAYS = 4;
  // wire:end

  private static final int MAGIC = 'h' | 'o' << 8 | 'b' << 16 | 1 << 24;

  private Wire() {}

  /** A payload while it is being written. */
  private static final class Out {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(8192);

    Out u8(int value) {
      bytes.write(value);
      return this;
    }

    Out u32(int value) {
      for (int shift = 0; shift < 32; shift += 8) {
        bytes.write(value >>> shift);
      }
      return this;
    }

    Out u64(long value) {
      return u32((int) value).u32((int) (value >>> 32));
    }

    Out raw(byte[] value) {
      bytes.writeBytes(value);
      return this;
    }

    Out blob(byte[] value) {
      return u32(value.length).raw(value);
    }

    Out strings(Collection<byte[]> list) {
      int length = 0;
      for (byte[] one : list) {
        length += one.length + 1;
      }
      u32(list.size()).u32(length);
      for (byte[] one : list) {
        raw(one).u8(0);
      }
      return this;
    }

    /** The whole frame; {@code null} if it would be too large. */
    byte[] frame(int kind) {
      if (bytes.size() > PAYLOAD_MAX) {
        return null;
      }
      ByteBuffer frame = ByteBuffer.allocate(HEADER + bytes.size()).order(ByteOrder.LITTLE_ENDIAN);
      frame.putInt(MAGIC).put((byte) kind).put((byte) 0).putShort((short) 0).putInt(bytes.size());
      return frame.put(bytes.toByteArray()).array();
    }
  }

  /** A client of no build: what has to agree is the version in each frame. */
  static byte[] hello(int pid) {
    return new Out().raw(new byte[16]).u32(pid).frame(HELLO);
  }

  static byte[] cancel(long set) {
    return new Out().u64(set).frame(CANCEL);
  }

  static byte[] runSet(long number, HooksCall call) {
    Path cwd = call.cwd == null ? Surroundings.WORKING_DIRECTORY : call.cwd;
    Out out = new Out();
    out.u64(number).u32(call.umask < 0 ? Surroundings.UMASK : call.umask);
    out.u8(call.spawn ? 1 : 0);
    out.u64(millis(call.killAfter)).u64(millis(call.warnAfter)).u64(millis(call.deadline));
    out.blob(utf8(call.target)).blob(bytes(call.directory)).blob(bytes(cwd));
    out.u8(call.ignored == null ? 0 : 1);
    if (call.ignored != null) {
      out.strings(call.ignored.stream().map(Wire::utf8).toList());
    }
    List<byte[]> params = new ArrayList<>(call.params.size());
    call.params.forEach((name, value) -> params.add(HooksCall.entry(name, value)));
    out.strings(params);
    out.strings(call.environment == null ? Surroundings.ENVIRONMENT : call.environment);
    return out.frame(RUN_SET);
  }

  /** Up to a whole millisecond, so that a short time is not none. */
  private static long millis(Duration time) {
    return time.plusNanos(999_999).toMillis();
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** The bytes of a path; those of its URI, which Java makes of the system's own. */
  static byte[] bytes(Path path) {
    String text = path.toString();
    byte[] utf8 = utf8(text);
    if (utf8.length == text.length()) {
      return utf8;
    }
    // In a locale without UTF-8 the text of a path is not what the file system has; its URI is.
    String raw = path.toUri().getRawPath();
    ByteArrayOutputStream out = new ByteArrayOutputStream(raw.length());
    for (int at = 0; at < raw.length(); at++) {
      char one = raw.charAt(at);
      if (one == '%') {
        out.write(Integer.parseInt(raw, at + 1, at + 3, 16));
        at += 2;
      } else {
        out.write(one);
      }
    }
    byte[] all = out.toByteArray();
    // The URI of a directory ends in a slash, which the name does not have.
    int length = all.length > 1 && all[all.length - 1] == '/' ? all.length - 1 : all.length;
    return java.util.Arrays.copyOf(all, length);
  }

  static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** The length of the payload that follows this header. */
  static int length(ByteBuffer header) throws ProtocolException {
    int at = header.position();
    int length = header.getInt(at + 8);
    if (header.getInt(at) != MAGIC || header.getShort(at + 6) != 0) {
      throw new ProtocolException("a header");
    }
    if (length < 0 || length > PAYLOAD_MAX) {
      throw new ProtocolException("a frame of " + length + " bytes");
    }
    return length;
  }

  static int kind(ByteBuffer header) {
    return header.get(header.position() + 4) & 0xff;
  }

  /** A payload while it is being read. */
  static final class In {
    private final ByteBuffer bytes;

    In(ByteBuffer payload) {
      this.bytes = payload.order(ByteOrder.LITTLE_ENDIAN);
    }

    private void need(int count) throws ProtocolException {
      if (count < 0 || bytes.remaining() < count) {
        throw new ProtocolException("a frame that ends too soon");
      }
    }

    int u8() throws ProtocolException {
      need(1);
      return bytes.get() & 0xff;
    }

    int u32() throws ProtocolException {
      need(4);
      return bytes.getInt();
    }

    long u64() throws ProtocolException {
      need(8);
      return bytes.getLong();
    }

    byte[] raw(int count) throws ProtocolException {
      need(count);
      byte[] all = new byte[count];
      bytes.get(all);
      return all;
    }

    byte[] rest() throws ProtocolException {
      return raw(bytes.remaining());
    }

    byte[] blob() throws ProtocolException {
      return raw(u32());
    }

    List<byte[]> strings() throws ProtocolException {
      int count = u32();
      byte[] all = blob();
      List<byte[]> list = new ArrayList<>();
      int start = 0;
      for (int at = 0; at < all.length; at++) {
        if (all[at] == 0) {
          list.add(java.util.Arrays.copyOfRange(all, start, at));
          start = at + 1;
        }
      }
      if (start != all.length || list.size() != count) {
        throw new ProtocolException("a list of strings");
      }
      return list;
    }

    Optional<String> line() throws ProtocolException {
      byte[] bytes = blob();
      return bytes.length == 0 ? Optional.empty() : Optional.of(text(bytes));
    }

    boolean flag() throws ProtocolException {
      int value = u8();
      if (value > 1) {
        throw new ProtocolException("a flag of " + value);
      }
      return value == 1;
    }

    void end() throws ProtocolException {
      if (bytes.hasRemaining()) {
        throw new ProtocolException("a frame that is too long");
      }
    }
  }

  /** The end of a hook, with what was written before it. */
  static HookRecord hookEnded(In in, byte[] name, OpenSet set) throws IOException {
    Outcome outcome = Outcome.of(in.u8());
    int exit = in.u8();
    int value = in.u8();
    int way = in.u8();
    int remarks = in.u8();
    if (exit > 2 || way >= WAYS || remarks > 7) {
      throw new ProtocolException("the end of a hook");
    }
    int pid = in.u32();
    int retries = in.u32();
    Duration at = micros(in.u64());
    Duration wall = micros(in.u64());
    Optional<HookRecord.Usage> usage = Optional.empty();
    if (in.flag()) {
      usage = Optional.of(new HookRecord.Usage(micros(in.u64()), micros(in.u64()), in.u64()));
    }
    Optional<String> reason = in.line();
    Optional<String> trouble = in.line();
    Optional<String> message = in.line();
    Capture stdout = capture(in, set.take(0), set.take(1));
    Capture stderr = capture(in, set.take(2), set.take(3));
    in.end();
    return new HookRecord(
        name,
        outcome,
        exit == 0 ? OptionalInt.of(value) : OptionalInt.empty(),
        exit == 1 ? OptionalInt.of(value) : OptionalInt.empty(),
        pid,
        at,
        wall,
        HookRecord.Way.values()[way],
        reason,
        trouble,
        message,
        usage,
        (remarks & 1) != 0,
        (remarks & 2) != 0,
        (remarks & 4) != 0,
        retries,
        stdout,
        stderr);
  }

  private static Capture capture(In in, byte[] head, byte[] tail) throws ProtocolException {
    long total = in.u64();
    long cut = in.u64();
    int count = in.u32();
    if (count < 0 || count > STAMPS_MAX) {
      throw new ProtocolException("stamps");
    }
    List<Capture.Chunk> chunks = new ArrayList<>(count);
    for (int at = 0; at < count; at++) {
      chunks.add(new Capture.Chunk(in.u64(), in.u64()));
    }
    return total == 0 ? Capture.EMPTY : new Capture(head, tail, total, cut, List.copyOf(chunks));
  }

  private static Duration micros(long micros) {
    return Duration.of(micros, java.time.temporal.ChronoUnit.MICROS);
  }

  /** The end of a set. */
  static HooksResult setEnded(In in, OpenSet set) throws ProtocolException {
    Outcome outcome = Outcome.of(in.u8());
    Duration wall = micros(in.u64());
    List<byte[]> notRun = in.strings();
    Optional<String> message = in.line();
    in.end();
    HooksReport report = set.report(notRun, wall, message);
    return switch (outcome) {
      case OK -> new HooksResult.Ok(report);
      case WARNING -> new HooksResult.Warning(report);
      case INTERRUPT -> new HooksResult.Interrupt(report);
      case ERROR -> new HooksResult.Error(report);
      case TIMEOUT -> new HooksResult.Timeout(report);
      case SYSTEM_ERROR -> new HooksResult.SystemError(report);
      case CANCELLED -> new HooksResult.Cancelled(report);
    };
  }

  static Reason reason(int number) {
    return switch (number) {
      case BUSY -> Reason.BUSY;
      case STOPPING -> Reason.STOPPING;
      case CONTEXT -> Reason.CONTEXT;
      default -> Reason.MALFORMED;
    };
  }
}
