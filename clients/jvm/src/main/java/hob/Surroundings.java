package hob;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What of this process its hooks get. None of it can be changed from Java. */
final class Surroundings {
  static final List<byte[]> ENVIRONMENT = environment();
  static final Path WORKING_DIRECTORY = Path.of("").toAbsolutePath();
  static final int UMASK = Integer.parseInt(status("Umask").strip(), 8);

  /** The effective user. */
  static final int UID = Integer.parseInt(status("Uid").strip().split("\\s+")[1]);

  private Surroundings() {}

  /** From the kernel, byte for byte: {@code System.getenv} has lost what the locale cannot say. */
  private static List<byte[]> environment() {
    byte[] all;
    try {
      all = Files.readAllBytes(Path.of("/proc/self/environ"));
    } catch (IOException fault) {
      List<byte[]> own = new ArrayList<>();
      System.getenv().forEach((name, value) -> own.add(HooksCall.entry(name, value)));
      return own;
    }
    List<byte[]> own = new ArrayList<>();
    int start = 0;
    for (int at = 0; at < all.length; at++) {
      if (all[at] == 0) {
        own.add(java.util.Arrays.copyOfRange(all, start, at));
        start = at + 1;
      }
    }
    return own;
  }

  private static String status(String field) {
    try {
      // Names of processes need not be UTF-8.
      for (String line :
          Files.readAllLines(Path.of("/proc/self/status"), StandardCharsets.ISO_8859_1)) {
        if (line.startsWith(field + ":")) {
          return line.substring(field.length() + 1);
        }
      }
    } catch (IOException fault) {
      throw new UncheckedIOException("hob needs /proc of Linux", fault);
    }
    throw new IllegalStateException("/proc/self/status has no " + field);
  }
}
