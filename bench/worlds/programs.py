"""Owns: how the functions in `ends/` become programs: what they make is held in several ways.

Each function of those files is one kind of thing. It makes the thing and returns it; its source is
the program's, so it imports what it needs itself. Programs say `main` when they have made theirs,
and end.

The first line of a function's documentation may say `options: ...`: those of the interpreter, for
every program of it. Beside that everything is run once under `-X dev`, held by the script.
"""

import ast
import os
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
# How it is held, with the script and the module beside it.
HELD = {
    "script": ("{source}\n\nheld = {name}()\nprint('main')\n", ""),
    "function": (
        "{source}\n\ndef main():\n    held = {name}()\n    print('main')\n    return held\n\n\n"
        "main()\n", "",
    ),
    "module": ("import beside\n\n{source}\n\nbeside.held = {name}()\nprint('main')\n", "held = None\n"),
    "imported": ("import beside\nprint('main')\n", "{source}\n\nheld = {name}()\n"),
    "builtins": ("import builtins\n\n{source}\n\nbuiltins.held = {name}()\nprint('main')\n", ""),
    "cycle": (
        "{source}\n\nclass Node:\n    pass\n\n\nnode = Node()\nnode.self = node\n"
        "node.held = {name}()\nprint('main')\n", "",
    ),
    "dropped cycle": (
        "{source}\n\nclass Node:\n    pass\n\n\nnode = Node()\nnode.self = node\n"
        "node.held = {name}()\ndel node\nprint('main')\n", "",
    ),
    "class": ("{source}\n\nclass Kind:\n    held = {name}()\n\n\nprint('main')\n", ""),
}


def programs():
    found = []
    folder = os.path.join(HERE, "ends")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            found += of_topic(name[:-3], text)
    return found


def of_topic(topic, text):
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        options = (ast.get_docstring(node) or "").split("\n")[0]
        options = options[len("options: "):].split() if options.startswith("options: ") else []
        source = "\n".join(text.split("\n")[node.lineno - 1:node.end_lineno])
        for how, pair in HELD.items():
            yield program(topic, node.name, how, options, [each.format(
                source=textwrap.dedent(source), name=node.name) for each in pair])
        dev = [each.format(source=source, name=node.name) for each in HELD["script"]]
        yield program(topic, node.name, "script, in development mode", options + ["-X", "dev"], dev)


def program(topic, name, how, options, texts):
    return {"topic": topic, "text": f"{name} | {how}", "options": options,
            "script": texts[0], "beside": texts[1]}
