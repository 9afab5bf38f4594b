package hob;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * One hook's run.
 *
 * @param nameBytes the file's name in its directory, as the system has it
 * @param outcome what became of it
 * @param code the exit code, if it exited
 * @param signal the signal that ended it, if one did
 * @param pid its process id; 0 if it was never started
 * @param at when its turn came, counted from the set's begin
 * @param wall from then to its end
 * @param way how it was started
 * @param reason the stable code of why it was not started in a faster way
 * @param trouble the stable code of why it could not be started
 * @param message one line for people
 * @param usage what it used, if anybody could tell
 * @param slow whether it took longer than was asked to be warned of
 * @param changed whether its file was another than the one listed when it ran
 * @param leftBehind whether something that it left behind still held its output open
 * @param retries how often its start was tried again because its file was open for writing
 * @param stdout what it wrote to stdout
 * @param stderr what it wrote to stderr
 */
public record HookRecord(
    byte[] nameBytes,
    Outcome outcome,
    OptionalInt code,
    OptionalInt signal,
    int pid,
    Duration at,
    Duration wall,
    Way way,
    Optional<String> reason,
    Optional<String> trouble,
    Optional<String> message,
    Optional<Usage> usage,
    boolean slow,
    boolean changed,
    boolean leftBehind,
    int retries,
    Capture stdout,
    Capture stderr) {

  /** How a hook was started. */
  public enum Way {
    /** As a new process when its turn came. */
    SPAWNED,
    /** As a new process before its turn, held before it could look at anything. */
    PRESTARTED,
    /** In a fork of a warm interpreter. */
    WARM,
    /** As a fork of its shell, which was held before its first instruction. */
    FORKED
  }

  /**
   * What a hook used.
   *
   * @param user processor time in the program
   * @param system processor time in the kernel
   * @param peakKib the most memory, in KiB
   */
  public record Usage(Duration user, Duration system, long peakKib) {}

  /**
   * The file's name as text; what is not UTF-8 is replaced.
   *
   * @return the name
   */
  public String name() {
    return new String(nameBytes, StandardCharsets.UTF_8);
  }

  @Override
  public String toString() {
    return "HookRecord[" + name() + " " + outcome + code.stream().mapToObj(c -> " " + c).findAny().orElse("")
        + message.map(line -> " (" + line + ")").orElse("") + "]";
  }
}
