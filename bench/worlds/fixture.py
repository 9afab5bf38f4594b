"""Owns: what the questions of `questions/` are about: links, files, folders and homes.

`fixture.py FOLDER make` makes it, in a folder that is there; `change` turns its links elsewhere and
edits its files, as one of the worlds has it, and `restore` undoes that. Nothing else is touched.
"""

import os
import plistlib
import py_compile
import sqlite3
import sys
import zipfile

FOLDER = sys.argv[1]


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text, mode=0o644):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path(name), mode)


def turn(name, target):
    """A link that leads there, whatever was in its place."""
    if os.path.lexists(path(name)):
        os.remove(path(name))
    os.symlink(target, path(name))


def settle():
    """Reads everything once: a file's time of access changes at the first read after a change."""
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            if os.path.exists(os.path.join(folder, name)):
                with open(os.path.join(folder, name), "rb") as file:
                    file.read()


def make():
    for which in ("one", "two"):
        write(f"{which}/text", f"behind the link: {which}\n")
        write(f"{which}/{which}-only", which)
        write(f"{which}/behind.py", f"VALUE = {which!r}\n")
        # Or else the first run would add to a folder that others list.
        py_compile.compile(path(f"{which}/behind.py"))
    for which in ("here", "there"):
        place(which)
    write("here/only-here", "1")
    write("here/only.ini", "[a]\n")
    write("here/only_here_module.py", "VALUE = 1\n")
    for home in ("home", "other-home"):
        write(f"{home}/.apprc", f"the settings of {home}\n")
        write(f"{home}/.app.ini", f"[app]\nhome = {home}\n")
        write(f"{home}/.netrc", f"machine example.com login {home} password x\n", 0o600)
    site = f"other-home/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    write(site + "/only_at_home.py", "VALUE = 'at home'\n")
    write(site + "/usercustomize.py", "import sys\nsys.app_user = 'customized'\n")
    write("tools/app-tool", "#!/bin/sh\necho tool\n", 0o755)
    os.makedirs(path("tmp"), exist_ok=True)
    os.makedirs(path("__pycache__"), exist_ok=True)
    restore()


def place(which):
    """A directory of a caller's, whose files have the same names as those of the other."""
    write(f"{which}/relative", f"this is {which}\n" * len(which))
    write(f"{which}/cfg.ini", f"[app]\nmode = {which}\n")
    write(f"{which}/data.json", f'{{"place": "{which}"}}')
    write(f"{which}/doc.xml", f"<a>{which}</a>")
    write(f"{which}/module.py", f"VALUE = {which!r}\n")
    write(f"{which}/netrc", f"machine {which} login a password b\n", 0o600)
    write(f"{which}/mime.types", f"text/{which} appx\n")
    write(f"{which}/tool", "#!/bin/sh\n", 0o755 if which == "here" else 0o644)
    write(f"{which}/sub/{which}-below", "")
    write(f"{which}/{which}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {which}\n")
    turn(f"{which}/here-link", f"sub-{which}")
    with open(path(f"{which}/doc.plist"), "wb") as file:
        plistlib.dump({"place": which}, file)
    with zipfile.ZipFile(path(f"{which}/archive.zip"), "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{which}.txt"), which)
    with sqlite3.connect(path(f"{which}/app.db")) as base:
        base.execute("create table settings (mode text)")
        base.execute("insert into settings values (?)", (which,))
    base.close()


def change():
    turn("link", path("two"))
    write("file", "the file was edited meanwhile\n")
    write("data.json", '{"edited": true}')
    write("settings.py", "VALUE = 'edited'\n")
    turn("turned", "file")
    os.chmod(path("mode"), 0o755)
    os.remove(path("goes"))
    write("comes", "[came]\n")
    settle()


def restore():
    turn("link", path("one"))
    write("file", "the file\n")
    write("data.json", "{}")
    write("settings.py", "VALUE = 1\n")
    if os.path.lexists(path("turned")):
        os.remove(path("turned"))
    write("turned", "no link\n")
    write("mode", "#!/bin/sh\n")
    write("goes", "here\n")
    if os.path.lexists(path("comes")):
        os.remove(path("comes"))
    settle()


{"make": make, "change": change, "restore": restore}[sys.argv[2]]()
