# SPDX-License-Identifier: Apache-2.0
"""Whole jobs through a real nginx, a real tinyproxy, and servers that do what no server should (servers/toxic.py): model requests, calls of
the gateway's tools, and reports. What the wire alone can do is in test_http.py, test_inference.py and test_mcp.py."""
import concurrent.futures
import time

import sba
from agent_case import AgentCase
from servers import mcp, nginx, real, status, tinyproxy, toxic

TOKEN = "tok-5f1c1f4e8e1c4b8e9a52"
PASSWORD = "sesame-1b9c2d3e4f"
PEAK = 64 << 20  # bytes of memory that no answer may take the runner beyond; one may have 32 MiB


class OutsideCase(AgentCase):
    """One authority for all tests, and the jobs that they send through a server: each a function of its URL and the environment."""

    # Seconds of a job whose failure could pass: a model is asked again until they are almost up, the gateway for three.
    ENOUGH = {"ask": 5, "use": 30}

    @classmethod
    def setUpClass(cls):
        cls.authority, cls.stranger = nginx.Authority(), nginx.Authority()
        cls.addClassCleanup(cls.authority.close)
        cls.addClassCleanup(cls.stranger.close)
        cls.trust = {"SSL_CERT_FILE": str(cls.authority.file)}

    def upstream(self, **options):
        """A gateway with one tool, which says hello."""
        return self.closing(mcp.Server(tools={"help": ({}, lambda _: mcp.text("hello"))}, **options))

    def model(self, count=20):
        return self.server(*[{"content": "hello"}] * count)

    def nginx(self, *servers):
        if not nginx.is_there():
            self.skipTest("nginx is not installed")
        return self.closing(nginx.Nginx(*servers))

    def tls(self, locations, name="DNS:localhost", authority=None, **options):
        certificate = (authority or self.authority).issue(name, **options)
        return {"listen": "tls", "certificate": certificate, "locations": locations}

    def toxic(self, kind, **options):
        return self.closing(toxic.Toxic(kind, **options))

    def ask(self, url, env=None, seconds=60, variable="OLLAMA_BASE_URL", **options):
        """A direct job that asks a model at a URL."""
        case = self.fresh()
        job = case.job(case.step("ask_model", prompt="hello?"), max_runtime_seconds=seconds, inference={"allowed_models": ["m"]})
        return case.run_job(job, env={variable: url, **(env or {})}, **options)

    def use(self, url, env=None, seconds=60, **options):
        """A direct job that calls the tool of the gateway at a URL; it is sought for some seconds."""
        case = self.fresh()
        job = case.job(case.step("call_tool", tool="help"), max_runtime_seconds=seconds)
        return case.run_job(job, env={"SBA_MCP_GATEWAY_URL": url + "/mcp", "SBA_MCP_TOKEN": TOKEN, **(env or {})}, **options)

    def report(self, url, env=None, **options):
        """A job whose beginning and end are reported to a URL."""
        case = self.fresh()
        job = case.job(case.step("run_command", command="true"))
        return case.run_job(job, env={"SBA_JOB_STATUS_URL": url + "/status", **(env or {})}, **options)

    def assert_works(self, outcome):
        self.assertEqual(outcome.exit, 0, outcome.result)
        self.assertEqual(outcome.result["steps"][0]["result"]["content"], "hello")

    def assert_fails(self, outcome, *words, codes=("inference_unavailable", "step_failed")):
        self.assertIn(outcome.result["failure_code"], codes, outcome.result)
        for word in words:
            self.assertIn(word, outcome.result["failure_message"])
        self.assertNotIn("\n", outcome.result["failure_message"])
        for secret in (TOKEN, PASSWORD):
            self.assertNotIn(secret.encode(), outcome.stdout + outcome.stderr + outcome.result_bytes)


class Nginx(OutsideCase):
    def locations(self, server, gateway):
        return {"/": f"proxy_pass {server.url};", "/mcp": f"proxy_pass {gateway.origin};"}

    def test_a_private_authority(self):
        gateway = self.upstream()
        before = self.nginx(self.tls(self.locations(self.model(), gateway)))
        self.assert_works(self.ask(before.urls[0], self.trust))
        self.assert_works(self.ask(before.urls[0] + "/v1", self.trust, variable="OPENAI_BASE_URL"))
        self.assert_works(self.use(before.urls[0], self.trust))
        self.assertEqual(gateway.headers("tools/call")[0]["Authorization"], "Bearer " + TOKEN)

    def test_certificates_that_are_not_taken(self):
        locations = self.locations(self.model(), self.upstream())
        before = self.nginx(self.tls(locations), self.tls(locations, "DNS:other.example"), self.tls(locations, days=-1))
        unknown, advice = "unable to get local issuer certificate", "SSL_CERT_FILE or SSL_CERT_DIR names the authorities"
        for url, env, *words in (
                (before.urls[0], {"SSL_CERT_FILE": str(self.stranger.file)}, unknown, advice),
                (before.urls[0], {}, unknown, advice),
                (before.urls[0], {"SSL_CERT_FILE": "/nowhere.pem"}, "/nowhere.pem"),
                (before.urls[1], self.trust, "localhost", "name"),
                (before.urls[2], self.trust, "expired")):
            for job in (self.ask, self.use):
                with self.subTest(f"{job.__name__} {words}"):
                    outcome = job(url, env)
                    self.assert_fails(outcome, url, *words)
                    self.assertEqual(outcome.events("model.retry"), [])

    def test_a_server_behind_that_never_comes(self):
        before = self.nginx({"listen": "http", "locations": {"/": f"proxy_pass http://127.0.0.1:{real.free_port()};"}})
        for job in (self.ask, self.use):
            outcome = job(before.urls[0], seconds=self.ENOUGH[job.__name__])
            self.assert_fails(outcome, before.urls[0], "status 502", "Bad Gateway")
        self.assertGreater(before.log().count('"GET /'), 1)

    def test_reports(self):
        receiver = self.closing(status.Server(200))
        locations = {"/": f"proxy_pass {receiver.url};"}
        before = self.nginx(self.tls(locations), {"listen": "unix", "locations": locations})
        for url in before.urls:
            receiver.bodies.clear()
            outcome = self.report(url, self.trust)
            self.assertEqual(outcome.exit, 0)
            self.assertEqual([body["status"] for body in receiver.bodies], ["in_progress", "completed"])
            self.assertEqual(receiver.bodies[1]["result"], outcome.result)
            self.assertEqual(len(outcome.events("report.sent")), 2)


class Proxies(OutsideCase):
    """tinyproxy before nginx. 0.0.0.0 is this machine and not the loopback, which no proxy is asked for."""

    def setUp(self):
        super().setUp()
        if not tinyproxy.is_there():
            self.skipTest("tinyproxy is not installed")

    def proxy(self, **options):
        return self.closing(tinyproxy.Tinyproxy(**options))

    def servers(self):
        """The same over TLS and without, as URLs that a proxy is asked for."""
        locations = {"/": f"proxy_pass {self.model().url};", "/mcp": f"proxy_pass {self.upstream().origin};"}
        before = self.nginx(self.tls(locations, "IP:0.0.0.0"), {"listen": "http", "locations": locations})
        return [f"{scheme}://0.0.0.0:{port}" for scheme, port in zip(("https", "http"), before.ports)]

    def through(self, url):
        return {"HTTP_PROXY": url, "https_proxy": url, **self.trust}

    def test_allowed(self):
        proxy = self.proxy()
        for url in self.servers():
            for job in (self.ask, self.use):
                self.assert_works(job(url, self.through(proxy.url())))
        log = proxy.log()
        self.assertIn("CONNECT 0.0.0.0:", log)
        self.assertIn("GET http://0.0.0.0:", log)

    def test_refused(self):
        proxy = self.proxy(allow="^nobody\\.invalid$")
        tls, plain = self.servers()
        # Over plain HTTP nothing tells the proxy's 403 from the server's: a tool that a gateway denies is the step's failure.
        for job, code in (self.ask, "inference_unavailable"), (self.use, "step_failed"):
            outcome = job(tls, self.through(proxy.url()))
            self.assert_fails(outcome, f"the proxy http://{proxy.address} refused to connect to {tls} (status 403)")
            self.assertEqual(outcome.events("model.retry"), [])
            outcome = job(plain, self.through(proxy.url()))
            self.assert_fails(outcome, "status 403", f"the proxy http://{proxy.address} may have answered in its place", codes=(code,))

    def test_password(self):
        proxy = self.proxy(user="user", password=PASSWORD)
        for url in self.servers():
            for job in (self.ask, self.use):
                outcome = job(url, self.through(proxy.url("user:" + PASSWORD)))
                self.assert_works(outcome)
                self.assertNotIn(PASSWORD.encode(), outcome.stdout + outcome.stderr + outcome.result_bytes)
                self.assert_fails(job(url, self.through(proxy.url())), f"http://{proxy.address} refused to connect to {url}",
                                  "407: it wants a user name and a password")
                self.assert_fails(job(url, self.through(proxy.url("user:wrong-" + PASSWORD))), proxy.address, "status 401")

    def test_no_proxy(self):
        proxy = self.proxy(allow="^nobody\\.invalid$")
        for url in self.servers():
            self.assert_works(self.ask(url, {**self.through(proxy.url()), "NO_PROXY": "example.org,0.0.0.0"}))
        self.assertNotIn("0.0.0.0:", proxy.log())


class Toxics(OutsideCase):
    # What the message says of it; those that another try could mend are tried until the job's time is almost up.
    SAYS = {
        "reset": ("reset by peer",), "too_long": ("100 bytes remaining",), "too_short": ("not JSON",), "endless_header": ("of headers",),
        "endless_body": ("more than", "bytes"), "bomb": ("compressed (gzip)",), "redirect": ("307", "redirect"),
    }

    def judge(self, kind, job, seconds=None):
        elsewhere = self.toxic("mute")
        server = self.toxic(kind, redirect_to=elsewhere.url + "/mcp")
        outcome = job(server.url, seconds=seconds or self.ENOUGH[job.__name__])
        self.assertEqual(elsewhere.requests, [])
        self.assertTrue(server.requests)
        return server, outcome

    def test_no_answer_of_theirs_is_taken_and_each_is_explained(self):
        cases = [(kind, job) for kind in self.SAYS for job in (self.ask, self.use)]
        with concurrent.futures.ThreadPoolExecutor(4) as several:
            verdicts = list(several.map(lambda one: self.judge(*one), cases))
        for (kind, job), (server, outcome) in zip(cases, verdicts):
            with self.subTest(f"{kind} {job.__name__}"):
                self.assert_fails(outcome, server.url, *self.SAYS[kind])
                self.assertLess(outcome.result["resource_usage"]["max_rss_bytes"], PEAK * (8 if sba.IS_DEV else 1))

    def test_a_byte_a_second_and_silence_end_with_the_jobs_time(self):
        cases = [(kind, job) for kind in ("drip", "mute") for job in (self.ask, self.use)]
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as several:
            verdicts = list(several.map(lambda one: self.judge(*one, seconds=3), cases))
        for server, outcome in verdicts:
            self.assertEqual((outcome.exit, outcome.result["status"]), (124, "timeout"))
            self.assertIn(server.url, outcome.result["failure_message"])
            self.assertLess(outcome.result["duration_ms"], 6000)
        self.assertLess(time.monotonic() - begun, 60)

    def test_reports_are_delivered_by_their_status_whatever_body_follows(self):
        kinds = ("drip", "too_long", "too_short", "endless_body", "bomb")
        servers = [self.toxic(kind) for kind in kinds]
        with concurrent.futures.ThreadPoolExecutor(4) as several:
            outcomes = list(several.map(lambda server: self.report(server.url), servers))
        for kind, outcome in zip(kinds, outcomes):
            with self.subTest(kind):
                self.assertEqual((outcome.exit, outcome.result["status"]), (0, "success"))
                self.assertEqual(len(outcome.events("report.sent")), 2, outcome.log)


if __name__ == "__main__":
    sba.main()
