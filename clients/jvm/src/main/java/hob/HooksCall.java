package hob;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

/**
 * What to run, and how: made by {@link HobClient#hooks(Path)}. Immutable: each method gives a
 * changed copy, so that one call may be kept, shared between threads and run any number of times.
 */
public final class HooksCall {
  final HobClient client;
  final Path directory;
  final Map<String, String> params;
  final List<byte[]> environment;
  final Path cwd;
  final int umask;
  final List<String> ignored;
  final Duration killAfter;
  final Duration warnAfter;
  final Duration deadline;
  final boolean spawn;
  final String target;
  final Consumer<HookRecord> listener;

  private HooksCall(Copy from) {
    client = from.client;
    directory = from.directory;
    params = from.params;
    environment = from.environment;
    cwd = from.cwd;
    umask = from.umask;
    ignored = from.ignored;
    killAfter = from.killAfter;
    warnAfter = from.warnAfter;
    deadline = from.deadline;
    spawn = from.spawn;
    target = from.target;
    listener = from.listener;
  }

  static HooksCall of(Path directory) {
    Copy copy = new Copy();
    copy.directory = directory.toAbsolutePath();
    return new HooksCall(copy);
  }

  /** The fields while they are being changed. */
  private static final class Copy {
    private HobClient client;
    private Path directory;
    private Map<String, String> params = Map.of();
    private List<byte[]> environment;
    private Path cwd;
    private int umask = -1;
    private List<String> ignored;
    private Duration killAfter = Duration.ZERO;
    private Duration warnAfter = Duration.ZERO;
    private Duration deadline = Duration.ZERO;
    private boolean spawn;
    private String target = "";
    private Consumer<HookRecord> listener;
  }

  private HooksCall with(Consumer<Copy> change) {
    Copy copy = new Copy();
    copy.client = client;
    copy.directory = directory;
    copy.params = params;
    copy.environment = environment;
    copy.cwd = cwd;
    copy.umask = umask;
    copy.ignored = ignored;
    copy.killAfter = killAfter;
    copy.warnAfter = warnAfter;
    copy.deadline = deadline;
    copy.spawn = spawn;
    copy.target = target;
    copy.listener = listener;
    change.accept(copy);
    return new HooksCall(copy);
  }

  /**
   * Through this client, instead of the one that all of this process share.
   *
   * @param client the client
   * @return a changed copy
   */
  public HooksCall via(HobClient client) {
    return with(copy -> copy.client = Objects.requireNonNull(client));
  }

  /**
   * The parameters of the set: variables over the environment. Text goes as UTF-8.
   *
   * @param params names and values
   * @return a changed copy
   */
  public HooksCall params(Map<String, String> params) {
    Map<String, String> own = new LinkedHashMap<>(params);
    own.forEach(HooksCall::check);
    return with(copy -> copy.params = own);
  }

  /**
   * One more parameter.
   *
   * @param name its name
   * @param value its value
   * @return a changed copy
   */
  public HooksCall param(String name, String value) {
    check(name, value);
    Map<String, String> own = new LinkedHashMap<>(params);
    own.put(name, value);
    return with(copy -> copy.params = own);
  }

  /**
   * The whole environment below the parameters. Without this, it is this process's own, byte for
   * byte.
   *
   * @param environment names and values
   * @return a changed copy
   */
  public HooksCall env(Map<String, String> environment) {
    List<byte[]> own = new ArrayList<>(environment.size());
    environment.forEach(
        (name, value) -> {
          check(name, value);
          own.add(entry(name, value));
        });
    return with(copy -> copy.environment = own);
  }

  /**
   * The working directory of the hooks; without this, that of this process.
   *
   * @param directory the directory
   * @return a changed copy
   */
  public HooksCall cwd(Path directory) {
    Path absolute = directory.toAbsolutePath();
    return with(copy -> copy.cwd = absolute);
  }

  /**
   * The file mode creation mask of the hooks; without this, that of this process.
   *
   * @param mask 0 to 0777
   * @return a changed copy
   */
  public HooksCall umask(int mask) {
    if (mask < 0 || mask > 0777) {
      throw new IllegalArgumentException("no umask: " + mask);
    }
    return with(copy -> copy.umask = mask);
  }

  /**
   * Suffixes of names that do not run, instead of the usual ones.
   *
   * @param suffixes the suffixes
   * @return a changed copy
   */
  public HooksCall ignoreSuffixes(List<String> suffixes) {
    List<String> own = List.copyOf(suffixes);
    return with(copy -> copy.ignored = own);
  }

  /**
   * A hook that takes longer is ended: its process group gets SIGTERM and, after a grace, SIGKILL.
   *
   * @param time how long one hook may take
   * @return a changed copy
   */
  public HooksCall killAfter(Duration time) {
    return with(copy -> copy.killAfter = positive(time));
  }

  /**
   * A hook that takes longer is marked as slow.
   *
   * @param time how long a hook may take unmarked
   * @return a changed copy
   */
  public HooksCall warnAfter(Duration time) {
    return with(copy -> copy.warnAfter = positive(time));
  }

  /**
   * How long the whole set may take, the wait for its turn with it. What runs then is ended, and
   * the result is {@link HooksResult.Timeout}.
   *
   * @param time how long
   * @return a changed copy
   */
  public HooksCall deadline(Duration time) {
    return with(copy -> copy.deadline = positive(time));
  }

  /**
   * Every hook as a new process when its turn comes, instead of the fastest way that is exact.
   *
   * @return a changed copy
   */
  public HooksCall spawn() {
    return with(copy -> copy.spawn = true);
  }

  /**
   * For whom it runs, for receipts.
   *
   * @param target a name for people
   * @return a changed copy
   */
  public HooksCall target(String target) {
    return with(copy -> copy.target = Objects.requireNonNull(target));
  }

  /**
   * Told of each hook when it has ended, on the client's own thread: it must not block.
   *
   * @param listener what is told
   * @return a changed copy
   */
  public HooksCall onHook(Consumer<HookRecord> listener) {
    return with(copy -> copy.listener = listener);
  }

  /**
   * Runs the directory, and gives the result to come. Never blocks, and never completes
   * exceptionally but by its own cancellation, which cancels the set.
   *
   * <p>The future is completed on the client's own thread: what is put behind it must not block
   * ({@code thenApplyAsync} and its like move elsewhere).
   *
   * @return the result to come
   */
  public CompletableFuture<HooksResult> runAsync() {
    return start().result();
  }

  /**
   * The same, with a handle that can cancel the set and still hear what became of it.
   *
   * @return the handle
   */
  public HooksRun start() {
    HobClient by = client == null ? HobClient.shared() : client;
    return new HooksRun(by.give(this));
  }

  /**
   * Runs the directory and waits for the result.
   *
   * @return the result
   * @throws InterruptedException if this thread is interrupted; the set is cancelled then
   */
  public HooksResult run() throws InterruptedException {
    if (Connection.isReader(Thread.currentThread())) {
      throw new IllegalStateException(
          "run() on the thread that brings the results would wait for itself: use runAsync()");
    }
    HooksRun run = start();
    try {
      return run.result().get();
    } catch (InterruptedException interrupted) {
      run.cancel();
      throw interrupted;
    } catch (ExecutionException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  static byte[] entry(String name, String value) {
    return (name + '=' + value).getBytes(StandardCharsets.UTF_8);
  }

  private static void check(String name, String value) {
    if (name.isEmpty() || name.indexOf('=') >= 0 || name.indexOf(0) >= 0) {
      throw new IllegalArgumentException("no name of a variable: \"" + name + "\"");
    }
    if (value.indexOf(0) >= 0) {
      throw new IllegalArgumentException("the value of " + name + " holds a NUL");
    }
  }

  private static Duration positive(Duration time) {
    if (time.isNegative() || time.isZero()) {
      throw new IllegalArgumentException("no time: " + time);
    }
    return time;
  }
}
