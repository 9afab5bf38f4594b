import hob.HobClient;
import hob.HookRecord;
import hob.HooksCall;
import hob.HooksReport;
import hob.HooksResult;
import hob.HooksRun;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A JVM that does what its standard input says, one command a line, and tells what comes of it:
 *
 * <pre>
 * run NAME DIR [OPTION=VALUE]...   begins a set; later "NAME: KIND ..." is said
 * block NAME DIR [OPTION=VALUE]... the same, by the blocking call of a thread of its own
 * cancel NAME                      cancels it
 * drop NAME                        cancels its future
 * interrupt NAME                   interrupts the thread of a "block"
 * </pre>
 */
final class Caller {
  private static final Map<String, HooksRun> RUNS = new ConcurrentHashMap<>();
  private static final Map<String, Thread> THREADS = new ConcurrentHashMap<>();

  public static void main(String[] arguments) throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "run" -> begin(words[1], call(words));
        case "block" -> block(words[1], call(words));
        case "cancel" -> RUNS.get(words[1]).cancel();
        case "drop" -> RUNS.get(words[1]).result().cancel(true);
        case "interrupt" -> THREADS.get(words[1]).interrupt();
        default -> throw new IllegalArgumentException(line);
      }
    }
  }

  private static HooksCall call(String[] words) {
    HooksCall call = HobClient.hooks(Path.of(words[2]));
    for (String word : List.of(words).subList(3, words.length)) {
      String name = word.substring(0, word.indexOf('='));
      String value = word.substring(name.length() + 1);
      call =
          switch (name) {
            case "deadline" -> call.deadline(Duration.ofMillis(Long.parseLong(value)));
            case "kill" -> call.killAfter(Duration.ofMillis(Long.parseLong(value)));
            case "cwd" -> call.cwd(Path.of(value));
            case "umask" -> call.umask(Integer.parseInt(value, 8));
            case "env" -> call.env(Map.of("PATH", "/usr/bin:/bin", "OWN", value));
            case "ignore" -> call.ignoreSuffixes(List.of(value.split(",")));
            case "spawn" -> call.spawn();
            default -> call.param(name, value);
          };
    }
    return call;
  }

  private static void begin(String name, HooksCall call) {
    HooksRun run = call.start();
    RUNS.put(name, run);
    run.result()
        .whenComplete((result, fault) -> say(name, fault == null ? tell(result) : fault.toString()));
  }

  private static void block(String name, HooksCall call) {
    Thread thread =
        new Thread(
            () -> {
              try {
                say(name, tell(call.run()));
              } catch (InterruptedException interrupted) {
                say(name, "interrupted");
              }
            });
    THREADS.put(name, thread);
    thread.start();
  }

  private static synchronized void say(String name, String what) {
    System.out.println(name + ": " + what);
  }

  /** {@code KIND ran=NAME/OUTCOME/OUT/ERR,... running=NAME notrun=NAME,... because=TEXT ways=WAY,...}. */
  private static String tell(HooksResult result) {
    HooksReport report = result.report();
    List<String> ran = report.hooks().stream().map(Caller::tell).toList();
    String kind = result.getClass().getSimpleName();
    String running = "-";
    if (result instanceof HooksResult.Lost lost) {
      running = lost.running().orElse(lost.listed() ? "-" : "?");
    }
    if (result instanceof HooksResult.NotRun refused) {
      kind = kind + "/" + refused.reason();
    }
    return kind
        + " ran=" + String.join(",", ran)
        + " running=" + running
        + " notrun=" + String.join(",", report.notRun())
        + " because=" + report.message().orElse("-")
        + " ways=" + String.join(",", report.hooks().stream().map(hook -> hook.way().name()).toList());
  }

  private static String tell(HookRecord hook) {
    String end =
        hook.code().isPresent()
            ? "exit" + hook.code().getAsInt()
            : hook.signal().isPresent() ? "signal" + hook.signal().getAsInt() : "-";
    return hook.name() + "/" + hook.outcome() + "/" + end + "/" + bytes(hook.stdout()) + "/" + bytes(hook.stderr());
  }

  private static String bytes(hob.Capture capture) {
    if (capture.total() > 64) {
      return capture.head().length + "+" + capture.cut() + "+" + capture.tail().length;
    }
    return HexFormat.of().formatHex(capture.head());
  }
}
