# SPDX-License-Identifier: Apache-2.0
"""Passwords in addresses that were written by hand: a raw "/", "?", "#" or "@" in them ends the host for RFC 3986, not
for who wrote them. Nothing of such a password is in any sink, and no command gets the address of an endpoint with one.
"""
import urllib.parse

import sba
from secret_case import SecretCase, leaks

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
ENDPOINTS = ("SBA_JOB_STATUS_URL", "SBA_CALLBACK_URL", "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL", "SBA_API_EGRESS_URL",
             "OPENAI_BASE_URL", "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL", "ORCHESTRATOR_URL",
             "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# Before and behind each special character there is enough of the password to be seen as a leak.
PASSWORDS = ("correct-horse/battery-staple", "correct-horse?battery-staple", "correct-horse#battery-staple",
             "correct-horse@battery-staple", "1234567890/battery-staple", "correct-horse://battery-staple",
             "/correct-horse%2Fbattery-staple", "correct-horse\\battery-staple")
FORMS = ("http://alice:%s@127.0.0.1:9/", "http://alice:%s@127.0.0.1:9/v1/x@y?z@", "//alice:%s@127.0.0.1:9",
         "http:/alice:%s@127.0.0.1:9", "https:///alice:%s@127.0.0.1:9", "http:alice:%s@127.0.0.1:9",
         "alice:%s@127.0.0.1:9", "http://%s@127.0.0.1:9", " http://:%s@127.0.0.1:9",
         "http+unix://alice:%s@%%2Ftmp%%2Fno.sock/v1",
         "socks5://alice:%s@127.0.0.1:9", "HTTPS://alice:%s@[::1]:9", "http://alice:%s@")


class Addresses(SecretCase):
    def setUp(self):
        super().setUp()
        addresses = [(form % password, password) for form in FORMS for password in PASSWORDS]
        self.some = addresses[::7]

    def run_with(self, job, address, *names, **env):
        return self.run_job(job, env={**{name: address for name in names}, **env})

    def test_what_commands_print_of_them(self):
        script = "env; env | base64 -w0; env >environment; cat /proc/$PPID/environ >>environment 2>&1; true"
        for address, password in self.some:
            outcome = self.assert_end(self.run_with(self.job(self.sh(script)), address, *PROXIES, *ENDPOINTS), 0)
            self.assert_clean(outcome, password)
            self.assert_clean(outcome, urllib.parse.unquote(password))
            given = self.text("environment").splitlines()
            self.assertIn("HTTP_PROXY=" + address, given)  # as it was written; a file of the workspace is no sink
            self.assertEqual([line for line in given if line.split("=")[0] in ENDPOINTS], [], address)

    def test_what_a_proxy_that_cannot_be_used_says(self):
        for n, (address, password) in enumerate(self.some):
            reports = {"SBA_JOB_STATUS_URL": "http://192.0.2.1:1/"} if n == 0 else {}
            outcome = self.run_with(self.agent_job(max_runtime_seconds=1), address, "HTTP_PROXY",
                                    OLLAMA_BASE_URL="http://192.0.2.1:11434", **reports)
            self.assertNotEqual(outcome.exit, 0, address)
            self.assert_clean(outcome, password)

    def test_what_is_said_of_each_endpoint(self):
        for n, (address, password) in enumerate(self.some):
            name = ENDPOINTS[n % len(ENDPOINTS)]
            outcome = self.run_with(self.agent_job(max_runtime_seconds=1), address, name)
            self.assertNotEqual(outcome.exit, 0, (name, address))
            self.assert_clean(outcome, password)

    def test_a_beginning_that_could_be_a_port(self):
        for name in ("OLLAMA_BASE_URL", "SBA_MCP_GATEWAY_URL", "SBA_JOB_STATUS_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"):
            address = "http://alice:12345/battery-staple@127.0.0.1:9"
            outcome = self.run_with(self.job(), address, name)
            agent = self.run_with(self.agent_job(max_runtime_seconds=1), address, name)
            for sink in [*self.left(outcome).values(), *self.left(agent).values()]:
                self.assertNotIn(b"alice:12345", sink, name)

    def test_the_words_help(self):
        outcome = self.run_with(self.agent_job(), "http://alice:pa/ssw0rd@127.0.0.1:9", "HTTP_PROXY",
                                OLLAMA_BASE_URL="http://192.0.2.1:11434")
        self.assertIn("the address of the proxy has an @ after its host; "
                      "write / ? # and @ of a password as %2F %3F %23 and %40", outcome.message)
        outcome = self.run_with(self.agent_job(), "http://alice:pa/ssw0rd@127.0.0.1:9", "OLLAMA_BASE_URL")
        self.assertIn("the URL has an @ after its host", outcome.message)

    def test_blanks_around_a_proxy_are_ignored(self):
        server = self.status_server()
        outcome = self.run_with(self.job(), f" {server.url}\t", "HTTP_PROXY",
                                SBA_JOB_STATUS_URL="http://status.invalid/")
        self.assert_end(outcome, 0)
        self.assertTrue(server.heads[0].startswith("POST http://status.invalid/ "), outcome.log)

    def test_an_encoded_password_reaches_the_proxy(self):
        server = self.status_server()
        proxy = server.url.replace("http://", "http://alice:correct%2Fhorse%40staple@")
        outcome = self.run_with(self.job(), proxy, "HTTP_PROXY", SBA_JOB_STATUS_URL="http://status.invalid/")
        self.assert_end(outcome, 0)
        self.assertIn("Proxy-Authorization: Basic YWxpY2U6Y29ycmVjdC9ob3JzZUBzdGFwbGU=", server.heads[0])
        self.assertFalse(leaks(outcome.stderr, "correct/horse@staple"))


sba.main(__name__)
