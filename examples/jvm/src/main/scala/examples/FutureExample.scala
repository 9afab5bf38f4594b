package examples

import java.nio.file.Path

import scala.concurrent.duration.DurationInt
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.jdk.FutureConverters._

import hob.{HobClient, HooksResult}

/** Hooks from Scala's `Future`: all targets at once, as many as hob runs at one time. */
object FutureExample {
  private implicit val context: ExecutionContext = ExecutionContext.global

  private def run(hooks: Path, target: String): Future[HooksResult] =
    HobClient.hooks(hooks).param("TARGET", target).runAsync().asScala

  def main(arguments: Array[String]): Unit = {
    val (hooks, targets) = Show.arguments(arguments)
    val all = Future.traverse(targets)(target => run(hooks, target).map(target -> _))
    val results = Await.result(all, 1.minute)
    results.foreach { case (target, result) => println(Show(target, result)) }
    sys.exit(Show.exitCode(results.map(_._2)))
  }
}
