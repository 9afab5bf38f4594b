package bench

import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future, blocking}
import scala.jdk.FutureConverters._

import monix.execution.Scheduler

/** The ways under Scala's `Future` on Monix's io scheduler, as the reference workload has them. */
object FutureWays {
  private implicit lazy val io: Scheduler = Scheduler.io("hooks")

  val nuprocess: Way = (work, uuid) => {
    val env = work.env(uuid)
    unsafeRun(inOrder(work)(hook => Future(Nu.start(hook, env)).flatMap(_.asScala)))
  }

  val builder: Way = (work, uuid) => {
    val env = work.env(uuid)
    unsafeRun(inOrder(work)(hook => Future(blocking(Builder.run(hook, env)))))
  }

  val hob: Way = (work, uuid) =>
    unsafeRun(Future(Hob.start(work, uuid)).flatMap(_.asScala).map(Hob.done))

  private def inOrder(work: Workload)(one: java.nio.file.Path => Future[Done]): Future[Done] =
    work.hooks.foldLeft(Future.successful(Done.none)) { (before, hook) =>
      before.flatMap(so => if (so.failed > 0) Future.successful(so) else one(hook).map(so + _))
    }

  private def unsafeRun[A](future: Future[A]): A = Await.result(future, Duration.Inf)
}
