package bench

import zio.{Task, ZIO}

/** The ways under ZIO; `Run`, which differs between its versions, lies beside. */
object ZioWays {
  val nuprocess: Way = (work, uuid) => {
    val env = work.env(uuid)
    Run.unsafeRun(
      inOrder(work)(hook => ZIO.fromCompletableFuture(Nu.start(hook, env)))
    )
  }

  val builder: Way = (work, uuid) => {
    val env = work.env(uuid)
    Run.unsafeRun(inOrder(work)(hook => ZIO.attemptBlocking(Builder.run(hook, env))))
  }

  val hob: Way = (work, uuid) =>
    Run.unsafeRun(ZIO.fromCompletableFuture(Hob.start(work, uuid)).map(Hob.done))

  private def inOrder(work: Workload)(one: java.nio.file.Path => Task[Done]): Task[Done] =
    ZIO.foldLeft(work.hooks)(Done.none) { (so, hook) =>
      if (so.failed > 0) ZIO.succeed(so) else one(hook).map(so + _)
    }
}
