package bench

import java.nio.file.Path
import java.util.UUID

import scala.annotation.tailrec
import scala.io.StdIn

/** Runs one way in the shape `targets.foreach { t => unsafeRun(run(t)) }` and prints one line of
  * JSON a round: the nanoseconds of each target. See README.md.
  */
object Main {
  private val ways: Map[String, Way] = Map(
    "builder" -> Plain.builder,
    "nuprocess" -> Plain.nuprocess,
    "hob" -> Plain.hob,
    "future-builder" -> FutureWays.builder,
    "future-nuprocess" -> FutureWays.nuprocess,
    "future-hob" -> FutureWays.hob,
    "zio-builder" -> ZioWays.builder,
    "zio-nuprocess" -> ZioWays.nuprocess,
    "zio-hob" -> ZioWays.hob
  )

  private final case class Options(
      way: String,
      hooks: Option[Path] = None,
      targets: Int = 500,
      warmup: Int = 200,
      warmupMs: Option[Long] = None,
      rounds: Int = 1,
      commands: Boolean = false,
      set: Map[String, String] = Map.empty
  )

  private def usage(why: String): Nothing = {
    Console.err.println(s"bench: $why")
    Console.err.println(
      "usage: WAY --hooks DIR [--targets N] [--warmup N | --warmup-ms MS] " +
        "[--rounds N | --commands] [--set K=V]..."
    )
    Console.err.println(s"ways: ${ways.keys.toVector.sorted.mkString(" ")}")
    sys.exit(2)
  }

  @tailrec
  private def parse(arguments: List[String], options: Options): Options = arguments match {
    case Nil                          => options
    case "--hooks" :: dir :: rest     => parse(rest, options.copy(hooks = Some(Path.of(dir))))
    case "--targets" :: count :: rest => parse(rest, options.copy(targets = count.toInt))
    case "--warmup" :: count :: rest  => parse(rest, options.copy(warmup = count.toInt))
    case "--warmup-ms" :: ms :: rest =>
      parse(rest, options.copy(warmupMs = Some(ms.toLong)))
    case "--rounds" :: count :: rest  => parse(rest, options.copy(rounds = count.toInt))
    case "--commands" :: rest         => parse(rest, options.copy(commands = true))
    case "--set" :: pair :: rest if pair.contains('=') =>
      val (name, value) = pair.splitAt(pair.indexOf('='))
      parse(rest, options.copy(set = options.set.updated(name, value.drop(1))))
    case other :: _ => usage(s"what is $other?")
  }

  def main(arguments: Array[String]): Unit = {
    val options = arguments.toList match {
      case way :: rest if ways.contains(way) => parse(rest, Options(way))
      case other :: _                        => usage(s"no way $other")
      case Nil                               => usage("no way is named")
    }
    val work = new Workload(options.hooks.getOrElse(usage("no --hooks")), options.set)
    val way = ways(options.way)
    options.warmupMs match {
      case Some(ms) => warm(way, work, ms)
      case None     => round(way, work, options.warmup)
    }
    if (options.commands) {
      println(s"""{"way":"${options.way}","ready":true}""")
      Iterator.continually(StdIn.readLine()).takeWhile(_ != null).foreach { line =>
        val words = line.trim.split(' ')
        val ms = words.lift(1).fold(Long.MaxValue)(_.toLong)
        println(report(options, work, round(way, work, words.head.toInt, ms)))
      }
    } else {
      for (_ <- 0 until options.rounds)
        println(report(options, work, round(way, work, options.targets)))
    }
    // Schedulers and clients leave threads of their own behind.
    sys.exit(0)
  }

  private final case class Round(ns: Array[Long], done: Done)

  /** How many call at once in a warm-up by time: a way that waits most of its time has run often
    * enough to be compiled, too.
    */
  private val warmers = 16

  private def warm(way: Way, work: Workload, ms: Long): Unit = {
    val end = System.nanoTime + ms * 1000000
    val threads = Vector.fill(warmers)(new Thread(() => {
      while (System.nanoTime < end) way.run(work, UUID.randomUUID.toString)
    }))
    threads.foreach(_.start())
    threads.foreach(_.join())
    // And one after the other, as it is measured.
    round(way, work, warmers, ms / 2)
    ()
  }

  /** The targets one by one, each from just before it is handed over to just after it is done. Ends
    * early when its time is over; the first one is always run.
    */
  private def round(way: Way, work: Workload, targets: Int, ms: Long = Long.MaxValue): Round = {
    val uuids = Vector.fill(targets)(UUID.randomUUID.toString)
    val ns = new Array[Long](targets)
    var done = Done.none
    var at = 0
    val begin = System.nanoTime
    while (at < targets && (at == 0 || (System.nanoTime - begin) / 1000000 < ms)) {
      val start = System.nanoTime
      done = done + way.run(work, uuids(at))
      ns(at) = System.nanoTime - start
      at += 1
    }
    Round(ns.take(at), done)
  }

  private def report(options: Options, work: Workload, round: Round): String = {
    val nuprocess = sys.props.getOrElse("bench.nuprocess", "")
    s"""{"way":"${options.way}","zio":"${Run.version}","nuprocess":"$nuprocess",""" +
      s""""hooks":${work.hooks.size},"ran":${round.done.hooks},"failed":${round.done.failed},""" +
      s""""bytes":${round.done.bytes},"targets":${round.ns.length},""" +
      s""""ns":[${round.ns.mkString(",")}]}"""
  }
}
