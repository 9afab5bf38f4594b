"""Joins the runtime's parts to the files that an interpreter loads, for tests and lints.

    python3 join.py [FOLDER]

Owns: where the joined files are for these. `parts.txt` lists the parts; the binary has the same text
by `crates/hob-runtimes/build.rs`.
"""

import atexit
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
JOINED = os.path.join(os.path.dirname(os.path.dirname(HERE)), "target", "runtimes", "python")


def parts():
    """Each joined file with its parts, in their order."""
    files, names = {}, None
    with open(os.path.join(HERE, "parts.txt")) as listed:
        for line in listed:
            name = line.strip()
            if not name or name.startswith("#"):
                continue
            if line.startswith(" "):
                names.append(name)
            else:
                names = files[name] = []
    return files


def joined(names):
    """The text of a file. A line before each part says where the next lines are from."""
    texts = []
    for name in names:
        with open(os.path.join(HERE, name)) as part:
            texts.append("# --- %s ---\n%s" % (name, part.read()))
    return "\n\n".join(texts)


def write(folder=JOINED):
    """Puts the whole runtime into a folder; the folder. What is there already stays as it is."""
    os.makedirs(folder, exist_ok=True)
    files = parts()
    for name in os.listdir(HERE):
        if name.endswith(".py") and name != os.path.basename(__file__):
            files[name] = None
    for file, names in files.items():
        if names is None:
            with open(os.path.join(HERE, file)) as whole:
                text = whole.read()
        else:
            text = joined(names)
        put(os.path.join(folder, file), text)
    return folder


def kept():
    """A folder for the runtime's bytecode, which is gone when this process ends.

    The daemon gives one to all that it starts. Without it each start compiles the whole runtime, which
    takes longer than all else that a test does with it.
    """
    folder = tempfile.mkdtemp(prefix="hob-kept-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def put(path, text):
    try:
        with open(path) as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    new = "%s.%d" % (path, os.getpid())
    with open(new, "w") as file:
        file.write(text)
    os.replace(new, path)


if __name__ == "__main__":
    print(write(*sys.argv[1:2]))
