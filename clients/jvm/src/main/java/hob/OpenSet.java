package hob;

import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * A set from when it is asked for to its result. What the daemon tells of it comes on the reader's
 * thread alone.
 */
final class OpenSet {
  final HobClient client;
  final long number;
  final HooksCall call;
  final Future future = new Future();

  /** What goes on the wire, until it is given. */
  volatile byte[] frame;

  /** Where it was put last. */
  volatile Connection on;

  // Guarded by the connection's lock.
  boolean given;
  boolean triedAgain;
  boolean cancelled;

  /** When a daemon that has said nothing counts as lost; 0: never. By {@code System.nanoTime}. */
  final long giveUpNanos;

  // Of the reader's thread.
  private List<byte[]> names;
  private int running = -1;
  private long receipt;
  private final List<HookRecord> records = new ArrayList<>();
  private final ByteArrayOutputStream[] parts = new ByteArrayOutputStream[4];

  /** Longer than the daemon lets a hook take to end after the deadline. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  OpenSet(HobClient client, long number, HooksCall call) {
    this.client = client;
    this.number = number;
    this.call = call;
    this.giveUpNanos =
        call.deadline.isZero() ? 0 : nonZero(System.nanoTime() + call.deadline.plus(PATIENCE).toNanos());
  }

  private static long nonZero(long nanos) {
    return nanos == 0 ? 1 : nanos;
  }

  /** The result to come; its cancellation cancels the set. */
  final class Future extends CompletableFuture<HooksResult> {
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean done = super.cancel(mayInterruptIfRunning);
      if (done) {
        OpenSet.this.cancel();
      }
      return done;
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
      return new CompletableFuture<>();
    }
  }

  void cancel() {
    Connection connection = on;
    if (connection != null) {
      connection.cancel(this);
    }
  }

  /** Completes the result, unless it was cancelled or is there already. */
  void end(HooksResult result) {
    future.complete(result);
  }

  void begun(long receipt, List<byte[]> names) {
    this.receipt = receipt;
    this.names = names;
  }

  void started(int hook) {
    running = hook;
  }

  void wrote(int part, byte[] bytes) {
    if (parts[part] == null) {
      parts[part] = new ByteArrayOutputStream(bytes.length);
    }
    parts[part].writeBytes(bytes);
  }

  /** The bytes of a part; the next hook begins with none. */
  byte[] take(int part) {
    ByteArrayOutputStream bytes = parts[part];
    parts[part] = null;
    return bytes == null ? new byte[0] : bytes.toByteArray();
  }

  byte[] name(int hook) throws ProtocolException {
    if (names == null || hook < 0 || hook >= names.size()) {
      throw new ProtocolException("a hook that was not listed");
    }
    return names.get(hook);
  }

  void hookEnded(HookRecord record) {
    running = -1;
    records.add(record);
    if (call.listener != null) {
      try {
        call.listener.accept(record);
      } catch (RuntimeException fault) {
        // It must not cost other sets their results.
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, fault);
      }
    }
  }

  HooksReport report(List<byte[]> notRun, Duration wall, Optional<String> message) {
    return new HooksReport(
        receipt, List.copyOf(records), notRun.stream().map(Wire::text).toList(), wall, message);
  }

  /** The daemon is gone: what ran, and what did not. */
  HooksResult lost(String why) {
    if (names == null) {
      return new HooksResult.Lost(
          report(List.of(), Duration.ZERO, Optional.of(why + "; nothing was heard of the set")),
          Optional.empty(),
          false);
    }
    int next = running >= 0 ? running + 1 : records.size();
    List<byte[]> rest = names.subList(Math.min(next, names.size()), names.size());
    return new HooksResult.Lost(
        report(rest, Duration.ZERO, Optional.of(why)),
        running >= 0 ? Optional.of(Wire.text(names.get(running))) : Optional.empty(),
        true);
  }
}
