# SPDX-License-Identifier: Apache-2.0
"""Model requests, calls of the gateway's tools and reports through a real nginx and a real tinyproxy."""
import sba
from agent_case import AgentCase
from servers import mcp, nginx, real, status, tinyproxy

TOKEN = "tok-5f1c1f4e8e1c4b8e9a52"
PASSWORD = "sesame-1b9c2d3e4f"


class OutsideCase(AgentCase):
    """One authority for all tests; each job is a function of a server's URL and the environment."""

    # Seconds of a job whose failure could pass: a model is asked again until they are almost up, the gateway for three.
    ENOUGH = {"ask": 5, "use": 30}

    @classmethod
    def setUpClass(cls):
        cls.authority, cls.stranger = nginx.Authority(), nginx.Authority()
        cls.addClassCleanup(cls.authority.close)
        cls.addClassCleanup(cls.stranger.close)
        cls.trust = {"SSL_CERT_FILE": str(cls.authority.file)}

    def upstream(self, **options):
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

    def ask(self, url, env=None, seconds=60, variable="OLLAMA_BASE_URL", **options):
        job = self.job(self.step("ask_model", prompt="hello?"), max_runtime_seconds=seconds,
                       inference={"allowed_models": ["m"]})
        return self.run_job(job, env={variable: url, **(env or {})}, **options)

    def use(self, url, env=None, seconds=60, **options):
        """The gateway is sought for some seconds."""
        job = self.job(self.step("call_tool", tool="help"), max_runtime_seconds=seconds)
        return self.run_job(job, env={"SBA_MCP_GATEWAY_URL": url + "/mcp", "SBA_MCP_TOKEN": TOKEN, **(env or {})},
                            **options)

    def report(self, url, env=None, **options):
        return self.run_job(self.job(self.run_command("true")),
                            env={"SBA_JOB_STATUS_URL": url + "/status", **(env or {})}, **options)

    def assert_works(self, outcome):
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.steps[0]["result"]["content"], "hello")

    def assert_fails(self, outcome, *words, codes=("inference_unavailable", "step_failed")):
        self.assertIn(outcome.code, codes, outcome.result)
        self.assert_says(outcome.message, *words)
        self.assertNotIn("\n", outcome.message)
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
        unknown = "unable to get local issuer certificate"
        advice = "SSL_CERT_FILE or SSL_CERT_DIR names the authorities"
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
            self.assert_fails(outcome, before.urls[0], "status 502", "an HTML page")
        self.assertGreater(before.log().count('"GET /'), 1)

    def test_reports(self):
        receiver = self.closing(status.Server(200))
        locations = {"/": f"proxy_pass {receiver.url};"}
        before = self.nginx(self.tls(locations), {"listen": "unix", "locations": locations})
        for url in before.urls:
            receiver.bodies.clear()
            outcome = self.assert_end(self.report(url, self.trust), 0)
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
        self.assert_says(log, "CONNECT 0.0.0.0:", "GET http://0.0.0.0:")

    def test_refused(self):
        proxy = self.proxy(allow="^nobody\\.invalid$")
        tls, plain = self.servers()
        # Over plain HTTP nothing tells the proxy's 403 from the gateway's: a tool that is denied is the step's failure.
        for job, code in (self.ask, "inference_unavailable"), (self.use, "step_failed"):
            outcome = job(tls, self.through(proxy.url()))
            self.assert_fails(outcome, f"the proxy http://{proxy.address} refused to connect to {tls} (status 403)")
            self.assertEqual(outcome.events("model.retry"), [])
            outcome = job(plain, self.through(proxy.url()))
            self.assert_fails(outcome, "status 403", f"the proxy http://{proxy.address} may have answered in its place",
                              codes=(code,))

    def test_password(self):
        proxy = self.proxy(user="user", password=PASSWORD)
        for url in self.servers():
            for job in (self.ask, self.use):
                outcome = job(url, self.through(proxy.url("user:" + PASSWORD)))
                self.assert_works(outcome)
                self.assertNotIn(PASSWORD.encode(), outcome.stdout + outcome.stderr + outcome.result_bytes)
                self.assert_fails(job(url, self.through(proxy.url())),
                                  f"http://{proxy.address} refused to connect to {url}",
                                  "407: it wants a user name and a password")
                self.assert_fails(job(url, self.through(proxy.url("user:wrong-" + PASSWORD))), proxy.address,
                                  "status 401")


sba.main(__name__)
