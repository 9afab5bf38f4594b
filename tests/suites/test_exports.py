"""What `hob trace export` writes, read by the parsers of those whose formats they are.

OTLP by the protobuf classes of opentelemetry-proto, Perfetto by those of the package perfetto,
metrics by `promtool`, and by the parser of OpenMetrics of prometheus_client. On each track nothing
may overlap that is not nested, each span has its parent, and each call that a daemon took is there
once. Of a call that no daemon took no times are known, so no export has it: one is made on purpose,
and a busy machine may make more.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.request

import otlp
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from prometheus_client.openmetrics import parser
from world import private

HOB = os.environ["HOB_BIN"]
CALLS = 12
# One worker: who comes later waits for who came before.
SITE = '[program.slow]\nhandler = "slow.py:handle"\nworkers = 1\n'
# With spans of its own: one within another, one of another thread, and one that is left open.
SPANNED = """
import threading, time
import hob

def work(name):
    with hob.span(name):
        time.sleep(0.01)

with hob.span("outer"):
    other = threading.Thread(target=work, args=("other <thread>",))
    other.start()
    work("inn\\x1ber\\\\" + "\u00e4" * 40)
    work("inner")
    other.join()
hob.span("open").__enter__()
"""
OWN = ["outer", "other <thread>", "inner", "open"]
CLIENT = os.path.join(os.path.dirname(__file__), "../../clients/python/hob.py")
HANDLER = "import time\ndef handle(message, context):\n    time.sleep(0.05)\n    return message\n"
WARM = ("copy-ready", "forked-on-demand", "queued")
# How often a program is run at most until there are enough receipts of it.
TRIES = 50
NAMES = ["plain.py", 'odd "name" \\ \n.py', "uml\u00e4ut <script>.py"]


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place, cls.world = private("exports")
        for name in NAMES:
            with open(os.path.join(cls.place, name), "w") as script:
                script.write("import json, time\ntime.sleep(0.05)\n")
        for _ in range(CALLS // len(NAMES)):
            # At the same time, so that calls overlap.
            running = [
                subprocess.Popen([HOB, "run", name], cwd=cls.place, env=cls.world) for name in NAMES
            ]
            for each in running:
                each.wait()
        cls.until("false", 1)
        for name in NAMES:
            cls.until(name, CALLS // len(NAMES))
        with open(os.path.join(cls.place, "spanned.py"), "w") as script:
            script.write(SPANNED)
        shutil.copy(CLIENT, cls.place)
        cls.until("spanned.py", 1, warm=True)
        cls.without_daemon()
        for name, text in ("hob.toml", SITE), ("slow.py", HANDLER):
            with open(os.path.join(cls.place, name), "w") as file:
                file.write(text)
        cls.hob("trust")
        # The worker is there when the others come: they wait for calls, and not for its start.
        cls.hob("ask", "slow", "first")
        asks = [[HOB, "ask", "slow", str(number)] for number in range(4)]
        asks = [subprocess.Popen(words, cwd=cls.place, env=cls.world) for words in asks]
        assert [ask.wait() for ask in asks] == [0] * 4

    @classmethod
    def tearDownClass(cls):
        cls.hob("stop")
        shutil.rmtree(cls.place)

    @classmethod
    def hob(cls, *words, fails=False):
        done = subprocess.run([HOB, *words], cwd=cls.place, env=cls.world, stdout=subprocess.PIPE)
        assert fails or done.returncode == 0, (words, done)
        return done.stdout

    @classmethod
    def until(cls, name, count, warm=False):
        """Runs a program until so many of its calls were taken by the daemon, or were warm."""
        for _ in range(TRIES):
            own = [one for one in cls.receipts() if one["program"]["name"] == name]
            # Only what was loaded ahead has the client that gathers spans.
            own = [one for one in own if not warm or one["reason"] in WARM]
            if len(own) >= count:
                return
            cls.hob("run", name, fails=True)
        raise AssertionError(f"the daemon took fewer than {count} calls of {name}")

    @classmethod
    def without_daemon(cls):
        """A call that no daemon takes: the directory of its socket may be written by others."""
        open_to_all = os.path.join(cls.place, "open")
        os.mkdir(open_to_all)
        os.chmod(open_to_all, 0o777)
        world = dict(cls.world, HOB_DIR=open_to_all)
        subprocess.run([HOB, "run", NAMES[0]], cwd=cls.place, env=world, check=True)

    @classmethod
    def entries(cls, *words):
        """What `hob log` has: receipts, and lines of calls that no daemon took."""
        lines = cls.hob("log", "--json", *(words or ("-n", "1000"))).splitlines()
        return [json.loads(line) for line in lines]

    @classmethod
    def receipts(cls, *words):
        return [one for one in cls.entries(*words) if one["schema"].startswith("hob.receipt/")]

    def test_calls_that_no_daemon_took_are_told_and_not_exported(self):
        others = [one for one in self.entries() if one["schema"].startswith("hob.fallback/")]
        self.assertIn("socket-dir-unsafe", {one["reason"] for one in others})
        self.assertEqual([one for one in others if "total_us" in one or "phases" in one], [])
        target = os.path.join(self.place, "told")
        said = self.hob("trace", "export", "otlp", "-o", target).decode()
        self.assertIn(f"{len(self.receipts())} calls written to {target}: ", said)
        calls = "1 call" if len(others) == 1 else f"{len(others)} calls"
        self.assertIn(f"\nnot in it: {calls} that no daemon took, whose times are not known\n", said)

    def test_otlp(self):
        request = otlp.decoded(json.loads(self.hob("trace", "export", "otlp")))
        spans = [
            (resource.resource.attributes[0].value.string_value, span)
            for resource in request.resource_spans
            for span in resource.scope_spans[0].spans
        ]
        calls = {span.span_id: span for _, span in spans if not span.parent_span_id}
        known = {span.span_id: span for _, span in spans}
        self.assertEqual(len(calls), len(self.receipts()))
        self.assertEqual(len({span.span_id for _, span in spans}), len(spans))
        services = {service for service, _ in spans}
        self.assertLessEqual(set(NAMES), services)
        for _, span in spans:
            self.assertGreaterEqual(span.end_time_unix_nano, span.start_time_unix_nano)
            if span.parent_span_id:
                parent = known[span.parent_span_id]
                self.assertEqual(span.trace_id, parent.trace_id)
                self.assertGreaterEqual(span.start_time_unix_nano, parent.start_time_unix_nano)
                if parent.parent_span_id:
                    self.assertLessEqual(span.end_time_unix_nano, parent.end_time_unix_nano)
        own = {span.name: span for service, span in spans if service == "spanned.py"}
        self.assertLessEqual(set(OWN), set(own))
        self.assertEqual(known[own["inner"].parent_span_id].name, "outer")
        self.assertIn(own["other <thread>"].parent_span_id, calls)
        failed = [span for service, span in spans if service == "false" and not span.parent_span_id]
        self.assertEqual([span.status.code for span in failed], [2])

    def test_perfetto(self):
        trace = perfetto_trace_pb2.Trace()
        exported = self.hob("trace", "export", "perfetto")
        again = self.hob("trace", "export", "perfetto")
        self.assertEqual(exported, again, "the same notes, the same bytes")
        trace.ParseFromString(exported)
        processes, names, open_slices, calls, waits = set(), {}, {}, 0, []
        own, ended = {}, {}
        for packet in trace.packet:
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                if track.HasField("process"):
                    processes.add(track.process.process_name)
                names[track.uuid] = track.name
                continue
            event = packet.track_event
            stack = open_slices.setdefault(event.track_uuid, [])
            if event.type == event.TYPE_SLICE_BEGIN:
                if names[event.track_uuid] == "spans":
                    own[event.name] = [*stack]
                    notes = {n.name: n.string_value for n in event.debug_annotations}
                    waits += [notes] if event.name == "waited" else []
                else:
                    calls += not stack
                # What is open began before, and what ends is the innermost.
                self.assertLessEqual(max((at for _, at in stack), default=0), packet.timestamp)
                stack.append((event.name, packet.timestamp))
            else:
                _, begun = stack.pop()
                self.assertLessEqual(max([begun, ended.get(event.track_uuid, 0)]), packet.timestamp)
                ended[event.track_uuid] = packet.timestamp
        self.assertEqual([stack for stack in open_slices.values() if stack], [])
        self.assertEqual(calls, len(self.receipts()))
        self.assertLessEqual(set(NAMES), processes)
        around = {name: [of for of, _ in own[name]] for name in OWN}
        self.assertEqual((around["outer"], around["inner"], around["open"]), ([], ["outer"], []))
        self.assertEqual(around["other <thread>"], [], "it is another thread's")
        self.check_waits([(wait["call"], wait["for"]) for wait in waits])

    def check_waits(self, waits):
        """Those who waited for another call name a call that was made."""
        asks = {str(one["call"]) for one in self.receipts() if one["program"]["name"] == "slow"}
        self.assertEqual(len(asks), 5)
        others = [(call, held) for call, held in waits if held.startswith("call ")]
        self.assertGreater(len(others), 0)
        for call, held in others:
            self.assertLess({call, held.split(", ")[0].removeprefix("call ")}, asks)

    def test_metrics(self):
        families = {
            one.name: one
            for one in parser.text_string_to_metric_families(
                self.hob("trace", "export", "prometheus", "--openmetrics").decode()
            )
        }
        samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for one in families.values()
            for sample in one.samples
        }
        status = json.loads(self.hob("status", "--json"))
        self.assertEqual(samples["hob_up", ()], 1)
        for how in ("warm", "cold", "refused", "lost"):
            value = samples["hob_calls_total", (("how", how),)]
            self.assertEqual(value, status["calls"][how + "_total"], how)
        cold = [value for (name, _), value in samples.items() if name == "hob_cold_total"]
        self.assertEqual(sum(cold), status["calls"]["cold_total"])
        # A name with quotes, backslashes and a line end is read as it is.
        programs = {
            dict(labels)["program"] for name, labels in samples if name == "hob_program_workers"
        }
        self.assertLessEqual({pool["program"] for pool in status["pools"]}, programs)
        self.assertTrue(any("\n" in name and '"' in name for name in programs), programs)
        file = os.path.join(self.place, "hob.prom")
        self.hob("trace", "export", "prometheus", "-o", file)
        with open(file) as written:
            text = written.read()
        self.assertEqual(len(families), text.count("# TYPE "))
        self.checked(text)
        self.hob("trace", "export", "prometheus", "--call", "1", fails=True)
        other = dict(self.world, HOB_DIR=os.path.join(self.place, "other"))
        os.mkdir(other["HOB_DIR"], 0o700)
        words = [HOB, "trace", "export", "prometheus"]
        none = subprocess.run(words, env=other, stdout=subprocess.PIPE).stdout.decode()
        self.checked(none)
        families = list(parser.text_string_to_metric_families(none + "# EOF\n"))
        self.assertEqual([one.name for one in families], ["hob_up"])
        self.assertEqual(families[0].samples[0].value, 0)

    def checked(self, text):
        """Has Prometheus's own tool read metrics, which also looks at their names."""
        words = ["promtool", "check", "metrics"]
        said = subprocess.run(words, input=text, capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""), text)

    def test_metrics_of_a_site(self):
        folder = os.path.join(self.place, "site")
        os.makedirs(os.path.join(folder, "public"))
        with open(os.path.join(folder, "wsgi.py"), "w") as app:
            app.write("def application(environ, start):\n    start('200 OK', [])\n    return [b'x']\n")
        words = [HOB, "serve", folder, "--listen", "0"]
        site = subprocess.Popen(words, env=self.world, stdout=subprocess.PIPE, text=True)
        try:
            port = int(site.stdout.readline().split(":")[-1].strip().strip("/"))
            address = f"http://127.0.0.1:{port}/"
            for _ in range(3):
                self.assertEqual(urllib.request.urlopen(address).read(), b"x")
            asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
            plain, open_text = self.metrics(port, "*/*"), self.metrics(port, asked)
            self.assertIn('hob_http_requests_total{mount="/",status="200"} 3', plain)
            self.checked(plain)
            families = list(parser.text_string_to_metric_families(open_text))
            self.assertEqual(len(families), plain.count("# TYPE "))
        finally:
            site.send_signal(signal.SIGTERM)
            site.wait()
            site.stdout.close()

    def metrics(self, port, accept):
        """What a site's front says of itself, on the socket that only its user reaches."""
        path = os.path.join(self.world["HOB_DIR"], "serve", str(port), "control")
        asks = http.client.HTTPConnection("site")
        asks.sock = socket.socket(socket.AF_UNIX)
        asks.sock.connect(path)
        asks.request("GET", "/metrics", headers={"Accept": accept})
        answer = asks.getresponse()
        text = answer.read().decode()
        asks.close()
        return text

    def test_one_call_and_one_program(self):
        newest = self.receipts()[-1]["call"]
        one = self.hob("trace", "export", "otlp", "--call", str(newest))
        resource = json.loads(one)["resourceSpans"][0]
        spans = resource["scopeSpans"][0]["spans"]
        named = [(each["key"], each["value"]) for span in spans for each in span.get("attributes", [])]
        numbers = [value for key, value in named if key == "hob.call"]
        self.assertEqual(numbers, [{"intValue": str(newest)}])
        own = json.loads(self.hob("trace", "export", "otlp", NAMES[1], "-n", "2"))["resourceSpans"]
        spans = [span for one in own for span in one["scopeSpans"][0]["spans"]]
        calls = [span for span in spans if "parentSpanId" not in span]
        # A call that no daemon took takes the place of none.
        self.assertEqual(len(calls), 2)
        target = os.path.join(self.place, "trace")
        said = self.hob("trace", "export", "perfetto", "--last", "1h", "-o", target).decode()
        self.assertIn("ui.perfetto.dev", said)
        self.assertGreater(os.path.getsize(target), 100)


if __name__ == "__main__":
    sys.exit(unittest.main())
