package hob;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** The client's frames against the bytes that every implementation reads. */
class WireTest {
  private static byte[] golden(String name) throws IOException {
    return Files.readAllBytes(Path.of("../../runtimes/golden", name + ".bin"));
  }

  private static Wire.In payload(byte[] frame, int kind) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
    assertEquals(kind, Wire.kind(bytes));
    assertEquals(frame.length - Wire.HEADER, Wire.length(bytes));
    return new Wire.In(bytes.slice(Wire.HEADER, frame.length - Wire.HEADER));
  }

  private static HooksCall call() {
    Map<String, String> env = new LinkedHashMap<>();
    env.put("PATH", "/usr/bin:/bin");
    env.put("EMPTY", "");
    return HooksCall.of(Path.of("/etc/hooks.d"))
        .target("host-1")
        .param("UUID", "1-2")
        .env(env)
        .cwd(Path.of("/srv"))
        .umask(027)
        .spawn()
        .killAfter(Duration.ofMinutes(30))
        .warnAfter(Duration.ofSeconds(5))
        .deadline(Duration.ofMinutes(1))
        .ignoreSuffixes(List.of(".bak", "~"));
  }

  private static OpenSet open() {
    OpenSet set = new OpenSet(HobClient.at(Path.of("/nonexistent")), 21, call());
    set.begun(700, List.of(bytes("10-a"), bytes("20"), bytes("30-c")));
    return set;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void aSetIsWrittenAsTheOthersReadIt() throws IOException {
    // The golden one has a parameter that is not UTF-8 besides, which text cannot say.
    byte[] golden = golden("run-set");
    String text = new String(golden, StandardCharsets.ISO_8859_1);
    String mine = new String(Wire.runSet(21, call()), StandardCharsets.ISO_8859_1);
    String ours = "\1\0\0\0\11\0\0\0UUID=1-2\0";
    String theirs = "\2\0\0\0\17\0\0\0UUID=1-2\0ODD=\u00ff\0";
    assertEquals(text.substring(Wire.HEADER).replace(theirs, ours), mine.substring(Wire.HEADER));
    assertEquals(Wire.RUN_SET, mine.charAt(4));
    assertArrayEquals(new byte[] {'h', 'o', 'b', 1}, java.util.Arrays.copyOf(golden, 4));
  }

  @Test
  void aHelloAndACancellationAreTheGoldenOnesWithOtherNumbers() throws IOException {
    byte[] hello = golden("hello");
    java.util.Arrays.fill(hello, Wire.HEADER, Wire.HEADER + 16, (byte) 0);
    assertArrayEquals(hello, Wire.hello(42));
    assertArrayEquals(golden("cancel"), Wire.cancel(11));
  }

  @Test
  void theEndOfAHookHasEveryFieldOfTheGoldenFrame() throws IOException {
    OpenSet set = open();
    Wire.In output = payload(golden("hook-output"), Wire.HOOK_OUTPUT);
    assertEquals(21, output.u64());
    assertEquals(1, output.u32());
    assertEquals(3, output.u8());
    byte[] tail = output.rest();
    assertArrayEquals(new byte[] {'c', 'a', 'f', (byte) 0xc3, (byte) 0xa9, (byte) 0xff, '\n'}, tail);
    set.wrote(0, bytes("head"));
    set.wrote(1, bytes("ta"));
    set.wrote(1, bytes("il\n"));

    Wire.In in = payload(golden("hook-ended"), Wire.HOOK_ENDED);
    assertEquals(21, in.u64());
    HookRecord hook = Wire.hookEnded(in, set.name(in.u32()), set);
    assertEquals("20", hook.name());
    assertEquals(Outcome.ERROR, hook.outcome());
    assertEquals(OptionalInt.empty(), hook.code());
    assertEquals(OptionalInt.of(11), hook.signal());
    assertEquals(HookRecord.Way.PRESTARTED, hook.way());
    assertEquals(List.of(true, false, true), List.of(hook.slow(), hook.changed(), hook.leftBehind()));
    assertEquals(List.of(45, 2), List.of(hook.pid(), hook.retries()));
    assertEquals(Duration.ofNanos(1_100_000), hook.at());
    assertEquals(Duration.ofNanos(950_000), hook.wall());
    assertEquals(
        Optional.of(new HookRecord.Usage(Duration.ofNanos(1_500_000), Duration.ofNanos(250_000), 9216)),
        hook.usage());
    assertEquals(Optional.of("first"), hook.reason());
    assertEquals(Optional.of("busy"), hook.trouble());
    assertEquals(Optional.of("a signal ended it: SIGSEGV"), hook.message());
    assertEquals(List.of(9L, 2L), List.of(hook.stdout().total(), hook.stdout().cut()));
    assertEquals(
        List.of(new Capture.Chunk(100, 4), new Capture.Chunk(-1, 5)), hook.stdout().chunks());
    assertEquals("head\n[hob: 2 of 9 bytes left out]\ntail\n", hook.stdout().text());
    assertEquals("", hook.stderr().text());
  }

  @Test
  void everyOutcomeAndEveryWayHasItsNumber() {
    assertEquals(Wire.OUTCOMES, Outcome.values().length);
    assertEquals(Wire.WAYS, HookRecord.Way.values().length);
  }

  @Test
  void beginAndEndOfASetAreRead() throws IOException {
    Wire.In begun = payload(golden("set-begun"), Wire.SET_BEGUN);
    assertEquals(21, begun.u64());
    assertEquals(700, begun.u64());
    List<byte[]> names = begun.strings();
    begun.end();
    assertArrayEquals(new byte[] {'2', '0', ' ', (byte) 0xff, '\n'}, names.get(1));
    Wire.In started = payload(golden("hook-started"), Wire.HOOK_STARTED);
    assertEquals(21, started.u64());
    assertEquals(1, started.u32());
    started.end();
    Wire.In ended = payload(golden("set-ended"), Wire.SET_ENDED);
    assertEquals(21, ended.u64());
    HooksResult result = Wire.setEnded(ended, open());
    HooksReport report = ((HooksResult.Error) result).report();
    assertEquals(List.of("30-c"), report.notRun());
    assertEquals(Duration.ofNanos(2_050_000), report.wall());
    assertEquals(Optional.of("stopped"), report.message());
    assertEquals(700, report.call());
  }

  @Test
  void noPrefixOfAFrameIsTakenForOne() throws IOException {
    for (String name : List.of("hook-ended", "set-ended", "set-begun")) {
      byte[] whole = golden(name);
      for (int cut = Wire.HEADER + 8; cut < whole.length; cut++) {
        byte[] some = java.util.Arrays.copyOfRange(whole, Wire.HEADER + 8, cut);
        Wire.In in = new Wire.In(ByteBuffer.wrap(some));
        assertThrows(
            ProtocolException.class,
            () -> {
              switch (name) {
                case "hook-ended" -> {
                  in.u32();
                  Wire.hookEnded(in, bytes("x"), open());
                }
                case "set-ended" -> Wire.setEnded(in, open());
                default -> {
                  in.u64();
                  in.strings();
                }
              }
            },
            name + " cut at " + cut);
      }
    }
  }

  @Test
  void brokenHeadersAreNotRead() {
    byte[] good = Wire.cancel(1);
    for (int[] change : new int[][] {{0, 'H'}, {3, 9}, {6, 1}, {7, 1}, {11, 1}, {11, 0xff}}) {
      ByteBuffer bytes = ByteBuffer.wrap(good.clone()).order(ByteOrder.LITTLE_ENDIAN);
      bytes.put(change[0], (byte) change[1]);
      assertThrows(ProtocolException.class, () -> Wire.length(bytes), "byte " + change[0]);
    }
  }

  @Test
  void whatDoesNotFitIntoAFrameIsNone() {
    String much = "x".repeat(1 << 20);
    assertEquals(null, Wire.runSet(1, call().param("MUCH", much)));
    List<HooksResult> results = new ArrayList<>();
    try (HobClient client = HobClient.at(Path.of("/nonexistent"))) {
      results.add(call().param("MUCH", much).via(client).runAsync().join());
    }
    HooksResult.NotRun refused = (HooksResult.NotRun) results.get(0);
    assertEquals(HooksResult.NotRun.Reason.TOO_LARGE, refused.reason());
  }

  @Test
  void variablesThatNoEnvironmentCanHoldAreMistakesOfTheCaller() {
    for (String name : List.of("", "A=B", "A\0B")) {
      assertThrows(IllegalArgumentException.class, () -> call().param(name, ""), name);
      assertThrows(IllegalArgumentException.class, () -> call().env(Map.of(name, "")), name);
    }
    assertThrows(IllegalArgumentException.class, () -> call().params(Map.of("A", "\0")));
    assertThrows(IllegalArgumentException.class, () -> call().deadline(Duration.ZERO));
    assertThrows(IllegalArgumentException.class, () -> call().umask(01000));
  }
}
