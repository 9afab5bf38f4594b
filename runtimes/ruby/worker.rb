# frozen_string_literal: true

# The Ruby runtime's way in (docs/worker.md). The interpreter performs this file as its first `-r`:
#
#   ruby -rDIR/ruby/worker.rb OPTIONS SCRIPT serve               a zygote or standby, or its copy
#   ruby -rDIR/ruby/worker.rb OPTIONS SCRIPT ARGS... NOTES learn a cold run that leaves notes
#
# Owns: which of the two this process is, and where the files beside this one live. In the process
# that performs, this file just ends; the interpreter goes on and runs the script as it always
# does, so no frame of ours is below the program.
#
# Invariants: nothing of ours is a constant, a method or a global variable that a program can name:
# all lives in one module without a name. The files beside are evaluated, never required.

hob = Module.new
mode = ARGV.pop
directory = File.dirname(__FILE__)
load_beside = lambda do |*names|
  # What the caller's `-w` says of our text is not the program's.
  verbose = $VERBOSE
  $VERBOSE = nil
  names.each do |name|
    path = "#{directory}/#{name}.rb"
    hob.module_eval(File.read(path, encoding: "UTF-8"), path)
  end
  $VERBOSE = verbose
end
hob.define_singleton_method(:load_beside, load_beside)

case mode
when "serve"
  load_beside.call("frames", "system", "script", "world", "pages", "spans", "ends", "zygote")
  # A handler never comes back from here.
  hob.const_get(:Serve).run(hob, __FILE__)
when "learn"
  load_beside.call("paths", "texts", "bundles", "learn")
  hob.const_get(:Learn).start(ARGV.pop, __FILE__)
else
  abort "hob: unknown mode of the Ruby runtime"
end
