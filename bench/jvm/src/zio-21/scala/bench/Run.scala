package bench

import zio.{Runtime, Task, Unsafe}

/** How an effect is run from outside, since ZIO 2.0. */
object Run {
  val version = "2.1.24"

  def unsafeRun[A](effect: Task[A]): A = Unsafe.unsafe { implicit unsafe =>
    Runtime.default.unsafe.run(effect).getOrThrowFiberFailure()
  }
}
