"""Owns: how a state, a writer, a reader and what lies between become a program in Ruby.

The same as `in_python.py`, for files that are required. Nothing here knows hob.
"""

from states import indented, split

WRITERS = ("script", "method", "file", "library", "library-with-a-clock", "class-body",
           "edited-script", "edited-file")
READERS = ("constant", "default", "class", "macro", "frozen")
DEPTHS = ("direct", "nested", "by-path")
BETWEEN = ("nothing", "if-main", "inside-if-main", "lazy-method", "rescue", "parser", "load",
           "autoload")

PARSER = """\
require "optparse"
OptionParser.new { |words| words.on("--level LEVEL") }.order(ARGV.grep(/none/))
"""


def program(state, writer, reader, depth, between):
    """The program of one combination."""
    files = dict(state["files"])
    files.update(("@SITE@/" + path, text) for path, text in state["installed"].items())
    files.update(kept_in(state, reader, depth))
    made = {"files": files, "first": None, "start": ["ruby", "-I", "@HERE@/lib", "script.rb"]}
    WRITE[writer](state, between, made)
    return made


def kept_in(state, reader, depth):
    """The file that keeps what it reads, and the one that the program requires."""
    kept = keeping(state["read"], reader)
    if depth == "nested":
        return {"lib/app.rb": 'require_relative "inner"\n', "lib/inner.rb": kept}
    if depth == "by-path":
        return {"lib/app.rb": 'require "parts/inner"\n', "lib/parts/inner.rb": kept}
    return {"lib/app.rb": kept}


def keeping(read, reader):
    """A file that keeps what it reads in `App::ANSWER`."""
    statements, last = split(read)
    head, end = statements + "module App\n", "end\n"
    if reader == "default":
        text = "def self.kept(value = $app_value)\n  value\nend\nANSWER = kept\n"
        return statements + "$app_value = (%s)\n" % last + "module App\n" + indented(text, 2) + end
    if reader == "class":
        text = "class Kept\n  VALUE = (%s)\nend\nANSWER = Kept::VALUE\n" % last
        return head + indented(text, 2) + end
    if reader == "macro":
        text = "def self.keeps(value)\n  define_singleton_method(:kept) { value }\nend\n"
        return head + indented(text + "keeps((%s))\nANSWER = kept\n" % last, 2) + end
    if reader == "frozen":
        return head + "  ANSWER = [(%s)].freeze\n" % last + end
    return head + "  ANSWER = (%s)\n" % last + end


def told(state):
    text = 'STDOUT.puts "ANSWER #{App::ANSWER.inspect}"\n'
    if state["then"]:
        statements, last = split(state["then"])
        text += statements + 'STDOUT.puts "THEN #{(%s).inspect}"\n' % last
    return text


def body(state, between, setting):
    bring = 'require "app"\n'
    if between == "if-main":
        return setting + "if __FILE__ == $0\n" + indented(bring, 2) + "end\n"
    if between == "inside-if-main":
        return "if __FILE__ == $0\n" + indented(setting + bring, 2) + "end\n"
    if between == "lazy-method":
        return setting + "def work\n" + indented(bring, 2) + "end\nwork\n"
    if between == "rescue":
        return setting + "begin\n" + indented(bring, 2) + "rescue LoadError\n  nil\nend\n"
    if between == "parser":
        return setting + PARSER + bring
    if between == "load":
        return setting + 'load "@HERE@/lib/app.rb"\n'
    if between == "autoload":
        return setting + 'autoload :App, "@HERE@/lib/app.rb"\n'
    return setting + bring


def by_script(state, between, made):
    text = state["before"] + body(state, between, state["set"])
    made["files"]["script.rb"] = text + told(state)


def by_method(state, between, made):
    setting = "setting = -> do\n" + indented(state["set"], 2) + "end\nsetting.call\n"
    made["files"]["script.rb"] = state["before"] + body(state, between, setting) + told(state)


def by_file(state, between, made):
    made["files"]["lib/prepared.rb"] = state["set"]
    text = state["before"] + body(state, between, 'require "prepared"\n')
    made["files"]["script.rb"] = text + told(state)


def by_library(state, between, made, clock=""):
    between = "nothing" if "main" in between else between
    made["files"]["lib/pk.rb"] = clock + body(state, between, state["set"])
    made["files"]["script.rb"] = state["before"] + 'require "pk"\n' + told(state)


def by_library_with_a_clock(state, between, made):
    by_library(state, between, made, "STARTED = Time.now\n")


def by_class_body(state, between, made):
    setting = "Class.new do\n" + indented(state["set"], 2) + "end\n"
    made["files"]["script.rb"] = state["before"] + body(state, between, setting) + told(state)


def by_edited_script(state, between, made):
    by_script(state, between, made)
    made["first"] = {"script.rb": state["before"] + body(state, between, "nil\n") + told(state)}


def by_edited_file(state, between, made):
    by_file(state, between, made)
    made["first"] = {"lib/prepared.rb": "PREPARED = 1\n"}


WRITE = {
    "script": by_script, "method": by_method, "file": by_file, "library": by_library,
    "library-with-a-clock": by_library_with_a_clock, "class-body": by_class_body,
    "edited-script": by_edited_script, "edited-file": by_edited_file,
}


def is_possible(state):
    """Ruby is not asked: its table has what all versions have."""
    return not state["when"]
