# frozen_string_literal: true

# A zygote, its copies, and a standby. Owns: the channel from `preload` to `give`, and the children.
#
# Invariants: a zygote performs no call, is forked only while it has no thread of anybody's, and
# waits for its own children one by one. A copy holds no IO object of ours when the program begins.

module Serve
  ZYGOTE = 0
  STANDBY = 1
  COPY = 2
  HANDLER = 2
  APP = 3
  UNPAID = 0
  PAID = 1
  PLAIN = 2
  # More than two add nothing.
  REHEARSALS = 2
  JOINING = 4096

  class << self
    attr_reader :copy_fd

    def run(hob, own)
      @own = own
      place
      parent = Process.ppid
      # What the interpreter has of its own, and makes anew in a child.
      @own_threads = System.threads
      System.move(0, @channel_fd)
      null = IO.sysopen(File::NULL, File::RDWR)
      null.zero? || System.move(null, 0)
      System.die_with_parent(parent)
      guard { serve(hob) }
    end

    private

    # High numbers, which no program asks for.
    def place
      soft, = Process.getrlimit(:NOFILE)
      @channel_fd = [250, soft - 6].min
      @copy_fd = @channel_fd + 1
      @reply_fd = @channel_fd + 2
      @pages_fd = @channel_fd + 3
      @told = @channel_fd
    end

    # What goes wrong before a program runs is told, and ends us.
    def guard
      yield
    rescue SystemExit, SignalException
      exit!(1)
    rescue Exception => error # rubocop:disable Lint/RescueException
      # The first line is what people are shown.
      text = "#{error.class.name.to_s[/[^:]*\z/]}: #{error.message}\n#{error.backtrace&.join("\n")}"
      begin
        System.write(@told, Frames.failed(text.b.byteslice(0, 60_000)))
      ensure
        exit!(1)
      end
    end

    def serve(hob)
      frame = System.receive_frame(@channel_fd) or exit!(0)
      raise Frames::WireError, "a preload was expected" if frame[0] != Frames::PRELOAD

      role, kind, target, prefix, modules, argv = Frames.take_preload(frame[1])
      if Encoding.default_internal || Encoding.default_external != Encoding.find("locale")
        # The interpreter converts arguments by them, in more ways than one.
        raise "encodings named by -E, -K, -U or in RUBYOPT are not kept warm"
      end
      case kind
      when HANDLER
        hob.load_beside("message")
        @handler = Messages::Loaded.new(target)
      when APP
        hob.load_beside("message", "http", "rack")
        @handler = Http::App.new(target)
      else
        @script = Script.new($0)
      end
      @ends = Ends.new(@copy_fd, @reply_fd, @pages_fd)
      @world = World.new(prefix, File.readlink("/proc/self/exe"))
      @argv = argv
      hob.load_beside("paths", "texts", "bundles", "learn", "moments", "wraps", "watch")
      hob.load_beside("statements", "leading", "ahead", "preload")
      @preload = Preload.new(@own_threads)
      notes = @preload.perform(modules, argv, prefix.drop(1), @handler)
      # What the calls to come do not pay.
      notes << "T#{Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :microsecond)}"
      if @handler&.error
        # An edit of any of this is worth another try.
        System.write(@channel_fd, Frames.notes(0, notes + @handler.tried.to_a))
        raise LoadError, @handler.error
      end

      @ends.judge
      unless @handler
        @learn = Learn.new(nil, @own, modules)
        @learn.listen
        @ends.notes_by(@learn)
      end
      settle
      @ends.survey
      System.close(System.pidfd(Process.pid)) if role == ZYGOTE
      System.write(@channel_fd, Frames.ready(role, Process.pid, threads, notes))
      role == ZYGOTE ? become_copy : become_standby
      @handler ? answer : perform
    end

    def threads
      1 + System.threads - @own_threads
    end

    # What a copy would otherwise do for itself, each time.
    def settle
      File.umask(0o022)
      practise
      rehearse if @handler
      4.times { GC.start }
      # What an extension keeps without a mark must not be moved.
      return unless @ends.harmless?

      Process.respond_to?(:warmup) ? Process.warmup : GC.compact
    end

    def practise
      entries = ENV.map { |name, value| "#{name}=#{value}\0".b }
      @world.take_environment(entries.reverse.join(""))
      @world.take_environment(entries.join)
    end

    # The way of a message, but for the program: what the interpreter notes when it runs code for the
    # first time is then in the zygote, and not written to pages of each copy.
    def rehearse
      parent = Process.ppid
      told = @told
      REHEARSALS.times { @handler.rehearse { |message| take_rehearsed(parent, message) } }
    rescue StandardError
      # Then a program has something of its own where we call the interpreter's.
      nil
    ensure
      @told = told
    end

    def take_rehearsed(parent, message)
      ours, theirs = System.stream_pair
      enter(parent, theirs)
      System.write(ours, message)
      Messages.answer_one(@handler, @copy_fd)
    ensure
      [ours, @copy_fd].each { |fd| System.close(fd) }
    end

    def become_standby
      System.move(@channel_fd, @copy_fd)
      @told = @copy_fd
    end

    # Returns in a copy only.
    def become_copy
      @children = {}
      @pages = Pages.new(@pages_fd)
      @pages.known
      loop do
        System.poll([@channel_fd, *@children.keys]).each do |fd|
          if fd != @channel_fd
            reap(fd)
          elsif fork_one == COPY
            return
          end
        end
      end
    end

    def fork_one
      kind, payload, fds = System.receive_frame(@channel_fd) || exit!(0)
      raise Frames::WireError, "a fork was expected" if kind != Frames::FORK || fds.size != 1

      worker, paid = Frames.take_fork(payload)
      return refuse(worker, fds[0], "threads") if threads != 1

      parent = Process.pid
      # A handler's copy leads a group of its own: a fork for each leader would cost as much as the copy.
      leader = @handler ? 0 : @leader || dead_leader
      @leader = nil
      @pages.refresh
      @lesson = paid == PAID ? @pages.lesson : nil
      join_what_is_free
      begin
        pid = Process.fork
      rescue SystemCallError => error
        return refuse(worker, fds[0], error.message)
      end
      if pid.nil?
        join_group(0, leader)
        return start_copy(parent, fds[0], paid)
      end
      # As the copy does: nobody knows who of the two comes first.
      join_group(pid, leader)
      System.close(fds[0])
      pidfd = System.pidfd(pid)
      @children[pidfd] = [pid, worker]
      System.send_with(@channel_fd, Frames.forked(worker, pid, ""), pidfd)
      return if @handler

      System.wait(leader)
      # For the next: nobody waits for this one.
      @leader = dead_leader
      nil
    end

    # The C library joins freed pieces that lie side by side when it is asked for this much: here, not in
    # the copy, for which the kernel would copy all the pages that they lie in.
    def join_what_is_free
      "\0".b * JOINING
    end

    # A child that has ended and is not waited for yet: the leader of a process group. What a copy
    # sends to its own group is not to reach the zygote, and a leader of a group could not begin a
    # session of its own (`setsid`).
    def dead_leader
      pid = Process.fork { exit!(0) }
      join_group(pid, pid)
      pid
    end

    def join_group(pid, group)
      Process.setpgid(pid, group)
    rescue SystemCallError
      # It has ended, or joined its caller's group meanwhile.
      nil
    end

    def refuse(worker, fd, error)
      System.close(fd)
      System.write(@channel_fd, Frames.forked(worker, 0, error))
      nil
    end

    def reap(pidfd)
      pid, worker = @children.delete(pidfd)
      pair, usage = System.wait(pid)
      System.close(pidfd)
      System.write(@channel_fd, Frames.gone(worker, pair, usage))
    end

    def start_copy(parent, fd, paid)
      System.close(@channel_fd)
      @children.each_key { |pidfd| System.close(pidfd) }
      @children = nil
      enter(parent, fd)
      # A script's are made anew when its call is there.
      Moments.renew if @handler
      pay if paid == PAID
      if @handler || paid == PAID || paid == PLAIN && !System.readable?(@copy_fd)
        System.write(@copy_fd, Frames.ready(COPY, Process.pid, 1, []))
      end
      COPY
    end

    def enter(parent, fd)
      System.die_with_parent(parent)
      System.move(fd, @copy_fd)
      @told = @copy_fd
    end

    def pay
      @pages.pay
      @world.expect(@argv) unless @handler
    end

    # Answers messages; what the first of them wrote to is a lesson for later copies.
    def answer
      pages = @pages
      lesson = @lesson
      return Messages.serve(@handler, @copy_fd) { pages.learn(lesson) } if lesson

      pages&.leave
      Messages.serve(@handler, @copy_fd)
    end

    # Waits for the call and takes it on; the interpreter then runs the script.
    def perform
      @ends.count
      3.times { |number| System.close(number) }
      payload, fds = await_give
      name = @world.take(payload, fds, @copy_fd, @reply_fd)
      @world.anew(name, Frames::PROGRAM) if name.b != @script.name.b || @world.asks_for_a_version?
      @world.anew(name, @edited ? Frames::EDITED : Frames::PROGRAM) unless renewed?
      @world.anew(name, Frames::PROGRAM) unless @preload.fits?(ARGV)
      @learn.words = ARGV
      Moments.renew
      # A lesson lasts as long as the call.
      if @lesson
        pages = @pages
        lesson = @lesson
        @ends.afterwards { pages.learn(lesson) }
      else
        @pages&.leave
      end
      @ends.begin(@world)
    end

    # An edited script may begin otherwise than with what was loaded ahead.
    def renewed?
      @edited = false
      @script.renew { |text| @preload.begins?(@script.name, text).tap { |begins| @edited = !begins } }
    end

    def await_give
      # Not close-on-exec: they come just where they belong.
      data, fds = System.receive(@copy_fd, System::GIVE_ROOM, 0)
      exit!(0) if data.empty?
      data = System.fill(@copy_fd, data, Frames::HEADER_BYTES)
      kind, given, length = Frames.header(data)
      raise Frames::WireError, "a give was expected" if kind != Frames::GIVE || fds.size != given || fds.size < 5

      data = System.fill(@copy_fd, data, Frames::HEADER_BYTES + length)
      [data.byteslice(Frames::HEADER_BYTES, length), fds]
    end
  end
end
