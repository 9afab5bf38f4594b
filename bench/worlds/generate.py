"""Owns: how the lines and functions in this folder become modules and programs.

`generate.py questions FOLDER` and `generate.py things` print modules, `generate.py ends` programs,
as JSON, for the interpreter that runs it. Each line of `questions/*.txt` and `moments/*.txt` is one
question: statements, of which the last is an expression, whose value the module keeps as `ANSWER`.
What is imported is seen from the names. A comment `# group: NAME` says that the lines below it are
asked together and with no others; `# alone` that each is; `# any` that it does not matter.

A module does nothing else: the rest of a program is the caller's. Nothing here knows hob.
"""

import ast
import builtins
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# What a fixture holds, below its folder.
PLACES = {
    "FOLDER": "", "LINK": "link", "FILE": "file", "ONE": "one", "INNER": "link/text",
    "DATA": "data.json", "TURNED": "turned", "MODE": "mode", "COMES": "comes", "GOES": "goes",
}


def main():
    what = sys.argv[1]
    if what == "questions":
        sys.path.insert(0, HERE)
        import mechanical

        made = [("mechanical", "any", text) for text in mechanical.questions()]
        found = modules(lines("questions") + made, sys.argv[2])
    elif what == "things":
        found = modules(lines("moments"), "")
    else:
        sys.path.insert(0, HERE)
        import programs

        found = programs.programs()
    json.dump(found, sys.stdout)


def lines(folder):
    """The topic, group and text of every line."""
    found = []
    for name in sorted(os.listdir(os.path.join(HERE, folder))):
        group = "any"
        with open(os.path.join(HERE, folder, name), encoding="utf-8") as file:
            for line in file:
                line = line.strip()
                if line.startswith("# group: "):
                    group = line[len("# group: "):]
                elif line in ("# alone", "# any"):
                    group = line[2:]
                elif line and not line.startswith("#"):
                    found.append((os.path.splitext(name)[0], group, line))
    return found


def modules(asked, folder):
    """Those that this version can ask, each once, with the text of its module."""
    found, seen = [], set()
    for topic, group, text in asked:
        if text in seen:
            continue
        seen.add(text)
        source = module(text, folder)
        if source is not None:
            found.append({"topic": topic, "group": group, "text": text, "source": source})
    return found


def module(text, folder):
    """The module that asks this; None if this version cannot even read it."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    first, last = body[:-1], body[-1]
    heads = [f"{name} = {os.path.normpath(os.path.join(folder, below))!r}"
             for name, below in PLACES.items() if name in names(body)]
    steps = [f"import {name}" for name in sorted(imports(body))]
    steps += [ast.get_source_segment(text, each) for each in first]
    steps.append("ANSWER = " + ast.get_source_segment(text, last).strip())
    inside = "".join(f"    {step}\n" for step in steps)
    complaint = 'type(error).__name__ + ": " + str(error)'
    return "".join(head + "\n" for head in heads) + (
        f"try:\n{inside}except Exception as error:\n    ANSWER = {complaint}\n"
    )


def names(body):
    return {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}


def imports(body):
    """The modules that a question names without binding the name itself."""
    bound = {"__file__", "__name__", "__spec__", "__loader__", "__package__", "__builtins__"}
    for node in (node for each in body for node in ast.walk(each)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    bound.update(PLACES, vars(builtins))
    found = set()
    for node in (node for each in body for node in ast.walk(each)):
        if isinstance(node, ast.Name) and node.id not in bound:
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if dotted.partition(".")[0] not in bound and is_module(dotted):
                found.add(dotted)
    return found


def is_module(dotted):
    if not dotted.replace(".", "").replace("_", "").isalnum():
        return False
    parent, _, name = dotted.rpartition(".")
    try:
        if parent and not hasattr(importlib.import_module(parent), "__path__"):
            return False
        return importlib.util.find_spec(dotted) is not None
    except (ImportError, ValueError, AttributeError):
        return False


if __name__ == "__main__":
    main()
