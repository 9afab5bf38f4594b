package hob;

/** What became of one hook. */
public enum Outcome {
  /** It exited with 0. */
  OK,
  /** It exited with 32 to 63: the set went on. */
  WARNING,
  /** It exited with 100: the set stopped; its output is a message for people, not a fault. */
  INTERRUPT,
  /** It exited with any other code, or a signal ended it. */
  ERROR,
  /** It ran out of time and was ended. */
  TIMEOUT,
  /** It could not be started, or nothing is known of its end. */
  SYSTEM_ERROR,
  /** It was ended because its set was cancelled. */
  CANCELLED;

  private static final Outcome[] ALL = values();

  /** The outcome with this number on the wire. */
  static Outcome of(int number) throws ProtocolException {
    if (number < 0 || number >= ALL.length) {
      throw new ProtocolException("outcome " + number);
    }
    return ALL[number];
  }
}
