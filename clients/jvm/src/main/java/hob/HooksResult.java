package hob;

import java.util.List;
import java.util.Optional;

/**
 * What became of a set: one run of a hooks directory. Closed, so that a {@code switch} or a
 * {@code match} over it is checked.
 */
public sealed interface HooksResult {
  /**
   * What is known of the run.
   *
   * @return the report
   */
  HooksReport report();

  /**
   * The hooks that ended, in order.
   *
   * @return their records
   */
  default List<HookRecord> hooks() {
    return report().hooks();
  }

  /**
   * Whether all hooks ran, and none of them failed: {@link Ok} or {@link Warning}.
   *
   * @return whether it is so
   */
  default boolean isOk() {
    return this instanceof Ok || this instanceof Warning;
  }

  /**
   * Every hook exited with 0, or there was none.
   *
   * @param report what is known of the run
   */
  record Ok(HooksReport report) implements HooksResult {}

  /**
   * Every hook ran, and one or more of them warned.
   *
   * @param report what is known of the run
   */
  record Warning(HooksReport report) implements HooksResult {}

  /**
   * A hook asked to stop here, with a message for people; not a fault.
   *
   * @param report what is known of the run
   */
  record Interrupt(HooksReport report) implements HooksResult {}

  /**
   * A hook failed; those after it were not begun.
   *
   * @param report what is known of the run
   */
  record Error(HooksReport report) implements HooksResult {}

  /**
   * A hook, or the whole set, ran out of time.
   *
   * @param report what is known of the run
   */
  record Timeout(HooksReport report) implements HooksResult {}

  /**
   * A hook could not be started, or the directory could not be read.
   *
   * @param report what is known of the run
   */
  record SystemError(HooksReport report) implements HooksResult {}

  /**
   * It was cancelled: by its caller, or because the daemon was stopped.
   *
   * @param report what is known of the run
   */
  record Cancelled(HooksReport report) implements HooksResult {}

  /**
   * The daemon ended while the set ran. Nothing is run again by itself. The hooks of the report
   * ran; {@code running} ran at least in part, or its end was not told; those that the report
   * says were not run had not executed an instruction.
   *
   * @param report what is known of the run
   * @param running the name of the hook whose turn had come
   * @param listed whether it is known which hooks there were; if not, the set may not even have
   *     begun, and nothing is known of any hook
   */
  record Lost(HooksReport report, Optional<String> running, boolean listed) implements HooksResult {}

  /**
   * Nothing of it ran, or will: it is safe to run it again, and the reason says whether that makes
   * sense.
   *
   * @param reason why
   * @param report a report without hooks; its message is one line for people
   */
  record NotRun(Reason reason, HooksReport report) implements HooksResult {
    /** Why a set was not begun. */
    public enum Reason {
      /** No daemon can be reached, and none could be started. */
      NO_DAEMON,
      /** The socket's directory, or the process at its other end, is not this user's. */
      UNSAFE,
      /** Too many sets wait. */
      BUSY,
      /** The daemon stops. */
      STOPPING,
      /** The hooks could not have this process's context; the message names what differs. */
      CONTEXT,
      /** Environment and parameters are larger than a frame of 1 MiB. */
      TOO_LARGE,
      /** The daemon does not take the request as it is. */
      MALFORMED,
      /** It was cancelled before it was given to the daemon. */
      CANCELLED,
      /** The client was closed. */
      CLOSED
    }

    static NotRun because(Reason reason, String message) {
      return new NotRun(reason, HooksReport.none(message));
    }
  }
}
