"""oauth2-proxy and nginx beside a site of `hob serve`, as docs/rights.md has it: an address that is
asked, and a proxy before hob that knows the user. Who may read is asked of the real programs.
"""

import base64
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

HOB = os.environ["HOB_BIN"]
TOOL = os.environ.get("HOB_OAUTH2_PROXY", "")
WAIT_S = 20

HANDLER = """
import json

def handle(payload, message):
    asked = json.loads(payload)
    return asked["user"] == "alice" and asked["project"] == "acme"
"""

CONFIG = """
[serve]
log = "none"
trusted_proxies = ["127.0.0.1"]

[program.rights]
handler = "rights.py:handle"

[mount."/asked"]
git = "srv"
[mount."/asked".rights]
url = "http://127.0.0.1:%(port)d/oauth2/auth"

[mount."/git"]
git = "srv"
[mount."/git".rights]
ask = "rights"
user = "header:X-Remote-User"
"""

NGINX = """
daemon off;
pid %(place)s/nginx.pid;
error_log %(place)s/nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path %(place)s/body;
    proxy_temp_path %(place)s/proxy;
    fastcgi_temp_path %(place)s/fastcgi;
    uwsgi_temp_path %(place)s/uwsgi;
    scgi_temp_path %(place)s/scgi;
    server {
        listen unix:%(place)s/nginx.sock;
        location /oauth2/ {
            proxy_pass http://127.0.0.1:%(port)d;
            proxy_set_header Content-Length "";
            proxy_pass_request_body off;
        }
        location /git/ {
            auth_request /oauth2/auth;
            auth_request_set $user $upstream_http_x_auth_request_user;
            proxy_set_header X-Remote-User $user;
            proxy_pass http://127.0.0.1:%(hob)s;
        }
    }
}
"""


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=WAIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(self.path)


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def ask(connection, path, headers=None, body=None):
    try:
        connection.request("POST" if body else "GET", path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


@unittest.skipUnless(TOOL and shutil.which("nginx"), "oauth2-proxy or nginx is not there")
class Proxies(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="hob-suite-")
        self.addCleanup(shutil.rmtree, self.place)
        self.env = {"PATH": os.environ["PATH"], "HOME": self.place, "HOB_DIR": self.place + "/run"}
        for project in ["acme", "other"]:
            self.repository(project)
        self.start_oauth2_proxy()
        self.write("rights.py", HANDLER)
        self.write("hob.toml", CONFIG % {"port": self.port})
        self.run_program([HOB, "trust"])
        site = self.start([HOB, "serve", ".", "--listen", "0"], stdout=subprocess.PIPE)
        first = site.stdout.readline().decode()
        self.addCleanup(site.stdout.close)
        self.hob = re.fullmatch(r"hob: serving http://127\.0\.0\.1:(\d+)/\n", first)[1]

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_program(self, words, at="."):
        place = os.path.join(self.place, at)
        subprocess.run(words, check=True, env=self.env, cwd=place, stdout=subprocess.DEVNULL)

    def start(self, words, **more):
        usual = {"env": self.env, "cwd": self.place, "stdin": subprocess.DEVNULL}
        process = subprocess.Popen(words, **usual, **more)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=WAIT_S)

    def repository(self, project):
        at = os.path.join("srv", project)
        os.makedirs(os.path.join(self.place, at))
        self.write(os.path.join(at, "f"), f"of {project}")
        name = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        self.run_program(["git", "init", "--quiet", "--initial-branch=main"], at)
        self.run_program(["git", "add", "f"], at)
        self.run_program(["git", *name, "commit", "--quiet", "--message", "x"], at)

    def start_oauth2_proxy(self):
        lines = []
        for user in ["alice", "bob"]:
            digest = base64.b64encode(hashlib.sha1(f"of {user}".encode()).digest()).decode()
            lines.append(f"{user}:{{SHA}}{digest}\n")
        self.write("passwords", "".join(lines))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = [
            f"--http-address=127.0.0.1:{self.port}", "--client-id=x", "--client-secret=x",
            "--cookie-secret=0123456789abcdef", "--cookie-secure=false", "--email-domain=*",
            "--upstream=static://202", "--set-xauthrequest", "--provider=github",
            f"--htpasswd-file={self.place}/passwords",
        ]  # fmt: skip
        said = open(os.path.join(self.place, "oauth2-proxy.log"), "wb")
        self.addCleanup(said.close)
        self.start([TOOL, *words], stdout=said, stderr=said)
        self.until(lambda: ask(self.proxy(), "/ping")[0] == 200)

    def until(self, is_so):
        until = time.monotonic() + WAIT_S
        while True:
            try:
                if is_so():
                    return
            except OSError:
                pass
            self.assertLess(time.monotonic(), until, "it does not answer")
            time.sleep(0.02)

    def proxy(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)

    def site(self, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.hob), timeout=WAIT_S)
        return ask(connection, path, headers)

    def test_an_address_that_speaks_auth_request_is_asked(self):
        path = "/asked/blob/acme/main?path=f"
        self.assertEqual(self.site(path, basic("alice", "of alice"))[:2], (200, b"of acme"))
        absent = self.site("/asked/blob/absent/main?path=f", basic("alice", "of alice"))
        for wrong in [basic("alice", "of bob"), basic("eve", "of alice"), None]:
            denied = self.site(path, wrong)
            self.assertEqual(denied[:2], (404, absent[1]))
        # Who has signed in with a form comes with a cookie.
        form = urllib.parse.urlencode({"username": "bob", "password": "of bob"})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        cookies = ask(self.proxy(), "/oauth2/sign_in", kind, form)[2].get_all("Set-Cookie")
        cookie = "; ".join(each.split(";")[0] for each in cookies)
        self.assertEqual(self.site(path, {"Cookie": cookie})[:2], (200, b"of acme"))
        self.assertEqual(self.site(path, {"Cookie": cookie[:-9]})[0], 404)

    def test_a_proxy_before_hob_says_who_it_is(self):
        self.write("nginx.conf", NGINX % {"place": self.place, "port": self.port, "hob": self.hob})
        config = os.path.join(self.place, "nginx.conf")
        self.start(["nginx", "-p", self.place, "-e", self.place + "/nginx.log", "-c", config])
        front = os.path.join(self.place, "nginx.sock")
        path = "/git/blob/%s/main?path=f"
        alice = basic("alice", "of alice")
        self.until(lambda: ask(OverSocket(front), path % "acme", alice)[0] == 200)
        self.assertEqual(ask(OverSocket(front), path % "acme", alice)[1], b"of acme")
        self.assertEqual(ask(OverSocket(front), path % "other", alice)[0], 404)
        # What a client says of itself is replaced by what the proxy knows.
        bob = {**basic("bob", "of bob"), "X-Remote-User": "alice"}
        self.assertEqual(ask(OverSocket(front), path % "acme", bob)[0], 404)
        self.assertEqual(ask(OverSocket(front), path % "acme")[0], 401)
