# SPDX-License-Identifier: Apache-2.0
"""native.http against servers that say exactly what a test wants, byte by byte. Real proxies: test_outside.py."""
import base64
import hashlib
import itertools
import os
import socket
import struct
import time

import sba
from servers import listener

# Opens one request, prints "status", then the body or its lines, or "failure CODE MESSAGE".
FETCH = r"""
local http = require "native.http"
local settings, request, how = ...
local client = assert(http.client(load("return " .. settings)()))
local failed = function(failure) print("\nfailure", failure.code, failure.message) end
local exchange, failure = client:open(load("return " .. request)())
if not exchange then return failed(failure) end
local status, failure = exchange:status()
if not status then return failed(failure) end
print("status", status, exchange:header("X-Test"))
while true do
  local piece, more
  if how == "read" then piece, more = exchange:read() else piece, more = exchange:line() end
  if not piece then
    if more then failed(more) end
    break
  end
  if how == "read" then io.write(piece) else print(string.format("%q %s", piece, more)) end
end
exchange:close()
"""


class Server(listener.Listener):
    """Hands each request and its connection to a function; goes on with the connection where that returns "keep"."""

    def __init__(self, answer, address):
        self.answer, self.requests = answer, []
        super().__init__(address)

    def serve(self, connection):
        while request := listener.read_request(connection):
            self.requests.append(b"\r\n\r\n".join(request))
            if self.answer(connection, request) != "keep":
                return


def says(*pieces, pause=0):
    def answer(connection, _):
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
    return answer


def late(connection, _):
    time.sleep(0.3)
    connection.sendall(OK)


def silence(connection, _):
    connection.recv(1)


def ok(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    return "keep"


# Past the deadline, requests URL once as usual and once with ignore_interrupt and that timeout.
PAST_DEADLINE = r"""
local interrupt = require "native.interrupt"
local client = assert(require "native.http".client {})
interrupt.set_deadline(0)
for _, ignore_interrupt in ipairs { false, true } do
  local exchange = assert(client:open { method = "GET", url = arg[1], ignore_interrupt = ignore_interrupt,
    first_timeout = tonumber(arg[2]) })
  local status, failure = exchange:status()
  print(status or failure.code)
  exchange:close()
end
"""

HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"X-Test: yes\r\nConnection: close\r\n\r\n"


class Http(sba.SandboxCase):
    def server(self, answer, address=("127.0.0.1", 0)):
        return self.closing(Server(answer, address))

    def lua(self, script, *arguments):
        run = sba.run("--lua", "-e", script, *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        return run.stdout

    def fetch(self, url, how="read", settings="{}", **request):
        fields = {"method": '"GET"', "url": f"[==[{url}]==]", **request}
        table = ", ".join(f"{name} = {value}" for name, value in fields.items())
        return self.lua(FETCH, settings, f"{{{table}}}", how)

    def assert_failure(self, output, code, *words):
        last = output.decode().splitlines()[-1].split("\t")
        self.assertEqual(last[:2], ["failure", code])
        self.assert_says(last[2], *words)

    def test_an_answer_with_its_header(self):
        self.assertEqual(self.fetch(self.server(says(OK + b"hello")).url), b"status\t200\tyes\nhello")

    def test_a_unix_socket_and_its_path(self):
        server = self.server(says(OK + b"by socket"), f"{self.root}/a b.sock")
        self.assertEqual(self.fetch(server.url + "/v1/x?y=1"), b"status\t200\tyes\nby socket")
        self.assertTrue(server.requests[0].startswith(b"GET /v1/x?y=1 HTTP/1.1\r\n"))

    def test_a_body_is_sent_whole(self):
        server = self.server(says(OK))
        self.fetch(server.url, method='"POST"', body='("x"):rep(1000000)', headers='{"Content-Type: text/plain"}')
        self.assertTrue(server.requests[0].endswith(b"\r\n\r\n" + b"x" * 1000000))
        self.assertIn(b"Content-Type: text/plain\r\n", server.requests[0])
        self.assertNotIn(b"Expect:", server.requests[0])

    def body_with_file(self, content, sha256):
        self.put("a b", content)
        workspace = f'require("native.workspace").open("{self.workspace}")'
        return f'{{"before:", assert({workspace}:open("a b", "{sha256}")), "", ":after"}}'

    def test_a_body_of_parts_with_a_file_in_base64(self):
        content = os.urandom(3 << 20)
        server = self.server(says(OK))
        self.fetch(server.url, method='"POST"', body=self.body_with_file(content, hashlib.sha256(content).hexdigest()))
        wanted = b"before:" + base64.b64encode(content) + b":after"
        head, _, sent = server.requests[0].partition(b"\r\n\r\n")
        self.assertIn(f"Content-Length: {len(wanted)}\r\n".encode(), head + b"\r\n")
        self.assertEqual(hashlib.sha256(sent).digest(), hashlib.sha256(wanted).digest())

    def test_a_file_that_is_not_what_it_was_is_never_sent_whole(self):
        server = self.server(says(OK))
        body = self.body_with_file(b"x" * 100000, "0" * 64)
        self.assertIn(b"bad_body\twhat was to be sent to http://127.0.0.1",
                      self.fetch(server.url, method='"POST"', body=body))
        self.assertNotIn(b":after", b"".join(server.requests))

    def test_a_body_of_parts_is_sent_again_where_a_kept_connection_was_dead(self):
        def dies(connection, request):
            """The connection is closed without a word."""
            return None if len(server.requests) == 2 else ok(connection, request)
        server = self.server(dies)
        script = '''local client, url = require("native.http").client {}, ...
            local function post()
              local exchange = assert(client:open { method = "POST", url = url, body = { "one ", "two" } })
              print(exchange:status(), exchange:read())
              exchange:read()
              exchange:close()
            end
            post() post()'''
        self.assertEqual((self.lua(script, server.url), server.connections), (b"200\tok\n" * 2, 2))
        self.assertEqual([request.partition(b"\r\n\r\n")[2] for request in server.requests], [b"one two"] * 3)

    def test_a_timeout_for_the_whole(self):
        def drip(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            for number in range(200):
                connection.sendall(b"X-Drip: %d\r\n" % number)
                time.sleep(0.1)
        begun = time.monotonic()
        self.assertIn(b"slow_", self.fetch(self.server(drip).url, whole_timeout="0.5"))
        self.assertLess(time.monotonic() - begun, 10)

    def test_lines_whatever_pieces_they_come_in(self):
        text = "a\r\nb\rc\n\nd\u00e4\r\n".encode()
        server = self.server(says(OK, *[bytes([byte]) for byte in text], pause=0.002))
        self.assertEqual(self.fetch(server.url, "line").decode().splitlines()[1:],
                         ['"a" true', '"b" true', '"c" true', '"" true', '"dä" true'])

    def test_a_line_of_eight_megabytes(self):
        server = self.server(says(OK, *[b"z" * 100000] * 80, b"\nend"))
        self.assertEqual(len(self.fetch(server.url, "line")),
                         len("status\t200\tyes\n") + 8000000 + len('"" true\n"end" false\n'))

    def test_a_body_cut_short_is_no_answer(self):
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"):
            with self.subTest(answer):
                output = self.fetch(self.server(says(answer)).url)
                self.assertIn(b"half", output)
                self.assert_failure(output, "cut_off", "127.0.0.1")

    def test_broken_answers(self):
        def endless(connection, _):
            for piece in itertools.chain([OK], itertools.repeat(b" " * 65536)):
                connection.sendall(piece)

        def reset(connection, _):
            connection.sendall(HEAD + b"Content-Length: 9\r\n\r\nhalf")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def slow(connection, _):
            connection.sendall(OK + b"some")
            silence(connection, _)
        at_most = {"body_limit": "100000"}
        for name, answer, limit, code, *words in (
                ("nothing", says(), {}, "cut_off"),
                ("garbage", says(b"SSH-2.0-x\r\n\r\n"), {}, "bad_answer"),
                ("a body over its limit", says(OK, *[b"x" * 65536] * 64), at_most, "too_large", "100000 bytes"),
                ("endless headers", says(HEAD, *[b"X-A: " + b"b" * 1000 + b"\r\n"] * 200), {}, "too_large", "headers"),
                ("an endless header", says(HEAD, b"X-A: ", *[b"b" * 1000] * 200), {}, "too_large", "headers"),
                ("endless body", endless, at_most, "too_large", "100000 bytes"),
                ("reset", reset, {}, "cut_off", "reset by peer"),
                ("gzip that nobody asked for", says(HEAD, b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"), {},
                 "bad_answer", "compressed (gzip)"),
                ("headers cut short", says(HEAD, b"X-A: b\r\nX-"), {}, "cut_off", "127.0.0.1"),
                ("slow first byte", silence, {"first_timeout": "0.3"}, "slow_first_byte", "0.3 s"),
                ("slow middle", slow, {"idle_timeout": "0.3"}, "slow_answer")):
            with self.subTest(name):
                self.assert_failure(self.fetch(self.server(answer).url, **limit), code, *words)

    def test_no_such_socket(self):
        self.assert_failure(self.fetch("http+unix://%2Fnowhere.sock/x"), "connection_refused",
                            "the socket /nowhere.sock failed: there is no such")

    def test_a_name_that_does_not_resolve(self):
        self.assert_failure(self.fetch("http://no-such-host.invalid/"), "name_not_resolved", "no-such-host.invalid")

    def test_urls_that_are_none(self):
        for url in ("", "ftp://a/", "http+unix://relative/x", "file:///etc/passwd", "http://u:p@host/",
                    f"http+unix://{'%2Fabc' * 27}/x"):
            with self.subTest(url):
                output = self.fetch(url)
                self.assert_failure(output, "invalid_url")
                self.assertNotIn(b"u:p", output)

    def test_what_is_sent_once_is_not_lost_where_a_proxy_ends_each_connection_after_an_answer(self):
        def answer(connection, request):
            """The connection is closed, of which the first answer says nothing."""
            if connection in served:
                return None
            served.append(connection)
            return ok(connection, request)
        served = []
        proxy = self.server(answer)
        self.assertEqual(self.lua("""
            local client = require("native.http").client { http_proxy = arg[1] }
            local request = { method = "POST", url = "http://example.invalid/", body = "x", once = true }
            for i = 1, 2 do
              local exchange <close> = client:open(request)
              print(exchange:status())
              repeat local piece = exchange:read() until not piece
            end""", proxy.url), b"200\n200\n")

    def test_a_dead_or_refusing_proxy_is_named_without_its_password(self):
        proxy = self.server(says())
        proxy.close()
        refusing = self.server(says(b"HTTP/1.1 403 Filtered\r\nContent-Length: 0\r\n\r\n"))
        for server, url, code in ((proxy, "http://example.invalid/", "proxy_failed"),
                                  (refusing, "https://example.invalid/", "proxy_refused")):
            with self.subTest(url):
                address = server.url[7:]
                proxy = f'"http://user:secret@{address}"'
                output = self.fetch(url, settings=f"{{http_proxy = {proxy}, https_proxy = {proxy}}}")
                self.assert_failure(output, code, address)
                self.assertNotIn(b"secret", output)

    def test_header_lines_cannot_be_smuggled(self):
        said = self.lua("""
            local client, headers = require("native.http").client{}, {"A: b\\r\\nC: d"}
            print(pcall(client.open, client, {method = "GET", url = "http://localhost/", headers = headers}))""")
        self.assertRegex(said, b"false.*single lines")

    def test_a_request_past_the_deadline(self):
        self.assertEqual(self.lua(PAST_DEADLINE, self.server(late).url, "30").split(), [b"timeout", b"200"])

    def test_a_tick_cannot_close_the_exchange_that_waits(self):
        said = self.lua("""
            local client = require("native.http").client {}
            local exchange = client:open { method = "GET", url = arg[1] }
            local closed
            client:tick(function() closed = { pcall(exchange.close, exchange) } end)
            print(exchange:status())
            print(closed[1], closed[2], exchange:close(), pcall(exchange.close, exchange))""", self.server(late).url)
        self.assertRegex(said, b"(?s)200.*false.*the exchange waits: its own tick cannot close it.*true")

    def test_a_tick_gives_the_one_before(self):
        said = self.lua("""
            local client = assert(require "native.http".client {})
            local function one() end
            local function two() error() end
            print(client:tick(one), client:tick(two) == one, client:tick(nil) == two, client:tick(nil))""")
        self.assertEqual(said.split(), [b"nil", b"true", b"true", b"nil"])


sba.main(__name__)
