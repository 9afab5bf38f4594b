package hob;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs hooks directories through hob's daemon.
 *
 * <pre>{@code
 * HooksResult result =
 *     HobClient.hooks(Path.of("/etc/deploy.d")).param("HOST", "web-1").run();
 * if (result instanceof HooksResult.Error error) {
 *   error.hooks().forEach(hook -> System.err.println(hook + hook.stderr().text()));
 * }
 * }</pre>
 *
 * <p>All of a process share one client and one connection, unless {@link HooksCall#via} says
 * otherwise. Everything here may be used by any number of threads. One daemon thread brings the
 * results of all sets that are open; callers write for themselves and never wait for each other.
 *
 * <p>Where no daemon listens, one is started ({@code hob start}: the file that {@code HOB_BIN}
 * names, or {@code hob} on {@code PATH}). A connection that has ended is made anew, once for each
 * set, and only before the set was given to the daemon. After that nothing is run again by itself.
 */
public final class HobClient implements AutoCloseable {
  private final Path directory;
  private final AtomicLong next = new AtomicLong(1);
  private Connection connection;
  private boolean closed;

  private HobClient(Path directory) {
    this.directory = directory;
  }

  /** Made when it is first used. */
  private static final class Shared {
    private static final HobClient CLIENT = new HobClient(null);
  }

  /**
   * The client that all of this process share: for the daemon of {@code HOB_DIR}, or the user's
   * own. It is never closed.
   *
   * @return the client
   */
  public static HobClient shared() {
    return Shared.CLIENT;
  }

  /**
   * A client of its own, with a connection of its own, for the daemon whose socket lies in this
   * directory.
   *
   * @param directory what {@code HOB_DIR} would say
   * @return the client
   */
  public static HobClient at(Path directory) {
    return new HobClient(directory.toAbsolutePath());
  }

  /**
   * A hooks directory to be run. It is listed each time that it runs; one that is not there is an
   * empty set.
   *
   * @param directory the directory
   * @return what to run, which has still to be run
   */
  public static HooksCall hooks(Path directory) {
    return HooksCall.of(directory);
  }

  /** Gives a set to the daemon, now or as soon as there is a connection. */
  OpenSet give(HooksCall call) {
    OpenSet set = new OpenSet(this, next.getAndIncrement(), call);
    byte[] frame = Wire.runSet(set.number, call);
    if (frame == null) {
      set.end(
          HooksResult.NotRun.because(
              HooksResult.NotRun.Reason.TOO_LARGE,
              "environment and parameters are larger than a frame of 1 MiB: pass less of them"));
      return set;
    }
    set.frame = frame;
    give(set);
    return set;
  }

  void give(OpenSet set) {
    HooksResult.NotRun refused = null;
    synchronized (this) {
      if (closed) {
        refused = HooksResult.NotRun.because(HooksResult.NotRun.Reason.CLOSED, "the client was closed");
      } else {
        Connection.Given given =
            connection == null ? Connection.Given.ENDED : connection.give(set);
        if (given == Connection.Given.ENDED) {
          connection = new Connection(this, directory);
          given = connection.give(set);
          connection.start();
        }
        if (given == Connection.Given.FULL) {
          refused =
              HooksResult.NotRun.because(
                  HooksResult.NotRun.Reason.BUSY, "too many sets wait for the daemon to read them");
        }
      }
    }
    // Whatever hangs on the result runs outside the lock.
    if (refused != null) {
      set.end(refused);
    }
  }

  /** Nothing more goes over this connection; what is open on it stays. */
  synchronized void leave(Connection old) {
    if (connection == old) {
      connection = null;
    }
  }

  /** Ends the connection, and with it the sets that are open: their results are {@code Lost}. */
  @Override
  public void close() {
    if (this == Shared.CLIENT) {
      throw new IllegalStateException("the shared client is never closed");
    }
    Connection old;
    synchronized (this) {
      closed = true;
      old = connection;
      connection = null;
    }
    if (old != null) {
      old.close("the client was closed");
    }
  }
}
