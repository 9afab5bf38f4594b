package examples

import java.nio.file.Path

import hob.{HobClient, HooksResult}
import zio.{Runtime, Task, Unsafe, ZIO}

/** The shape of a program that is not ZIO's all through: one target after the other, each effect run
  * to its end where it stands.
  */
object UnsafeRunExample {
  private def run(hooks: Path, target: String): Task[HooksResult] =
    ZIO.fromCompletableFuture(HobClient.hooks(hooks).param("TARGET", target).runAsync())

  private def unsafeRun[A](effect: Task[A]): A = Unsafe.unsafe { implicit unsafe =>
    Runtime.default.unsafe.run(effect).getOrThrowFiberFailure()
  }

  def main(arguments: Array[String]): Unit = {
    val (hooks, targets) = Show.arguments(arguments)
    targets.foreach { target => println(Show(target, unsafeRun(run(hooks, target)))) }
  }
}
