package hob;

import static hob.HooksResult.NotRun.Reason;

/** No daemon can be talked to. */
final class Unreachable extends Exception {
  private static final long serialVersionUID = 1;
  final Reason reason;

  Unreachable(Reason reason, String message) {
    super(message);
    this.reason = reason;
  }
}
