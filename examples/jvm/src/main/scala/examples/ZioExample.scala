package examples

import java.nio.file.Path

import hob.{HobClient, HooksResult}
import zio._

/** Hooks from ZIO: two targets at once, a deadline for each, and an interruption of the fiber that
  * cancels the sets which run (press ^C).
  */
object ZioExample extends ZIOAppDefault {
  private def runHooks(hooks: Path, target: String): Task[HooksResult] =
    // Its future is cancelled when the fiber is interrupted, and cancels the set.
    ZIO.fromCompletableFuture(
      HobClient.hooks(hooks).param("TARGET", target).deadline(30.seconds).runAsync()
    )

  override def run: ZIO[ZIOAppArgs, Throwable, Unit] = for {
    arguments <- getArgs
    (hooks, targets) = Show.arguments(arguments.toArray)
    results <- ZIO.foreachPar(targets) { target =>
      runHooks(hooks, target).tap(result => Console.printLine(Show(target, result)))
    }.withParallelism(2)
    _ <- exit(ExitCode(Show.exitCode(results)))
  } yield ()
}
