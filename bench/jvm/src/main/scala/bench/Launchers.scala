package bench

import java.io.InputStream
import java.nio.ByteBuffer
import java.nio.file.{Files, Path}
import java.util.concurrent.{CompletableFuture, TimeUnit}

import scala.jdk.CollectionConverters._

import com.zaxxer.nuprocess.{NuAbstractProcessHandler, NuProcess, NuProcessBuilder}
import hob.{HobClient, HooksResult}

/** What one target's hooks did: how many ran, how many of them failed, how many bytes they said. */
final case class Done(hooks: Int, failed: Int, bytes: Long) {
  def +(other: Done): Done =
    Done(hooks + other.hooks, failed + other.failed, bytes + other.bytes)
}

object Done {
  val none: Done = Done(0, 0, 0)
}

/** The hooks directory and what of the environment is the same for every target. Listed once, which
  * favours the peers: hob lists it for each target.
  */
final class Workload(val directory: Path, set: Map[String, String]) {
  val hooks: Vector[Path] = {
    val files = Files.list(directory)
    try files.iterator.asScala.filter(Files.isExecutable(_)).toVector.sorted
    finally files.close()
  }

  /** The parameters of one target: its own UUID, and what the command line set. */
  def params(uuid: String): Map[String, String] = set.updated("UUID", uuid)

  private val around = System.getenv

  /** The caller's environment with the parameters, as a process gets it. */
  def env(uuid: String): java.util.Map[String, String] = {
    val env = new java.util.HashMap[String, String](around)
    params(uuid).foreach { case (name, value) => env.put(name, value) }
    env
  }
}

/** One hook as a process through NuProcess, which answers by a callback. */
object Nu {
  def start(hook: Path, env: java.util.Map[String, String]): CompletableFuture[Done] = {
    val done = new CompletableFuture[Done]
    val handler = new NuAbstractProcessHandler {
      // Callbacks of one process come from one thread.
      private val out = new java.io.ByteArrayOutputStream
      private val err = new java.io.ByteArrayOutputStream
      override def onStart(process: NuProcess): Unit = process.closeStdin(true)
      override def onStdout(buffer: ByteBuffer, closed: Boolean): Unit = take(buffer, out)
      override def onStderr(buffer: ByteBuffer, closed: Boolean): Unit = take(buffer, err)
      private def take(buffer: ByteBuffer, into: java.io.ByteArrayOutputStream): Unit = {
        val bytes = new Array[Byte](buffer.remaining)
        buffer.get(bytes)
        into.write(bytes, 0, bytes.length)
      }
      override def onExit(code: Int): Unit = {
        val failed = if (code == 0) 0 else 1
        done.complete(Done(1, failed, (out.size + err.size).toLong))
        ()
      }
    }
    val builder = new NuProcessBuilder(java.util.List.of(hook.toString), env)
    builder.setProcessListener(handler)
    if (builder.start() == null) done.completeExceptionally(new IllegalStateException("not started"))
    done
  }
}

/** One hook as a process through `java.lang.ProcessBuilder`: blocks its thread, and reads stderr in
  * its own after stdout, which tiny hooks allow.
  */
object Builder {
  def run(hook: Path, env: java.util.Map[String, String]): Done = {
    val builder = new ProcessBuilder(hook.toString)
    val around = builder.environment()
    around.clear()
    around.putAll(env)
    builder.redirectInput(ProcessBuilder.Redirect.from(new java.io.File("/dev/null")))
    val process = builder.start()
    val bytes = count(process.getInputStream) + count(process.getErrorStream)
    val code = process.waitFor()
    Done(1, if (code == 0) 0 else 1, bytes)
  }

  private def count(stream: InputStream): Long =
    try stream.readAllBytes().length.toLong
    finally stream.close()
}

/** All hooks of a target as one set of hob's. */
object Hob {
  private def call(work: Workload, uuid: String) =
    HobClient.hooks(work.directory).params(work.params(uuid).asJava)

  def start(work: Workload, uuid: String): CompletableFuture[HooksResult] =
    call(work, uuid).runAsync()

  def run(work: Workload, uuid: String): Done = done(call(work, uuid).run())

  def done(result: HooksResult): Done = {
    val records = result.hooks.asScala
    val bytes = records.map(hook => hook.stdout.total + hook.stderr.total).sum
    val failed = if (result.isOk) 0 else 1
    Done(records.size, failed, bytes)
  }
}

/** One way to run the hooks of one target, called from a plain thread that waits for it. */
trait Way {
  def run(work: Workload, uuid: String): Done
  def close(): Unit = ()
}

/** Without a library: blocking calls. */
object Plain {
  val builder: Way = (work, uuid) => {
    val env = work.env(uuid)
    until(work)(Builder.run(_, env))
  }
  val nuprocess: Way = (work, uuid) => {
    val env = work.env(uuid)
    until(work)(Nu.start(_, env).get(60, TimeUnit.SECONDS))
  }
  val hob: Way = (work, uuid) => Hob.run(work, uuid)

  /** One after another, until one fails. */
  private def until(work: Workload)(one: Path => Done): Done =
    work.hooks.foldLeft(Done.none)((so, hook) => if (so.failed > 0) so else so + one(hook))
}
