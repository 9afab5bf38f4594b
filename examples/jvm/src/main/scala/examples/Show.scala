package examples

import java.nio.file.Path

import scala.jdk.CollectionConverters._

import hob.HooksResult

/** What the examples print. */
object Show {

  /** The hooks directory, and the targets. */
  def arguments(arguments: Array[String]): (Path, List[String]) = arguments.toList match {
    case hooks :: targets if targets.nonEmpty => (Path.of(hooks), targets)
    case _ =>
      Console.err.println("usage: HOOKS-DIRECTORY TARGET...")
      sys.exit(2)
  }

  def apply(target: String, result: HooksResult): String = {
    val line = result match {
      case _: HooksResult.Ok        => "ok"
      case _: HooksResult.Warning   => "ok, with warnings"
      case _: HooksResult.Interrupt => "stopped by a hook"
      case _: HooksResult.Error     => "failed"
      case _: HooksResult.Timeout   => "out of time"
      case _: HooksResult.Cancelled => "cancelled"
      case broken: HooksResult.SystemError =>
        "could not be run: " + broken.report.message.orElse("see the hooks")
      case lost: HooksResult.Lost =>
        val running = lost.running.map[String](name => s", $name may have run in part").orElse("")
        s"the daemon is gone$running; not run: ${lost.report.notRun.asScala.mkString(" ")}"
      case refused: HooksResult.NotRun =>
        s"not run (${refused.reason}): ${refused.report.message.orElse("")}"
    }
    val hooks = result.hooks.asScala.map { hook =>
      val said = hook.stdout.text + hook.stderr.text
      said.linesIterator.map(text => s"\n    ${hook.name}: $text").mkString
    }
    s"$target: $line${hooks.mkString}"
  }

  /** As `hob hooks run` would exit: 0 if all is well. */
  def exitCode(results: Iterable[HooksResult]): Int = if (results.forall(_.isOk)) 0 else 1
}
