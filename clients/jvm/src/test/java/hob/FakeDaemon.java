package hob;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** A socket that says what a test wants it to say. */
final class FakeDaemon implements AutoCloseable {
  final Path directory;
  private ServerSocketChannel listener;

  FakeDaemon() throws IOException {
    directory = Files.createTempDirectory("hob-fake");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    listen();
  }

  /** Listens anew, as another daemon would. */
  void listen() throws IOException {
    Files.deleteIfExists(directory.resolve("socket"));
    listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    listener.bind(UnixDomainSocketAddress.of(directory.resolve("socket")));
  }

  Caller accept() throws IOException {
    Caller caller = new Caller(listener.accept());
    if (caller.next().kind != Wire.HELLO) {
      throw new IOException("no hello");
    }
    return caller;
  }

  @Override
  public void close() throws IOException {
    listener.close();
    Files.deleteIfExists(directory.resolve("socket"));
    Files.delete(directory);
  }

  record Frame(int kind, ByteBuffer payload) {
    long number() {
      return payload.getLong(0);
    }
  }

  /** One connection. */
  static final class Caller implements AutoCloseable {
    private final SocketChannel channel;

    private Caller(SocketChannel channel) {
      this.channel = channel;
    }

    /** The next frame; {@code null} at the end. */
    Frame next() throws IOException {
      ByteBuffer header = read(Wire.HEADER);
      if (header == null) {
        return null;
      }
      return new Frame(Wire.kind(header), read(Wire.length(header)));
    }

    private ByteBuffer read(int count) throws IOException {
      ByteBuffer bytes = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
      while (bytes.hasRemaining()) {
        if (channel.read(bytes) < 0) {
          return null;
        }
      }
      return bytes.flip();
    }

    void say(byte[] bytes) throws IOException {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      while (buffer.hasRemaining()) {
        channel.write(buffer);
      }
    }

    void begun(long set, String... names) throws IOException {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      for (String name : names) {
        all.writeBytes((name + '\0').getBytes("UTF-8"));
      }
      ByteBuffer payload = little(24 + all.size());
      payload.putLong(set).putLong(7).putInt(names.length).putInt(all.size()).put(all.toByteArray());
      say(frame(Wire.SET_BEGUN, payload));
    }

    void started(long set, int hook) throws IOException {
      say(frame(Wire.HOOK_STARTED, little(12).putLong(set).putInt(hook)));
    }

    /** A hook that exited with 0 and wrote nothing. */
    void hookEnded(long set, int hook) throws IOException {
      ByteBuffer payload = little(8 + 4 + 5 + 8 + 16 + 1 + 12 + 40);
      payload.putLong(set).putInt(hook);
      say(frame(Wire.HOOK_ENDED, payload.position(payload.limit())));
    }

    void setEnded(long set, int outcome) throws IOException {
      ByteBuffer payload = little(8 + 1 + 8 + 8 + 4);
      payload.putLong(set).put((byte) outcome);
      say(frame(Wire.SET_ENDED, payload.position(payload.limit())));
    }

    void failure(long set, int reason, String text) throws IOException {
      byte[] line = text.getBytes("UTF-8");
      say(frame(Wire.FAILURE, little(9 + line.length).putLong(set).put((byte) reason).put(line)));
    }

    private static ByteBuffer little(int size) {
      return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static byte[] frame(int kind, ByteBuffer payload) {
      payload.flip();
      ByteBuffer all = little(Wire.HEADER + payload.remaining());
      all.put(new byte[] {'h', 'o', 'b', 1, (byte) kind, 0, 0, 0}).putInt(payload.remaining());
      return all.put(payload).array();
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }
}
