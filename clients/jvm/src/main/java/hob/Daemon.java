package hob;

import static hob.HooksResult.NotRun.Reason;

import java.io.File;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;

/** Finds the daemon, starts one where there is none, and checks who is at the other end. */
final class Daemon {
  /** How long {@code hob start} may take. */
  private static final long START_SECONDS = 20;

  private Daemon() {}

  /** A connection to the daemon of this directory; {@code null}: the user's own. */
  static SocketChannel connect(Path chosen) throws Unreachable {
    Path directory = chosen == null ? location(System.getenv()) : chosen;
    SocketChannel channel = tryConnect(directory);
    if (channel == null) {
      start(directory);
      channel = tryConnect(directory);
    }
    if (channel == null) {
      throw new Unreachable(
          Reason.NO_DAEMON,
          "no daemon listens in " + directory + ", though `hob start` did not fail: look at `hob status`");
    }
    return channel;
  }

  /** As every program of hob's finds it: {@code docs/wire.md} and {@code hob status} tell where. */
  static Path location(Map<String, String> environment) {
    String own = environment.getOrDefault("HOB_DIR", "");
    if (!own.isEmpty()) {
      return Path.of(own).toAbsolutePath();
    }
    String runtime = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    if (runtime.startsWith("/") && isOurs(Path.of(runtime))) {
      return Path.of(runtime, "hob");
    }
    Path parent = Path.of("/run/user/" + Surroundings.UID);
    return isOurs(parent) ? parent.resolve("hob") : Path.of("/tmp/hob-" + Surroundings.UID);
  }

  private static boolean isOurs(Path directory) {
    try {
      return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS) && owner(directory) == Surroundings.UID;
    } catch (IOException fault) {
      return false;
    }
  }

  private static int owner(Path path) throws IOException {
    return (Integer) Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS);
  }

  /** Nothing is sent through a directory that others can enter. */
  static void check(Path directory) throws IOException, Unreachable {
    String why = null;
    if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      // Throws where there is nothing at all.
      owner(directory);
      why = "it is a link or not a directory";
    } else if (owner(directory) != Surroundings.UID) {
      why = "it belongs to another user";
    } else if (((Integer) Files.getAttribute(directory, "unix:mode", LinkOption.NOFOLLOW_LINKS) & 077) != 0) {
      why = "others may enter it (its mode is not 0700)";
    }
    if (why != null) {
      throw new Unreachable(Reason.UNSAFE, directory + " is not used: " + why);
    }
  }

  /** {@code null} where nobody listens. */
  private static SocketChannel tryConnect(Path directory) throws Unreachable {
    SocketChannel channel = null;
    try {
      check(directory);
      channel = SocketChannel.open(StandardProtocolFamily.UNIX);
      channel.connect(UnixDomainSocketAddress.of(directory.resolve("socket")));
      UserPrincipal peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
      // The directory was found to be ours, so that its owner's name is ours.
      if (!peer.equals(Files.getOwner(directory, LinkOption.NOFOLLOW_LINKS))) {
        throw new Unreachable(
            Reason.UNSAFE, "the process that listens in " + directory + " belongs to another user");
      }
      return channel;
    } catch (NoSuchFileException none) {
      return abandon(channel);
    } catch (IOException fault) {
      return abandon(channel);
    } catch (Unreachable unsafe) {
      abandon(channel);
      throw unsafe;
    }
  }

  private static SocketChannel abandon(SocketChannel channel) {
    if (channel != null) {
      try {
        channel.close();
      } catch (IOException ignored) {
        // Nothing was sent on it.
      }
    }
    return null;
  }

  private static void start(Path directory) throws Unreachable {
    Path hob = executable();
    ProcessBuilder builder = new ProcessBuilder(hob.toString(), "start");
    builder.environment().put("HOB_DIR", directory.toString());
    builder.redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")));
    builder.redirectErrorStream(true);
    // A pipe would be the daemon's too, and nobody reads it.
    builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
    Process process;
    try {
      process = builder.start();
    } catch (IOException fault) {
      throw new Unreachable(Reason.NO_DAEMON, "cannot start " + hob + ": " + fault.getMessage());
    }
    try {
      if (!process.waitFor(START_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new Unreachable(
            Reason.NO_DAEMON, "`" + hob + " start` did not end within " + START_SECONDS + " s");
      }
    } catch (InterruptedException nobodyDoes) {
      Thread.currentThread().interrupt();
    }
    if (process.exitValue() != 0) {
      throw new Unreachable(
          Reason.NO_DAEMON,
          "no daemon listens in " + directory + ", and `" + hob + " start` exited with "
              + process.exitValue() + ": run it by hand to see why");
    }
  }

  private static Path executable() throws Unreachable {
    String named = System.getenv().getOrDefault("HOB_BIN", "");
    if (!named.isEmpty()) {
      return Path.of(named);
    }
    for (String directory : System.getenv().getOrDefault("PATH", "").split(":")) {
      Path file = Path.of(directory.isEmpty() ? "." : directory, "hob");
      if (Files.isRegularFile(file) && Files.isExecutable(file)) {
        return file;
      }
    }
    throw new Unreachable(
        Reason.NO_DAEMON,
        "no daemon listens, and there is no `hob` on PATH to start one: install it, or name it in HOB_BIN");
  }
}
