"""Owns: how a state, a writer, a reader and what lies between become a program in Python.

A program is a dictionary: its `files`, those that it has `first` (before it is edited) or None,
and the `start`: the words that run it. `@HERE@` stands for its folder, `@SITE@` for the folder of
its installed packages. Nothing here knows hob.
"""

import re
import sys

from states import indented, split

WRITERS = ("script", "function", "module", "package", "package-with-a-clock", "command", "dash-m",
           "edited-script", "edited-module")
READERS = ("attribute", "from", "default", "class", "decorator")
DEPTHS = ("direct", "nested", "packaged")
BETWEEN = ("nothing", "if-main", "inside-if-main", "lazy-function", "try", "parser", "dynamic",
           "definitions")

PARSER = """\
import argparse
words = argparse.ArgumentParser()
words.add_argument("--level")
words.parse_known_args()
"""
DEFINITIONS = """\
class Between:
    level = 1


def between(one=Between.level):
    return one


"""


def program(state, writer, reader, depth, between):
    """The program of one combination."""
    prefix = "pk." if writer.startswith("package") else ""
    files = dict(state["files"])
    files.update(("@SITE@/" + path, text) for path, text in state["installed"].items())
    files.update(modules(state, reader, depth, prefix))
    made = {"files": files, "first": None, "start": ["python3", "script.py"]}
    if state["installed"] or writer == "command":
        made["venv"] = True
    WRITE[writer](state, between, made)
    return made


def modules(state, reader, depth, prefix):
    """The module that keeps what it reads, and the one that the program imports."""
    kept = keeping(state["read"], reader)
    folder = prefix.replace(".", "/")
    if depth == "direct":
        return {folder + "app.py": kept}
    if depth == "nested":
        line = "from %sinner import ANSWER\n" % prefix
        return {folder + "app.py": line, folder + "inner.py": kept}
    return {folder + "app/__init__.py": "from .inner import ANSWER\n",
            folder + "app/inner.py": kept}


def keeping(read, reader):
    """A module that keeps what it reads."""
    statements, last = split(read)
    plain = re.fullmatch(r"(\w+)\.(\w+)", last)
    if reader == "from" and plain and "import %s\n" % plain.group(1) in statements:
        return statements + "from %s import %s as kept\nANSWER = kept\n" % plain.groups()
    if reader == "default":
        return statements + "\n\ndef kept(value=(%s)):\n    return value\n\n\nANSWER = kept()\n" % last
    if reader == "class":
        return statements + "\n\nclass Kept:\n    value = (%s)\n\n\nANSWER = Kept.value\n" % last
    if reader == "decorator":
        head = "\n\ndef keeping(function):\n    function.value = (%s)\n    return function\n" % last
        return statements + head + "\n\n@keeping\ndef kept():\n    pass\n\n\nANSWER = kept.value\n"
    return statements + "ANSWER = (%s)\n" % last


def told(state, app="app"):
    """The end of a program: what was kept, and what is so in the end."""
    text = 'import sys\nsys.__stdout__.write("ANSWER %%s\\n" %% ascii(%s.ANSWER))\n' % app
    if state["then"]:
        statements, last = split(state["then"])
        text += statements + 'sys.__stdout__.write("THEN %%s\\n" %% ascii(%s))\n' % last
    return text + "sys.__stdout__.flush()\n"


def body(state, between, setting, name="__main__"):
    """A text that sets the state, and imports; of a script, or of a package."""
    prefix = "" if name == "__main__" else name + "."
    bring = "from %s import app\n" % name if prefix else "import app\n"
    if between == "if-main":
        return setting + "if __name__ == %r:\n" % name + indented(bring)
    if between == "inside-if-main":
        return "if __name__ == %r:\n" % name + indented(setting + bring)
    if between == "lazy-function":
        return setting + "\n\ndef work():\n" + indented(bring + "return app\n") + "\n\napp = work()\n"
    if between == "try":
        caught = "except ImportError:\n    app = None\n"
        return setting + "try:\n" + indented(bring) + caught
    if between == "parser":
        return setting + PARSER + bring
    if between == "dynamic":
        return setting + "import importlib\napp = importlib.import_module(%r)\n" % (prefix + "app")
    if between == "definitions":
        return setting + "\n\n" + DEFINITIONS + bring
    return setting + bring


def by_script(state, between, made):
    text = state["before"] + body(state, between, state["set"])
    made["files"]["script.py"] = text + told(state)


def by_function(state, between, made):
    setting = "def prepare():\n" + indented(state["set"]) + "\n\nprepare()\n"
    made["files"]["script.py"] = state["before"] + body(state, between, setting) + told(state)


def by_module(state, between, made):
    made["files"]["prepared.py"] = state["set"]
    text = state["before"] + body(state, between, "import prepared\n")
    made["files"]["script.py"] = text + told(state)


def by_package(state, between, made, clock=""):
    made["files"]["pk/__init__.py"] = clock + body(state, between, state["set"], "pk")
    made["files"]["script.py"] = state["before"] + "import pk\n" + told(state, "pk.app")


def by_package_with_a_clock(state, between, made):
    by_package(state, between, made, "import time\n\nSTARTED = time.time()\n")


def by_command(state, between, made):
    """An installed command: a file of a virtual environment's, whose packages are installed."""
    files = {}
    for path, text in made["files"].items():
        at_home = path.endswith(".py") and not any(
            "@HERE@/" + path.split("/")[0] in part for part in (state["set"], state["before"]))
        files[("@SITE@/" if at_home and path[0] != "@" else "") + path] = text
    text = state["before"] + body(state, between, state["set"]) + told(state)
    text = text.replace("if __name__ == '__main__':", "if __name__ == 'tool.cli':")
    files["@SITE@/tool/__init__.py"] = ""
    files["@SITE@/tool/cli.py"] = "def main():\n" + indented(text)
    files["@SITE@/tool-1.0.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n"
    files["venv/bin/tool"] = (
        "#!@HERE@/venv/bin/python3\nimport re\nimport sys\nfrom tool.cli import main\n"
        "if __name__ == '__main__':\n"
        "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
        "    sys.exit(main())\n"
    )
    made.update(files=files, start=["@HERE@/venv/bin/tool"])


def by_dash_m(state, between, made):
    text = state["before"] + body(state, between, state["set"]) + told(state)
    made["files"].update({"tool/__init__.py": "", "tool/__main__.py": text})
    made["start"] = ["python3", "-m", "tool"]


def by_edited_script(state, between, made):
    by_script(state, between, made)
    made["first"] = {"script.py": state["before"] + body(state, between, "pass\n") + told(state)}


def by_edited_module(state, between, made):
    by_module(state, between, made)
    made["first"] = {"prepared.py": "VALUE = 1\n"}


WRITE = {
    "script": by_script, "function": by_function, "module": by_module, "package": by_package,
    "package-with-a-clock": by_package_with_a_clock, "command": by_command, "dash-m": by_dash_m,
    "edited-script": by_edited_script, "edited-module": by_edited_module,
}


def is_possible(state):
    """Whether this interpreter has what the state is about."""
    return not state["when"] or bool(eval(state["when"], {"sys": sys}))
