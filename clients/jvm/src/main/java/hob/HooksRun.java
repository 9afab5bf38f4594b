package hob;

import java.util.concurrent.CompletableFuture;

/** A set that was begun: its result to come, and the means to cancel it and still hear of it. */
public final class HooksRun {
  private final OpenSet set;

  HooksRun(OpenSet set) {
    this.set = set;
  }

  /**
   * The result. Cancelling this future cancels the set, and completes the future at once; to hear
   * what became of the set, use {@link #cancel()}.
   *
   * @return the future
   */
  public CompletableFuture<HooksResult> result() {
    return set.future;
  }

  /**
   * Cancels the set: its hook gets SIGTERM and, after a grace, SIGKILL, with its process group. The
   * result comes when that is done, with the hooks that ran. A set that has ended is left alone.
   */
  public void cancel() {
    set.cancel();
  }
}
