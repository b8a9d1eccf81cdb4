# SPDX-License-Identifier: Apache-2.0
"""Names that the runner looks up: as /etc says, within its times, and in no thread that a command could end."""
import os
import signal
import subprocess
import time
import unittest

import sba
from servers import dnsmasq, status

# Prints the status of an answer, or why there is none.
FETCH = """
local client = assert(require "native.http".client { http_proxy = arg[2] ~= "" and arg[2] or nil })
local exchange = client:open { method = "GET", url = arg[1], connect_timeout = tonumber(arg[3]) }
local status, failure = exchange:status()
print(status or failure.code .. ": " .. failure.message)
"""
# Sends SIGKILL to every thread of the runner that it finds, in every way, all the time.
KILLER = """
import ctypes, os, sys
libc, runner = ctypes.CDLL(None), int(sys.argv[1])
open("killing", "w").close()
while True:
    for thread in map(int, os.listdir(f"/proc/{runner}/task")):
        libc.kill(thread, 9), libc.syscall(200, thread, 9), libc.syscall(234, runner, thread, 9)
"""
# Nothing listens on ::1. The last name has more addresses than the 512 bytes of a datagram hold: TCP is asked.
HERE = ["127.0.0.1"]
NAMES = {"model": HERE, "my_model": HERE, "model.jobs.svc.cluster.local": HERE, "tools.node.svc.cluster.local": HERE,
         "api.example.org": HERE, "six.example.org": ["::ffff:127.0.0.1"], "both.example.org": ["::1", *HERE],
         "many.example.org": [f"127.0.1.{number}" for number in range(80)]}
SEARCH = "search jobs.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"  # as in a pod
SERVED = {  # what /etc/resolv.conf has besides the name server: hosts that answer
    "options ndots:0\n": ["model", "my_model", "api.example.org"],  # as in a network of compose
    "": ["model", "model.", "six.example.org", "both.example.org", "many.example.org", "localhost"],
    "search svc.cluster.local\n": ["tools.node", "api.example.org"],
    SEARCH: ["model", "tools.node", "tools.node.svc", "tools.node.svc.cluster.local", "api.example.org"]}


@unittest.skipUnless(sba.MAY_MOUNT and not sba.IS_DEV, "nothing can be mounted here, or Debian's libcurl looks up")
class Names(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.etc = self.folder(self.root / "etc")
        self.silent = self.closing(dnsmasq.Silent())
        self.resolv(self.silent)
        listener = self.closing(status.Server(200, address=("0.0.0.0", 0)))
        self.port = listener.socket.getsockname()[1]

    def resolv(self, *servers, more=""):
        self.put(self.etc / "resolv.conf", "".join(f"nameserver {one.address}\n" for one in servers) + more)

    def in_etc(self):
        """Options of start() for a runner whose /etc has the test's files only."""
        return self.in_namespace(f"mount --bind {self.etc} /etc")

    def fetch(self, host, proxy="", seconds=10):
        arguments = ["--lua", "-e", FETCH, f"http://{host}:{self.port}/", proxy, str(seconds)]
        return self.start(b"", arguments=arguments, **self.in_etc()).communicate(timeout=60)[0].decode().strip()

    def assert_fetches(self, *hosts, **options):
        for host in hosts:
            with self.subTest(host):
                self.assertEqual(self.fetch(host, **options), "200")

    def assert_fails(self, host, *words, **options):
        self.assert_says(self.fetch(host, **options), *words)

    @unittest.skipUnless(dnsmasq.is_there(), "dnsmasq is not installed")
    def test_are_found_as_resolv_conf_says(self):
        names = self.closing(dnsmasq.Dnsmasq(NAMES))
        for more, hosts in SERVED.items():
            self.resolv(names, more=more)
            self.assert_fetches(*hosts)
            self.assert_fails("nowhere.example.org", "name_not_resolved: ", "Could not resolve host: nowhere.example")
        self.resolv(self.silent, names)
        self.assert_fetches("api.example.org", seconds=3)

    def test_what_goes_wrong_with_one_question_does_not_end_the_search(self):
        """A domain that fails, one with which no name can be made, and an IPv6 address that is never answered."""
        server = self.closing(dnsmasq.Partial("api.example.org"))
        for search in ("other.failing", "failing other.failing .", ".", "jobs.local ."):
            self.resolv(server, more=f"search {search}\noptions ndots:5\n")
            self.assert_fetches("api.example.org", seconds=4)
        self.assert_fails("nowhere.example.org", "name_not_resolved: ", seconds=4)

    def test_are_found_in_hosts(self):
        self.put(self.etc / "hosts", "# of the pod\n127.0.0.1\tmodel model.internal # and more\n::1 six\n")
        for _ in ("a silent name server", "no resolv.conf"):
            self.assert_fetches("model", "MODEL.internal", "localhost")
            self.assert_fetches("nowhere.invalid", proxy=f"http://model:{self.port}")
            (self.etc / "resolv.conf").unlink(missing_ok=True)
        self.assert_fails("nowhere.invalid", "name_not_resolved: ", "Could not resolve host: nowhere.invalid")
        self.assert_fails("model.invalid", "proxy_failed: ", "resolve proxy: nowhere", proxy="http://nowhere:1")

    def test_what_is_no_file_to_be_read_counts_as_missing(self):
        """It held the runner for ever: a FIFO, and a file of some terabytes."""
        def large(path):
            path.touch()
            os.truncate(path, 1 << 40)

        for make in os.mkfifo, os.mkdir, large:
            self.put(self.etc / "hosts", "127.0.0.1 model\n")
            for name, host, answer in (("resolv.conf", "model", "200"), ("hosts", "model", "name_not_resolved")):
                with self.subTest(f"{make.__name__} {name}"):
                    (self.etc / name).unlink()
                    make(self.etc / name)
                    self.assert_says(self.fetch(host), answer)
                subprocess.run(["rm", "-r", self.etc / name], check=True)
                self.put(self.etc / name)

    def test_a_name_server_that_is_silent(self):
        self.assert_fails("model.invalid", "slow_connect: ", "was not resolved within 1.0 s", seconds=1)
        self.resolv(self.silent, more="options timeout:1 attempts:1\n")
        self.assert_fails("model.invalid", "name_not_resolved: ", seconds=3)
        self.assertTrue(self.silent.is_asked())

    def start_asking(self, seconds):
        """Starts a job whose model is looked up while a command that it left kills."""
        self.put("killer.py", KILLER)
        steps = self.sh("python3 killer.py $PPID >/dev/null 2>&1 &"), self.step("ask_model", prompt="hello?")
        job = self.job(*steps, max_runtime_seconds=seconds, inference={"allowed_models": ["m"]})
        return self.start(job, env={"SBA_CONFINE": "off", "OLLAMA_BASE_URL": "http://model.invalid"}, **self.in_etc())

    def test_the_deadline_is_kept_and_no_command_ends_the_runner(self):
        slow = sba.slowness()
        done = self.outcome_of(self.start_asking(3))
        self.assert_end(done, 75, "inference_unavailable")
        self.assertTrue(self.silent.is_asked() and (self.workspace / "killing").exists())
        self.assert_in_time(done, 3, slow)

    def test_a_cancel_ends_the_wait(self):
        process = self.start_asking(60)
        sba.wait_for(self.silent.is_asked, "a name to be looked up")
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assert_end(self.outcome_of(process), 143, "cancelled")
        self.assertLess(time.monotonic() - begun, 5)


sba.main(__name__)
