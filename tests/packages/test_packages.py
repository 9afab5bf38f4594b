"""Packages are installed by their own tools, make a call warm, and leave no file when removed.

The tools: pip, uv and pipx for the wheel, npm, dpkg, rpm, and install.sh for the tarball. Each has a
root of its own; nothing is installed on the machine.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

from place import DIST, ROOT, Place, package

# What the system's tools ask root for, where root is to be had.
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def can_be_root():
    """Whether a command can be run by root."""
    try:
        return subprocess.run([*AS_ROOT, "true"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.remove)


class Wheel(Case):
    TOOLS = os.path.dirname(sys.executable)

    def wheel_works(self, hob, python):
        """The command is warm, and the module asks a function."""
        place = self.place
        place.warm(hob)
        with open(place.path("hob.toml"), "w") as file:
            file.write('[program.greeter]\nhandler = "greeter.py:handle"\n')
        with open(place.path("greeter.py"), "w") as file:
            file.write("def handle(payload, message):\n    return b'hello ' + payload\n")
        place.run(hob, "trust")
        ask = "import hob; print(hob.ask('greeter', b'x').decode())"
        path = os.path.dirname(hob) + ":" + place.env["PATH"]
        self.assertEqual(place.run(python, "-c", ask, PATH=path), "hello x\n")

    def test_pip(self):
        place = self.place
        place.run(sys.executable, "-m", "venv", "venv")
        before = place.files("venv")
        pip = place.path("venv/bin/pip")
        place.run(pip, "install", "--no-index", "--disable-pip-version-check", package(".whl"))
        self.wheel_works(place.path("venv/bin/hob"), place.path("venv/bin/python"))
        self.assertTrue(os.path.exists(place.path("venv/share/man/man1/hob-run.1")))
        place.end(place.path("venv/bin/hob"))
        place.run(pip, "uninstall", "--yes", "hob-cli")
        # What pip and python wrote for themselves is not the wheel's.
        left = [name for name in place.files("venv") if not name.endswith(".pyc")]
        self.assertEqual([name for name in left if name not in before], [])

    def test_the_client_alone(self):
        place = self.place
        place.run(sys.executable, "-m", "venv", "venv")
        before = place.files("venv")
        pip, python = place.path("venv/bin/pip"), place.path("venv/bin/python")
        source = os.path.join(ROOT, "clients/python")
        left = sorted(os.listdir(source))
        # What builds it is in the environment of these tests, so that nothing is fetched.
        quiet = ["--disable-pip-version-check", "--no-index"]
        wheel = ["wheel", "--no-build-isolation", "--wheel-dir", place.path("wheels"), source]
        place.run(sys.executable, "-m", "pip", *wheel, *quiet)
        [made] = os.listdir(place.path("wheels"))
        place.run(pip, "install", *quiet, place.path("wheels", made))
        self.assertEqual(sorted(os.listdir(source)), left, "building leaves something")
        hob = place.path("bin/hob")
        os.mkdir(place.path("bin"))
        os.symlink(os.environ["HOB_BIN"], hob)
        self.wheel_works(hob, python)
        ask = "import importlib.metadata as all; print(all.version('hob-client'))"
        version = place.run(python, "-c", ask).strip()
        self.assertEqual(place.run(hob, "--version").split()[1], version)
        place.end(hob)
        place.run(pip, "uninstall", "--yes", "hob-client")
        left = [name for name in place.files("venv") if not name.endswith(".pyc")]
        self.assertEqual([name for name in left if name not in before], [])

    def test_uv(self):
        place = self.place
        uv = os.path.join(self.TOOLS, "uv")
        env = {
            "UV_OFFLINE": "1",
            "UV_PYTHON": sys.executable,
            "UV_TOOL_DIR": place.path("tools"),
            "UV_TOOL_BIN_DIR": place.path("bin"),
            "UV_CACHE_DIR": place.path("cache"),
            "UV_NO_PROGRESS": "1",
        }
        self.assertRegex(
            place.run(uv, "tool", "run", "--from", package(".whl"), "hob", "--version", **env),
            r"(?m)^hob \d",
        )
        place.run(uv, "tool", "install", package(".whl"), **env)
        self.wheel_works(place.path("bin/hob"), place.path("tools/hob-cli/bin/python"))
        place.end(place.path("bin/hob"))
        place.run(uv, "tool", "uninstall", "hob-cli", **env)
        self.assertEqual(place.files("bin"), [])
        self.assertFalse(os.path.exists(place.path("tools/hob-cli")))

    def test_pipx(self):
        place = self.place
        pipx = os.path.join(self.TOOLS, "pipx")
        env = {
            "PIPX_HOME": place.path("pipx"),
            "PIPX_BIN_DIR": place.path("bin"),
            "PIPX_MAN_DIR": place.path("man"),
            "PIPX_DEFAULT_PYTHON": sys.executable,
        }
        place.run(pipx, "install", package(".whl"), **env)
        self.wheel_works(place.path("bin/hob"), place.path("pipx/venvs/hob-cli/bin/python"))
        self.assertTrue(os.path.exists(place.path("man/man1/hob-run.1")))
        place.end(place.path("bin/hob"))
        place.run(pipx, "uninstall", "hob-cli", **env)
        self.assertEqual(place.files("bin") + place.files("man"), [])
        self.assertFalse(os.path.exists(place.path("pipx/venvs/hob-cli")))


@unittest.skipUnless(can_be_root(), "dpkg and rpm install for root, which is not to be had")
class SystemPackages(Case):
    def installed(self, install, remove, own):
        """Installs, calls and removes; `own` is where the tool keeps its records."""
        place = self.place
        place.run(*AS_ROOT, *install)
        files = place.files("root/usr")
        self.assertIn("bin/hob", files)
        self.assertIn("share/doc/hob/THIRD-PARTY.txt", files)
        with open(place.path("root/usr/lib/systemd/user/hob.service")) as unit:
            self.assertIn("\nExecStart=/usr/bin/hob daemon\n", unit.read())
        scripts = [name for name in place.files("root", own) if name.endswith("inst")]
        self.assertEqual(scripts, [], "something is run by installing")
        hob = place.path("root/usr/bin/hob")
        place.warm(hob)
        place.end(hob)
        place.run(*AS_ROOT, *remove)
        left = [name for name in place.files("root") if not name.startswith(own)]
        self.assertEqual(left, [])

    @unittest.skipUnless(shutil.which("dpkg"), "no dpkg here")
    def test_deb(self):
        place = self.place
        for folder in ("info", "updates", "triggers"):
            os.makedirs(place.path("root/var/lib/dpkg", folder))
        open(place.path("root/var/lib/dpkg/status"), "w").close()
        dpkg = ["dpkg", f"--root={place.path('root')}", "--log=/dev/null"]
        self.installed([*dpkg, "--install", package(".deb")], [*dpkg, "--purge", "hob"], "var/lib/dpkg")

    @unittest.skipUnless(shutil.which("rpm"), "no rpm here")
    def test_rpm(self):
        os.mkdir(self.place.path("root"))
        rpm = ["rpm", f"--root={self.place.path('root')}"]
        self.installed(
            [*rpm, "--install", package(".rpm")],
            [*rpm, "--erase", "hob"],
            os.path.relpath(self.place.run("rpm", "--eval", "%{_dbpath}").strip(), "/"),
        )


@unittest.skipUnless(shutil.which("npm"), "no npm here")
class Npm(Case):
    def npm(self, *words):
        quiet = ["--offline", "--no-audit", "--no-fund", "--no-update-notifier"]
        cache = self.place.path("cache")
        return self.place.run("npm", *words, *quiet, "--cache", cache)

    def test_for_all_projects(self):
        place = self.place
        prefix = place.path("a prefix")
        self.npm("install", "--global", "--prefix", prefix, package(".tgz"))
        hob = os.path.join(prefix, "bin/hob")
        place.warm(hob)
        self.assertTrue(os.path.exists(os.path.join(prefix, "share/man/man1/hob-run.1")))
        place.end(hob)
        self.npm("uninstall", "--global", "--prefix", prefix, "hob-cli")
        self.assertEqual(place.files("a prefix"), [])

    def test_in_a_project(self):
        """Its scripts find the command by its name."""
        place = self.place
        with open(place.path("package.json"), "w") as file:
            json.dump({"name": "project", "scripts": {"hello": "hob run hello.py npm"}}, file)
        self.npm("install", "--save-dev", package(".tgz"))
        self.assertIn("hello npm\n", self.npm("run", "--silent", "hello"))
        place.warm(place.path("node_modules/.bin/hob"))
        place.end(place.path("node_modules/.bin/hob"))
        self.npm("uninstall", "hob-cli")
        self.assertEqual(place.files("node_modules"), [".package-lock.json"])


class Tarball(Case):
    INSTALL = os.path.join(DIST, "install.sh")

    def test_install_sh(self):
        place = self.place
        said = place.run("sh", self.INSTALL)
        hob = os.path.join(place.home, ".local/bin/hob")
        self.assertIn(hob, said)
        place.warm(hob)
        # It stops the daemon, too.
        place.run("sh", os.path.join(place.home, ".local/share/doc/hob/install.sh"), "--remove")
        self.assertEqual(place.files("run"), [])
        self.assertEqual(os.listdir(place.home), [".local"])
        self.assertEqual(os.listdir(place.home + "/.local"), [])

    def test_unpacked_over_a_prefix(self):
        place = self.place
        os.mkdir(place.path("prefix"))
        place.run("tar", "-xzf", package(".tar.gz"), "-C", "prefix", "--strip-components=1")
        place.warm(place.path("prefix/bin/hob"))

    def test_installed_over_another_that_runs(self):
        """No call fails, and what the other had alone is gone."""
        place = self.place
        prefix = place.path("a folder")
        older = self.another()
        place.run("sh", os.path.join(older, "install.sh"), PREFIX=prefix)
        hob = os.path.join(prefix, "bin/hob")
        self.assertTrue(os.path.exists(os.path.join(prefix, "share/doc/hob/of-old")))
        place.warm(hob)
        # A caller that does not look up: half of its calls come before, half after.
        script = (
            "echo ready; read go;"
            " for i in $(seq 60); do"
            f' [ "$(\'{hob}\' run hello.py $i 2>&1)" = "hello $i" ] || exit 1;'
            " [ $i != 20 ] || { echo begun; };"
            " done; echo all"
        )
        caller = subprocess.Popen(
            ["sh", "-c", script],
            cwd=place.folder,
            env=place.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.assertEqual(caller.stdout.readline(), "ready\n")
        caller.stdin.write("go\n")
        caller.stdin.flush()
        self.assertEqual(caller.stdout.readline(), "begun\n")
        place.run("sh", self.INSTALL, PREFIX=prefix)
        self.assertEqual(caller.communicate()[0], "all\n")
        self.assertEqual(caller.returncode, 0)
        place.warm(hob)
        self.assertFalse(os.path.exists(os.path.join(prefix, "share/doc/hob/of-old")))
        place.run("sh", self.INSTALL, "--remove", PREFIX=prefix)
        self.assertEqual(os.listdir(prefix), [])

    def another(self):
        """The same packed as another build: another build id, and a file more."""
        place = self.place
        place.run("tar", "-xzf", package(".tar.gz"))
        (tree,) = [name for name in os.listdir(place.folder) if name.endswith("-linux")]
        binary = place.path(tree, "bin/hob")
        with open(binary, "rb") as file:
            bytes_ = file.read()
        # The note: sizes of name and digest, the kind, the name, the digest.
        note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
        parts = bytes_.split(note)
        self.assertGreater(len(parts), 1)
        with open(binary, "wb") as file:
            file.write(parts[0] + b"".join(note + bytes(20) + part[20:] for part in parts[1:]))
        open(place.path(tree, "share/doc/hob/of-old"), "w").close()
        os.mkdir(place.path("older"))
        tarball = place.path("older", tree + ".tar.gz")
        with tarfile.open(tarball, "w:gz", compresslevel=1) as packed:
            packed.add(place.path(tree), tree)
        shutil.rmtree(place.path(tree))
        with open(tarball, "rb") as file, open(place.path("older/SHA256SUMS"), "w") as sums:
            sums.write(f"{hashlib.sha256(file.read()).hexdigest()}  {tree}.tar.gz\n")
        shutil.copy(self.INSTALL, place.path("older"))
        return place.path("older")

    def test_refused(self):
        """What is not as it should be is named, and nothing is written."""
        place = self.place
        tarball = package(".tar.gz")
        os.mkdir(place.path("got"))
        for name in (self.INSTALL, os.path.join(DIST, "SHA256SUMS")):
            shutil.copy(name, place.path("got"))
        install = place.path("got/install.sh")
        self.assertIn("no tarball for", place.run("sh", install, fails=True))
        shutil.copy(tarball, place.path("got"))
        with open(place.path("got", os.path.basename(tarball)), "ab") as to:
            to.write(b"x")
        self.assertIn("is not what SHA256SUMS says", place.run("sh", install, fails=True))
        shutil.copy(tarball, place.path("got"))
        said = place.run("sh", install, fails=True, PREFIX="/proc/version/x")
        self.assertIn("/proc/version/x cannot be written", said)
        self.assertIn("has no hob", place.run("sh", install, "--remove", fails=True))
        self.assertIn("usage", place.run("sh", install, "--help", fails=True))
        self.assertEqual(place.files("home"), [])
        place.run("env", "-u", "HOME", "sh", install, fails=True)


class Action(Case):
    """The steps of action.yml, run as a runner of GitHub's runs them, from a folder of files."""

    def job(self, fails=False, **inputs):
        """What the action prints, and the folders that the job's next steps have first on PATH."""
        place = self.place
        read = "require 'yaml'; require 'json'; puts YAML.load_file(ARGV[0]).to_json"
        action = json.loads(place.run("ruby", "-e", read, os.path.join(ROOT, "action.yml")))
        given = {name: one.get("default", "") for name, one in action["inputs"].items()}
        given |= {"from": DIST, **inputs}
        os.makedirs(place.path("temp"), exist_ok=True)
        paths = place.path("paths")
        open(paths, "w").close()
        runner = {
            "GITHUB_ACTION_PATH": ROOT,
            "GITHUB_PATH": paths,
            "RUNNER_TEMP": place.path("temp"),
        }
        said = ""
        for step in action["runs"]["steps"]:
            self.assertEqual(step["shell"], "sh")
            env = {
                name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value)
                for name, value in step["env"].items()
            }
            said += place.run("sh", "-e", "-c", step["run"], fails=fails, **env, **runner)
        with open(paths) as file:
            return said, file.read().split()

    def test_a_job_has_hob_and_its_shims(self):
        place = self.place
        tool = place.path("bin", "greets")
        os.mkdir(place.path("bin"))
        with open(tool, "w") as script:
            script.write("#!/usr/bin/env python3\nprint('greets')\n")
        os.chmod(tool, 0o755)
        place.env["PATH"] = place.path("bin") + ":" + place.env["PATH"]
        with open(os.path.join(DIST, "SHA256SUMS"), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        _, paths = self.job(shims="greets", sha256=digest)
        # The runner puts each before what there was.
        place.env["PATH"] = ":".join([*reversed(paths), place.env["PATH"]])
        self.assertEqual(len(paths), 2)
        self.assertEqual(place.run("sh", "-c", "command -v greets").strip(), paths[1] + "/greets")
        self.assertEqual(place.run("greets"), "greets\n")
        self.assertIn("greets", place.run("hob", "log"))
        place.warm(os.path.join(paths[0], "hob"))
        self.assertEqual(os.listdir(place.path("temp")), ["hob"])
        place.run("hob", "stop")

    def test_refused(self):
        """The line is one that a runner shows, and nothing is installed."""
        place = self.place
        wrong = "0" * 64
        said, paths = self.job(fails=True, sha256=wrong)
        self.assertIn("::error title=hob::SHA256SUMS is not the file that sha256 names", said)
        self.assertIn("neither an https address", self.job(fails=True, **{"from": "http://x"})[0])
        os.mkdir(place.path("got"))
        self.assertIn("has no SHA256SUMS", self.job(fails=True, **{"from": place.path("got")})[0])
        for name in ("SHA256SUMS", os.path.basename(package(".tar.gz"))):
            shutil.copy(os.path.join(DIST, name), place.path("got"))
        with open(place.path("got", "install.sh"), "w") as file:
            file.write("exit 0\n")
        said, paths = self.job(fails=True, **{"from": place.path("got")})
        self.assertIn("install.sh is not what SHA256SUMS says", said)
        self.assertEqual((paths, os.listdir(place.path("temp"))), ([], []))


class Distribution(unittest.TestCase):
    def test_the_same_input_gives_the_same_bytes(self):
        again = os.path.abspath(os.environ["HOB_DIST_AGAIN"])
        names = sorted(os.listdir(DIST))
        self.assertEqual(sorted(os.listdir(again)), names)
        self.assertEqual(len(names), 9)
        for name in names:
            with open(os.path.join(DIST, name), "rb") as a, open(os.path.join(again, name), "rb") as b:
                self.assertTrue(a.read() == b.read(), name)

    def test_the_binary_has_no_table_of_symbols(self):
        with tarfile.open(package(".tar.gz")) as packed:
            name = next(name for name in packed.getnames() if name.endswith("/bin/hob"))
            content = packed.extractfile(name).read()
        self.assertNotIn(b"\0.symtab\0", content)

    def test_digests(self):
        check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        done = subprocess.run(check, cwd=DIST, stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 8)

    def test_the_bill_of_materials_is_what_its_schema_says(self):
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator

        with open(package(".cdx.json")) as file:
            text = file.read()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))
        with open(os.path.join(DIST, "THIRD-PARTY.txt")) as file:
            self.assertIn("hyper 1.", file.read())
        self.assertIn("pkg:cargo/hyper@1.", text)
        # What only builds is in neither.
        self.assertNotIn("pkg:cargo/syn@", text)


if __name__ == "__main__":
    unittest.main()
