package bench

import zio.{Runtime, Task}

/** How an effect is run from outside, in ZIO 2.0.0-RC5. */
object Run {
  val version = "2.0.0-RC5"

  def unsafeRun[A](effect: Task[A]): A = Runtime.default.unsafeRun(effect)
}
