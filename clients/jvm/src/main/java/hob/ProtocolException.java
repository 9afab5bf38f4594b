package hob;

import java.io.IOException;

/** The daemon sent what is no frame of hob's. The connection ends. */
final class ProtocolException extends IOException {
  private static final long serialVersionUID = 1;

  ProtocolException(String what) {
    super("the daemon sent what hob's wire does not have: " + what);
  }
}
