"""Owns: how the tables of states are read (`python/*.txt`, `ruby/*.txt`; `README.md` has the form).

A state is a dictionary: `name`, `topic`, the blocks `set`, `read`, `before` and `then` as text,
`files` and `installed` (path: text), and the words of `args`, `other`, `clean` and `when`.
"""

import os
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCKS = ("set", "read", "before", "then")
KEYS = ("args", "other", "clean", "when")


def states(language):
    """Every state of a language, in the order of its tables."""
    found = []
    folder = os.path.join(HERE, language)
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found += table(file.read(), os.path.splitext(name)[0])
    names = [one["name"] for one in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit("states with one name: %s" % ", ".join(sorted(twice)))
    return found


def table(text, topic):
    found, take = [], None
    for line in text.splitlines():
        if line.startswith("    ") or not line.strip():
            if take is not None:
                take.append(line)
            continue
        if line.startswith("#"):
            continue
        take = []
        word, _, rest = line.partition(" ")
        if word == "=":
            found.append({"name": rest, "topic": topic, "files": {}, "installed": {}})
        elif word.endswith(":") and word[:-1] in KEYS:
            found[-1][word[:-1]] = rest
        elif word in BLOCKS and not rest:
            found[-1][word] = take
        elif word == "file" or word == "installed":
            found[-1]["files" if word == "file" else word][rest] = take
        else:
            raise SystemExit("%s: not the line of a state: %s" % (topic, line))
    return [whole(state) for state in found]


def whole(state):
    """The same, with text in the place of lines."""
    for block in BLOCKS:
        state[block] = joined(state.get(block, []))
    for kind in ("files", "installed"):
        state[kind] = {path: joined(lines) for path, lines in state[kind].items()}
    for key in KEYS:
        state.setdefault(key, "")
    if not state["set"] or not state["read"]:
        raise SystemExit("%s: a state is set and read" % state["name"])
    return state


def joined(lines):
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    return text + "\n" if text else ""


def split(block):
    """The statements of a block, and the expression that is its last line."""
    *statements, last = block.rstrip("\n").split("\n")
    return "".join(line + "\n" for line in statements), last


def indented(text, by=4):
    return textwrap.indent(text, " " * by)
