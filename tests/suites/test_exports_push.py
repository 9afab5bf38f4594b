"""What a daemon pushes to a collector: a server of HTTP that reads it by the protobuf classes of
opentelemetry-proto, and answers by them.
"""

import http.server
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
import unittest

import otlp
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from world import private

HOB = os.environ["HOB_BIN"]
NAMES = ["plain.py", 'odd "name" \\ \n.py', "uml\u00e4ut <script>.py"]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SHELL = "00f067aa0ba902b7"
# How long anything may take on a busy machine.
LONG = 60


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        said = self.path, self.headers["Content-Type"]
        try:
            self.server.came.put((said, otlp.decoded(json.loads(text))))
        except Exception as wrong:
            self.server.came.put((said, wrong))
        answer = trace_service_pb2.ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = 1
        answer.partial_success.error_message = "one was too old"
        body = json_format.MessageToJson(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Pushed(unittest.TestCase):
    def setUp(self):
        self.place, self.world = private("push")
        self.addCleanup(shutil.rmtree, self.place)
        self.collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        self.collector.daemon_threads = True
        self.collector.came = queue.Queue()
        self.addCleanup(self.collector.server_close)
        self.addCleanup(self.collector.shutdown)
        threading.Thread(target=self.collector.serve_forever, daemon=True).start()
        os.makedirs(os.path.join(self.place, ".config/hob"))
        with open(os.path.join(self.place, ".config/hob/config.toml"), "w") as config:
            config.write(f'[export]\notlp = "http://127.0.0.1:{self.collector.server_port}"\n')

    def hob(self, *words, **more):
        world = dict(self.world, **more)
        done = subprocess.run([HOB, *words], cwd=self.place, env=world, stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, (words, done))
        return done.stdout

    def test_what_is_pushed_is_otlp_and_is_what_is_exported(self):
        self.addCleanup(self.hob, "stop")
        for name in NAMES:
            with open(os.path.join(self.place, name), "w") as script:
                script.write("import json\n")
            self.hob("run", name, TRACEPARENT=f"00-{TRACE}-{SHELL}-01")
        said, first = self.collector.came.get(timeout=LONG)
        self.assertEqual(said, ("/v1/traces", "application/json"))
        for _ in range(3):
            self.hob("run", NAMES[0])
        exported = otlp.decoded(json.loads(self.hob("trace", "export", "otlp")))
        calls = [span for span in self.spans([exported]).values() if span.name in NAMES]
        push = self.taken(len(calls))
        self.assertEqual((push["dropped"], push["why"]), (0, "one was too old"))
        self.assertGreater(push["rejected_spans"], 0)
        self.hob("stop")
        requests = [first]
        while not self.collector.came.empty():
            requests.append(self.collector.came.get()[1])
        pushed = self.spans(requests)
        self.assertEqual(set(pushed), set(self.spans([exported])))
        # What a ring has of a call is read when it is pushed or exported; the call is the same.
        for key, span in self.spans([exported]).items():
            for field in ("name", "parent_span_id", "start_time_unix_nano", "end_time_unix_nano"):
                self.assertEqual(getattr(pushed[key], field), getattr(span, field))
        traced = [key for key in pushed if key[0] == bytes.fromhex(TRACE)]
        above = {pushed[key].parent_span_id for key in traced} - {span for _, span in traced}
        self.assertEqual(above, {bytes.fromhex(SHELL)})

    def taken(self, calls):
        """What the daemon says when it has heard that the collector took so many calls."""
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            push = json.loads(self.hob("status", "--json"))["push"]
            if push["sent"] >= calls:
                return push
            time.sleep(0.01)
        raise AssertionError(push)

    def spans(self, requests):
        """By their ids."""
        found = {}
        for request in requests:
            self.assertIsInstance(request, trace_service_pb2.ExportTraceServiceRequest)
            for resource in request.resource_spans:
                for span in resource.scope_spans[0].spans:
                    key = span.trace_id, span.span_id
                    self.assertNotIn(key, found, "each is pushed once")
                    found[key] = span
        return found


if __name__ == "__main__":
    sys.exit(unittest.main())
