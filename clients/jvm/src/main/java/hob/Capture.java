package hob;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * What a hook wrote to one of its two streams: all of it, or its beginning and its end.
 *
 * @param head the bytes, or those before the cut
 * @param tail the bytes after the cut; empty if nothing was cut
 * @param total how many bytes the hook wrote
 * @param cut how many of them, between {@code head} and {@code tail}, were left out
 * @param chunks when which bytes came, in order; both streams of a hook use one clock
 */
public record Capture(byte[] head, byte[] tail, long total, long cut, List<Chunk> chunks) {
  /** Nothing was written. */
  public static final Capture EMPTY = new Capture(new byte[0], new byte[0], 0, 0, List.of());

  /**
   * Bytes that came together.
   *
   * @param atNanos when, in nanoseconds since the hook's turn came
   * @param bytes how many
   */
  public record Chunk(long atNanos, long bytes) {}

  /**
   * All bytes that were kept; a line in the middle says so if some were not.
   *
   * @return the bytes
   */
  public byte[] bytes() {
    if (cut == 0) {
      return head.clone();
    }
    ByteArrayOutputStream all = new ByteArrayOutputStream(head.length + tail.length + 64);
    all.writeBytes(head);
    if (head.length > 0 && head[head.length - 1] != '\n') {
      all.write('\n');
    }
    String line = "[hob: " + cut + " of " + total + " bytes left out]\n";
    all.writeBytes(line.getBytes(StandardCharsets.US_ASCII));
    all.writeBytes(tail);
    return all.toByteArray();
  }

  /**
   * The same as text; what is not UTF-8 is replaced.
   *
   * @return the text
   */
  public String text() {
    return new String(bytes(), StandardCharsets.UTF_8);
  }

  /** Says how much it is, not what: output of hooks is long, and may hold secrets. */
  @Override
  public String toString() {
    return "Capture[total=" + total + ", cut=" + cut + "]";
  }
}
