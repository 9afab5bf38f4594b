package hob;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hob.HooksResult.NotRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the client does with what a daemon says, and with what it does not say. */
@Timeout(60)
class ClientTest {
  private FakeDaemon daemon;
  private HobClient client;

  @BeforeEach
  void begin() throws Exception {
    daemon = new FakeDaemon();
    client = HobClient.at(daemon.directory);
  }

  @AfterEach
  void end() throws Exception {
    client.close();
    daemon.close();
  }

  private HooksCall call() {
    return HobClient.hooks(Path.of("/etc/hooks.d")).env(Map.of("A", "b")).via(client);
  }

  @Test
  void manySetsAreOpenOnOneConnectionAndEndInAnyOrder() throws Exception {
    CompletableFuture<HooksResult> one = call().runAsync();
    CompletableFuture<HooksResult> other = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long first = caller.next().number();
      long second = caller.next().number();
      caller.begun(second, "a");
      caller.hookEnded(second, 0);
      caller.setEnded(second, 1);
      assertInstanceOf(HooksResult.Warning.class, other.get());
      assertFalse(one.isDone());
      caller.begun(first);
      caller.setEnded(first, 0);
      HooksResult.Ok ok = assertInstanceOf(HooksResult.Ok.class, one.get());
      assertEquals(7, ok.report().call());
    }
  }

  @Test
  void whatRanAndWhatDidNotIsKnownAfterTheDaemonsEnd() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long set = caller.next().number();
      caller.begun(set, "a", "b", "c", "d");
      caller.started(set, 0);
      caller.hookEnded(set, 0);
      caller.started(set, 1);
    }
    HooksResult.Lost lost = assertInstanceOf(HooksResult.Lost.class, result.get());
    assertEquals(List.of("a"), lost.hooks().stream().map(HookRecord::name).toList());
    assertEquals(Optional.of("b"), lost.running());
    assertEquals(List.of("c", "d"), lost.report().notRun());
    assertTrue(lost.listed());
  }

  @Test
  void aSetThatWasGivenIsNeverGivenAgain() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      assertEquals(Wire.RUN_SET, caller.next().kind());
    }
    HooksResult.Lost lost = assertInstanceOf(HooksResult.Lost.class, result.get());
    assertFalse(lost.listed());
    // The next one comes on a connection of its own, and first on it.
    CompletableFuture<HooksResult> next = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long set = caller.next().number();
      assertEquals(2, set);
      caller.setEnded(set, 0);
      next.get();
    }
  }

  @Test
  void aDaemonThatStopsIsFollowedToItsSuccessorOnce() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller old = daemon.accept()) {
      old.failure(old.next().number(), 10, "the daemon stops");
      try (FakeDaemon.Caller successor = daemon.accept()) {
        successor.failure(successor.next().number(), 10, "the daemon stops");
        NotRun refused = assertInstanceOf(NotRun.class, result.get());
        assertEquals(NotRun.Reason.STOPPING, refused.reason());
        assertEquals(Optional.of("the daemon stops"), refused.report().message());
      }
    }
  }

  @Test
  void refusalsSayWhy() throws Exception {
    List<CompletableFuture<HooksResult>> results = new ArrayList<>();
    int[] reasons = {5, 12, 14};
    for (int at = 0; at < reasons.length; at++) {
      results.add(call().runAsync());
    }
    try (FakeDaemon.Caller caller = daemon.accept()) {
      for (int reason : reasons) {
        caller.failure(caller.next().number(), reason, "because");
      }
      List<NotRun.Reason> said = new ArrayList<>();
      for (CompletableFuture<HooksResult> result : results) {
        said.add(((NotRun) result.get()).reason());
      }
      assertEquals(List.of(NotRun.Reason.BUSY, NotRun.Reason.MALFORMED, NotRun.Reason.CONTEXT), said);
    }
  }

  @Test
  void cancellingTheFutureCancelsTheSet() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long set = caller.next().number();
      assertTrue(result.cancel(true));
      assertThrows(CancellationException.class, result::join);
      FakeDaemon.Frame cancel = caller.next();
      assertEquals(List.of((long) Wire.CANCEL, set), List.of((long) cancel.kind(), cancel.number()));
      caller.setEnded(set, 6);
    }
  }

  @Test
  void aHandleCancelsAndStillHears() throws Exception {
    HooksRun run = call().start();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long set = caller.next().number();
      caller.begun(set, "a");
      run.cancel();
      run.cancel();
      assertEquals(Wire.CANCEL, caller.next().kind());
      caller.hookEnded(set, 0);
      caller.setEnded(set, 6);
      HooksResult.Cancelled cancelled =
          assertInstanceOf(HooksResult.Cancelled.class, run.result().get());
      assertEquals(1, cancelled.hooks().size());
    }
  }

  @Test
  void aThreadThatIsInterruptedCancelsItsSetAndNobodyElses() throws Exception {
    CompletableFuture<HooksResult> other = call().runAsync();
    AtomicReference<Object> ended = new AtomicReference<>();
    CountDownLatch begun = new CountDownLatch(1);
    Thread waiting =
        new Thread(
            () -> {
              // Interrupted before it writes: a channel that blocks would be closed by that.
              Thread.currentThread().interrupt();
              begun.countDown();
              try {
                ended.set(call().run());
              } catch (InterruptedException interrupted) {
                ended.set(interrupted);
              }
            });
    try (FakeDaemon.Caller caller = daemon.accept()) {
      long first = caller.next().number();
      waiting.start();
      begun.await();
      long second = caller.next().number();
      FakeDaemon.Frame cancel = caller.next();
      assertEquals(second, cancel.number());
      waiting.join();
      assertInstanceOf(InterruptedException.class, ended.get());
      caller.setEnded(second, 6);
      caller.setEnded(first, 0);
      assertInstanceOf(HooksResult.Ok.class, other.get());
      assertInstanceOf(HooksResult.Ok.class, other.get());
    }
  }

  @Test
  void whatIsNoFrameEndsTheConnectionAndSaysSo() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      caller.next();
      caller.say("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes("UTF-8"));
      HooksResult.Lost lost = assertInstanceOf(HooksResult.Lost.class, result.get());
      assertTrue(lost.report().message().orElse("").contains("hob's wire"), lost.toString());
      assertNull(caller.next());
    }
  }

  @Test
  void theReadersThreadDoesNotWaitForItself() throws Exception {
    CompletableFuture<Throwable> refused =
        call()
            .runAsync()
            .handle(
                (result, fault) -> assertThrows(IllegalStateException.class, () -> call().run()));
    try (FakeDaemon.Caller caller = daemon.accept()) {
      caller.setEnded(caller.next().number(), 0);
      assertTrue(refused.get().getMessage().contains("runAsync"), refused.get().toString());
    }
  }

  @Test
  void aClosedClientLosesWhatIsOpenAndTakesNothing() throws Exception {
    CompletableFuture<HooksResult> result = call().runAsync();
    try (FakeDaemon.Caller caller = daemon.accept()) {
      caller.next();
      client.close();
      assertInstanceOf(HooksResult.Lost.class, result.get());
      assertNull(caller.next());
    }
    NotRun refused = (NotRun) call().run();
    assertEquals(NotRun.Reason.CLOSED, refused.reason());
  }

  @Test
  void aDirectoryThatOthersCanEnterIsNotUsed() throws Exception {
    Files.setPosixFilePermissions(daemon.directory, PosixFilePermissions.fromString("rwxr-x---"));
    NotRun refused = (NotRun) call().run();
    assertEquals(NotRun.Reason.UNSAFE, refused.reason());
    assertTrue(refused.report().message().orElse("").contains("others may enter"), refused.toString());
  }

  @Test
  void theSocketIsFoundWhereEveryProgramOfHobsFindsIt() throws Exception {
    assertEquals(Path.of("/x/y"), Daemon.location(Map.of("HOB_DIR", "/x/y", "XDG_RUNTIME_DIR", "/z")));
    String own = daemon.directory.toString();
    assertEquals(
        daemon.directory.resolve("hob"), Daemon.location(Map.of("HOB_DIR", "", "XDG_RUNTIME_DIR", own)));
    Path fallback = Daemon.location(Map.of());
    assertEquals(fallback, Daemon.location(Map.of("XDG_RUNTIME_DIR", "/nonexistent")));
    assertEquals(fallback, Daemon.location(Map.of("XDG_RUNTIME_DIR", "relative")));
  }

  @Test
  void pathsGoAsTheBytesThatTheSystemHas() {
    assertEquals("/a b/\u00e9", Wire.text(Wire.bytes(Path.of("/a b/\u00e9"))));
    assertEquals("/", Wire.text(Wire.bytes(Path.of("/"))));
  }
}
