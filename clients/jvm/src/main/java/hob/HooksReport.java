package hob;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * What is known of one run of a hooks directory.
 *
 * @param call the number of its receipt; 0 if it was not begun
 * @param hooks the hooks that ended, in order
 * @param notRun the names of those that were not begun, in order
 * @param wall how long it took; zero if nobody could tell
 * @param message one line for people, where no hook says it all
 */
public record HooksReport(
    long call, List<HookRecord> hooks, List<String> notRun, Duration wall, Optional<String> message) {
  static HooksReport none(String message) {
    return new HooksReport(0, List.of(), List.of(), Duration.ZERO, Optional.of(message));
  }
}
