package hob;

import static hob.HooksResult.NotRun.Reason;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One connection to the daemon, with the thread that reads it.
 *
 * <p>Callers write for themselves, as much as the socket takes at once; the reader's thread does
 * the rest. The channel does not block, also because a thread that is interrupted while it blocks in
 * a channel closes it, and with it everybody's sets.
 *
 * <p>A set is given when its last byte has been taken by the socket: a daemon does nothing with a
 * frame that it has not whole. Sets that were not given when the connection ends go to the next one,
 * once.
 */
final class Connection implements Runnable {
  /** Bytes that may wait for the daemon to read. Whoever has more is told that it is busy. */
  private static final long WAITING_MAX = 64L << 20;

  private final HobClient client;
  private final Path directory;
  private final Object lock = new Object();

  // Guarded by the lock.
  private final Map<Long, OpenSet> open = new HashMap<>();
  private final ArrayDeque<Outgoing> outgoing = new ArrayDeque<>();
  private long waiting;
  private SocketChannel channel;
  private Selector selector;
  private SelectionKey key;
  private boolean dead;
  private String closedBecause;

  private record Outgoing(ByteBuffer bytes, OpenSet set) {}

  /** The thread that reads a connection. */
  private static final class Reader extends Thread {
    Reader(Connection connection) {
      super(connection, "hob-client");
      setDaemon(true);
    }
  }

  Connection(HobClient client, Path directory) {
    this.client = client;
    this.directory = directory;
  }

  void start() {
    new Reader(this).start();
  }

  static boolean isReader(Thread thread) {
    return thread instanceof Reader;
  }

  /** What became of a set that was to be sent. */
  enum Given {
    /** It was sent, or will be. */
    TAKEN,
    /** Too much waits to be sent. */
    FULL,
    /** The connection has ended. */
    ENDED
  }

  /** Takes a set, to be sent at once or when there is a connection. */
  Given give(OpenSet set) {
    synchronized (lock) {
      if (dead) {
        return Given.ENDED;
      }
      if (waiting + set.frame.length > WAITING_MAX) {
        return Given.FULL;
      }
      open.put(set.number, set);
      set.on = this;
      send(new Outgoing(ByteBuffer.wrap(set.frame), set));
      return Given.TAKEN;
    }
  }

  void cancel(OpenSet set) {
    boolean unsent = false;
    synchronized (lock) {
      if (dead || set.cancelled || open.get(set.number) != set) {
        return;
      }
      set.cancelled = true;
      if (!set.given && outgoing.removeIf(one -> one.set == set && one.bytes.position() == 0)) {
        unsent = true;
        waiting -= set.frame.length;
        open.remove(set.number);
      } else {
        send(new Outgoing(ByteBuffer.wrap(Wire.cancel(set.number)), null));
      }
    }
    if (unsent) {
      set.end(HooksResult.NotRun.because(Reason.CANCELLED, "it was cancelled before it was given"));
    }
  }

  void close(String why) {
    synchronized (lock) {
      closedBecause = why;
      if (selector != null) {
        selector.wakeup();
      }
    }
  }

  private void send(Outgoing one) {
    outgoing.add(one);
    waiting += one.bytes.remaining();
    if (channel != null && outgoing.size() == 1 && !flush()) {
      selector.wakeup();
    }
  }

  /** Writes what the socket takes; {@code false} if the reader has to go on with it. */
  private boolean flush() {
    try {
      for (Outgoing one = outgoing.peek(); one != null; one = outgoing.peek()) {
        waiting -= channel.write(one.bytes);
        if (one.bytes.hasRemaining()) {
          key.interestOps(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
          return false;
        }
        if (one.set != null) {
          one.set.given = true;
          one.set.frame = null;
        }
        outgoing.remove();
      }
      key.interestOps(SelectionKey.OP_READ);
      return true;
    } catch (IOException gone) {
      // The reader finds the end too, after what the daemon had said before.
      return false;
    }
  }

  @Override
  public void run() {
    SocketChannel connected;
    try {
      connected = Daemon.connect(directory);
    } catch (Unreachable fault) {
      failed(fault.reason, fault.getMessage());
      return;
    } catch (RuntimeException fault) {
      failed(Reason.NO_DAEMON, "cannot look for the daemon: " + fault);
      return;
    }
    String why;
    try (connected;
        Selector own = Selector.open()) {
      connected.configureBlocking(false);
      synchronized (lock) {
        selector = own;
        key = connected.register(own, SelectionKey.OP_READ);
        byte[] hello = Wire.hello((int) ProcessHandle.current().pid());
        outgoing.addFirst(new Outgoing(ByteBuffer.wrap(hello), null));
        waiting += hello.length;
        channel = connected;
        flush();
      }
      why = read(connected, own);
    } catch (IOException fault) {
      why = fault instanceof ProtocolException ? fault.getMessage() : "the connection to the daemon ended: " + fault.getMessage();
    } catch (RuntimeException fault) {
      why = "the client failed: " + fault;
    }
    ended(why);
  }

  /** Reads until the end; gives the reason of it. */
  private String read(SocketChannel channel, Selector selector) throws IOException {
    ByteBuffer in =
        ByteBuffer.allocateDirect(Wire.HEADER + Wire.PAYLOAD_MAX).order(ByteOrder.LITTLE_ENDIAN);
    for (; ; ) {
      long wait;
      synchronized (lock) {
        if (closedBecause != null) {
          return closedBecause;
        }
        wait = untilGivenUp();
        if (wait < 0) {
          return "the daemon has not answered, long after a deadline";
        }
      }
      selector.select(wait);
      selector.selectedKeys().clear();
      synchronized (lock) {
        if (!outgoing.isEmpty()) {
          flush();
        }
      }
      // Until the socket has no more: sets that end together come together.
      int got;
      do {
        got = channel.read(in);
        take(in);
      } while (got > 0 && in.position() > 0);
      if (got < 0) {
        return "the daemon ended";
      }
    }
  }

  /** Milliseconds until the first set is given up; 0: none will be; below 0: one is. */
  private long untilGivenUp() {
    long least = Long.MAX_VALUE;
    long now = System.nanoTime();
    for (OpenSet set : open.values()) {
      if (set.giveUpNanos != 0) {
        least = Math.min(least, set.giveUpNanos - now);
      }
    }
    if (least == Long.MAX_VALUE) {
      return 0;
    }
    return least <= 0 ? -1 : least / 1_000_000 + 1;
  }

  private void take(ByteBuffer in) throws IOException {
    in.flip();
    while (in.remaining() >= Wire.HEADER) {
      int length = Wire.length(in);
      if (in.remaining() < Wire.HEADER + length) {
        break;
      }
      int kind = Wire.kind(in);
      int start = in.position() + Wire.HEADER;
      frame(kind, new Wire.In(in.slice(start, length)));
      in.position(start + length);
    }
    in.compact();
  }

  private void frame(int kind, Wire.In in) throws IOException {
    switch (kind) {
      case Wire.SET_BEGUN -> {
        OpenSet set = set(in);
        set.begun(in.u64(), in.strings());
        in.end();
      }
      case Wire.HOOK_STARTED -> {
        OpenSet set = set(in);
        int hook = in.u32();
        in.end();
        set.name(hook);
        set.started(hook);
      }
      case Wire.HOOK_OUTPUT -> {
        OpenSet set = set(in);
        in.u32();
        int part = in.u8();
        if (part > 3) {
          throw new ProtocolException("part " + part);
        }
        set.wrote(part, in.rest());
      }
      case Wire.HOOK_ENDED -> {
        OpenSet set = set(in);
        byte[] name = set.name(in.u32());
        set.hookEnded(Wire.hookEnded(in, name, set));
      }
      case Wire.SET_ENDED -> {
        OpenSet set = set(in);
        HooksResult result = Wire.setEnded(in, set);
        forget(set);
        set.end(result);
      }
      case Wire.FAILURE -> {
        OpenSet set = set(in);
        int number = in.u8();
        String text = Wire.text(in.rest());
        forget(set);
        refused(set, number, text);
      }
      default -> throw new ProtocolException("a frame of kind " + kind);
    }
  }

  private OpenSet set(Wire.In in) throws IOException {
    long number = in.u64();
    OpenSet set;
    synchronized (lock) {
      set = open.get(number);
    }
    if (set == null) {
      throw new ProtocolException("set " + number);
    }
    return set;
  }

  private void forget(OpenSet set) {
    synchronized (lock) {
      open.remove(set.number);
    }
  }

  /** The daemon has not begun it, and will not. One that stops may have a successor. */
  private void refused(OpenSet set, int number, String text) {
    if (number == Wire.STOPPING) {
      client.leave(this);
      if (again(set)) {
        return;
      }
    }
    set.end(HooksResult.NotRun.because(Wire.reason(number), text));
  }

  /** Gives a set that was not begun to the next connection, once. */
  private boolean again(OpenSet set) {
    synchronized (lock) {
      if (set.triedAgain || set.cancelled || set.future.isDone()) {
        return false;
      }
      set.triedAgain = true;
      set.given = false;
    }
    byte[] frame = Wire.runSet(set.number, set.call);
    set.frame = frame;
    client.give(set);
    return true;
  }

  /** No daemon was reached: nothing of these sets was given. */
  private void failed(Reason reason, String why) {
    for (OpenSet set : end()) {
      set.end(HooksResult.NotRun.because(reason, why));
    }
  }

  private void ended(String why) {
    for (OpenSet set : end()) {
      boolean given;
      synchronized (lock) {
        given = set.given;
      }
      if (given) {
        set.end(set.lost(why));
      } else if (!again(set)) {
        set.end(HooksResult.NotRun.because(Reason.NO_DAEMON, why));
      }
    }
  }

  private List<OpenSet> end() {
    client.leave(this);
    synchronized (lock) {
      dead = true;
      List<OpenSet> rest = new ArrayList<>(open.values());
      rest.sort((one, other) -> Long.compare(one.number, other.number));
      open.clear();
      outgoing.clear();
      return rest;
    }
  }
}
