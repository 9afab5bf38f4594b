"""Owns: programs that are no combination of a table: each was seen to go wrong as it stands here."""

CONF = "debug = False\n"
READS_DOTENV = """\
import os


def load():
    try:
        with open("@HERE@/.env") as file:
            for line in file:
                name, _, value = line.strip().partition("=")
                os.environ.setdefault(name, value)
    except OSError:
        pass
"""
SETTINGS = 'import os\n\nLEVEL = os.environ.get("ORDERS_LEVEL", "none")\n'
SHOWS = "import dotenv_like\n\ndotenv_like.load()\nimport settings\n\nprint(settings.LEVEL)\n"


def programs(language):
    """Those of a language, for every interpreter of it."""
    for name, files, first, start in {"python": PYTHON, "ruby": RUBY}[language]:
        yield {"state": name, "topic": "written", "writer": "as written", "how": "as written",
               "files": files, "first": first, "start": start, "clean": [], "args": [], "other": []}


DOTENV = {"dotenv_like.py": READS_DOTENV, "settings.py": SETTINGS, "script.py": SHOWS}
SCRIPT = ["python3", "script.py"]
PYTHON = [
    ("dotenv-made-later", dict(DOTENV, **{".env": "ORDERS_LEVEL=debug\n"}), {".env": None}, SCRIPT),
    ("dotenv-edited-later", dict(DOTENV, **{".env": "ORDERS_LEVEL=debug\n"}),
     {".env": "ORDERS_LEVEL=info\n"}, SCRIPT),
    ("dotenv-removed-later", dict(DOTENV, **{".env": None}), {".env": "ORDERS_LEVEL=info\n"}, SCRIPT),
    ("settings-file-edited-later", {
        "conf.json": '{"level": 2}', "loaded.py": (
            'import json\n\nwith open("@HERE@/conf.json") as file:\n    values = json.load(file)\n'),
        "app.py": "import loaded\n\nLEVEL = loaded.values['level']\n",
        "script.py": "import loaded\nimport app\n\nprint(app.LEVEL)\n",
    }, {"conf.json": '{"level": 1}'}, SCRIPT),
    ("settings-file-read-by-the-script", {
        "conf.json": '{"level": 2}', "conf.py": "level = 0\n",
        "app.py": "import conf\n\nLEVEL = conf.level\n",
        "script.py": (
            'import json\nimport conf\n\nwith open("@HERE@/conf.json") as file:\n'
            "    conf.level = json.load(file)['level']\nimport app\n\nprint(app.LEVEL)\n"),
    }, {"conf.json": '{"level": 1}'}, SCRIPT),
    ("package-with-a-hazard-sets", {
        "conf.py": CONF, "pk/__init__.py": (
            "import time\n\nSTARTED = time.time()\nimport conf\n\nconf.debug = True\n"
            "from pk import child\n"),
        "pk/child.py": "import conf\n\nDEBUG = conf.debug\n",
        "script.py": "import pk\n\nprint(pk.child.DEBUG)\n",
    }, None, SCRIPT),
    ("package-with-a-hazard-patches", {
        "pk/__init__.py": (
            "import os\nimport json\n\nPROCESS = os.getpid()\njson.dumps = lambda what: 'patched'\n"
            "from pk.child import TEXT\n"),
        "pk/child.py": "from json import dumps\n\nTEXT = dumps(1)\n",
        "script.py": "from pk import TEXT\n\nprint(TEXT)\n",
    }, None, SCRIPT),
    ("script-edited-to-set", {
        "conf.py": CONF, "app.py": "import conf\n\nDEBUG = conf.debug\n",
        "script.py": "import conf\n\nconf.debug = True\nimport app\n\nprint(app.DEBUG)\n",
    }, {"script.py": "import conf\nimport app\n\nprint(app.DEBUG)\n"}, SCRIPT),
    ("script-edited-to-set-a-variable", {
        "app.py": 'import os\n\nMODE = os.environ.get("ORDERS_MODE", "unset")\n',
        "script.py": (
            'import os\n\nos.environ["ORDERS_MODE"] = "set"\nimport app\n\nprint(app.MODE)\n'),
    }, {"script.py": "import os\nimport app\n\nprint(app.MODE)\n"}, SCRIPT),
    ("run-twice-by-name", {
        "pk/__init__.py": "from pk.tool import main\n",
        "pk/tool.py": "def main():\n    print('ran')\n\n\nif __name__ == '__main__':\n    main()\n",
    }, None, ["python3", "-m", "pk.tool"]),
    ("patched-recursively", {
        "pk/__init__.py": (
            "import time\n\nSTARTED = time.time()\nimport tools\n\nreal = tools.work\n\n\n"
            "def work(depth=0):\n    return real() + 1\n\n\n"
            "if tools.work.__name__ != 'patched':\n    work.__name__ = 'patched'\n"
            "    tools.work = work\nfrom pk import child\n"),
        "pk/child.py": "import tools\n\nVALUE = tools.work()\n",
        "tools.py": "def work():\n    return 1\n",
        "script.py": "import pk\n\nprint(pk.child.VALUE)\n",
    }, None, SCRIPT),
    ("lines-of-modules-in-order", {
        "one.py": "import log\n\nlog.said('one')\n", "two.py": "import log\n\nlog.said('two')\n",
        "log.py": "lines = []\n\n\ndef said(line):\n    lines.append(line)\n",
        "script.py": (
            "import log\n\nlog.said('script')\nimport two\n\nlog.said('between')\nimport one\n\n"
            "print(log.lines)\n"),
    }, None, SCRIPT),
]

IN_RUBY = ["ruby", "script.rb"]
RUBY = [
    ("dotenv-edited-later", {
        ".env": "ORDERS_LEVEL=debug\n", "settings.rb": 'LEVEL = ENV.fetch("ORDERS_LEVEL", "none")\n',
        "script.rb": (
            'File.foreach("@HERE@/.env") do |line|\n  name, value = line.chomp.split("=")\n'
            '  ENV[name] ||= value\nend\nrequire_relative "settings"\nputs LEVEL\n'),
    }, {".env": "ORDERS_LEVEL=info\n"}, IN_RUBY),
    ("script-edited-to-set", {
        "app.rb": "DEBUG = $debugging ? true : false\n",
        "script.rb": '$debugging = true\nrequire_relative "app"\nputs DEBUG\n',
    }, {"script.rb": 'require_relative "app"\nputs DEBUG\n'}, IN_RUBY),
    ("library-with-a-clock-sets", {
        "pk.rb": (
            'STARTED = Time.now\nrequire_relative "conf"\nConf.debug = true\n'
            'require_relative "child"\n'),
        "conf.rb": "module Conf\n  class << self\n    attr_accessor :debug\n  end\nend\n",
        "child.rb": "KEPT = Conf.debug\n", "script.rb": 'require_relative "pk"\nputs KEPT.inspect\n',
    }, None, IN_RUBY),
    ("lines-of-files-in-order", {
        "one.rb": '$lines << "one"\n', "two.rb": '$lines << "two"\n',
        "script.rb": (
            '$lines = ["script"]\nrequire_relative "two"\n$lines << "between"\n'
            'require_relative "one"\np $lines\n'),
    }, None, IN_RUBY),
]
