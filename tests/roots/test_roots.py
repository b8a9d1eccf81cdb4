# SPDX-License-Identifier: Apache-2.0
"""The one file in other people's images: all examples in roots like busybox', Alpine's and Debian's; and what tools
print where they have no network.

The roots are made by `make`; Debian's is kept in the user's cache directory, since debootstrap takes a minute or two.
"""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BINARY = pathlib.Path(os.environ["SBA_BINARY"])
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "cynode-sba/roots")
USER = ["/usr/sbin/chroot", "--userspec=54321:54321", "--groups="]


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **options)


def make(kind, directory):
    done = run(HERE / "make", kind, directory)
    if done.returncode:
        raise AssertionError(f"tests/roots/make {kind}: {done.stdout}{done.stderr}")
    return directory


class Root:
    """What holds in every root. `path` is where it is."""

    def inside(self, *command, **options):
        """Runs a command with the machine's devices and processes mounted in the root, for as long as it runs."""
        script = 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec "$@"'
        return run("unshare", "--mount", "sh", "-c", script, str(self.path), *command, **options)

    def test_says_its_version(self):
        shutil.copy(BINARY, self.path / "tmp/cynode-sba")
        self.addCleanup((self.path / "tmp/cynode-sba").unlink)
        done = run(*USER, self.path, "/tmp/cynode-sba", "--version", env={})
        self.assertRegex(done.stdout, r"^cynode-sba \d+\.\d+\.\d+ \(", done.stderr)

    def test_all_examples(self):
        done = self.inside(TOP / "examples/run", "--binary", BINARY, "--root", self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("skipped", done.stdout)
        for example in (path.parent.name for path in (TOP / "examples").glob("*/job.json")):
            self.assertIn(f"\n== {example}: ", done.stdout)


# As tools print it that tell getaddrinfo's own words: Ruby, rsync.
RESOLVE = r'''#include <netdb.h>
#include <stdio.h>
int main(int count, char **words) {
  struct addrinfo *found;
  int problem = getaddrinfo(words[count - 1], "80", 0, &found);
  return problem ? fprintf(stderr, "getaddrinfo: %s\n", gai_strerror(problem)) : 0;
}
'''


# Runs a command where 127.0.0.1 is all there is, with a proxy that refuses whatever it is asked.
ALONE = r'''
import http.server, subprocess, sys, threading
class Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_error(403, "Filtered")
    do_CONNECT = do_HEAD = do_GET
    def log_message(self, *words): pass
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 3128), Refusing)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
'''
JAVA = r'''import java.net.*; import java.net.http.*; import java.net.http.HttpResponse.*;
public class Fetch { public static void main(String[] a) throws Exception {
  if (a[0].equals("old")) { new URL(a[1]).openStream().read(); return; }
  HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
  client.send(HttpRequest.newBuilder(URI.create(a[1])).build(), BodyHandlers.discarding()); } }
'''
POM = ("<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version>"
       "</project>")
SETTINGS = ("<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>@URL@/maven2</url></mirror></mirrors>"
            "</settings>")
NAME = "https://files.example.org"
OPTIONS = " ".join(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort=3128" for scheme in ("http", "https"))


def constraints(allowed):
    return {"max_runtime_seconds": 120, "max_output_bytes": 1000000, "ext_net_allowed": allowed}


class Tools(unittest.TestCase):
    """Programs of this machine that only large images have."""
    FETCH = {  # each in the workspace, with a @URL@ that cannot be had
        "mvn": "mvn -B -s settings.xml -Dmaven.repo.local=repository compile",
        "java": "java @PROXY@ Fetch.java old @URL@/x", "java (HttpClient)": "java @PROXY@ Fetch.java new @URL@/x",
        "bundle": "bundle install", "gem": "gem install --user-install --clear-sources --source @URL@ rails",
        "npm": "npm install --fetch-retries=0 --registry @URL@/ left-pad",
        "npx": "npx --yes --fetch-retries=0 --registry @URL@/ cowsay", "node": "node -e 'fetch(\"@URL@/x\")'",
        "curl": "curl -fsS @URL@/x", "git": "git clone @URL@/a.git",
        "python3": "python3 -c 'import urllib.request; urllib.request.urlopen(\"@URL@/x\")'",
    }
    # A refused tunnel that they do not call one: the server's own 403 looks the same.
    CANNOT_TELL = {"mvn", "bundle", "gem", "npm", "npx", "node", "curl"}

    def code(self, shell, url, proxied):
        with tempfile.TemporaryDirectory(prefix="sba-tools-") as directory:
            place = pathlib.Path(directory)
            shutil.copy(BINARY, place / "runner")
            shell = shell.replace("@URL@", url).replace("@PROXY@", OPTIONS if proxied else "")
            job = {"protocol_version": "1.0", "job_id": "j", "task_id": "t", "constraints": constraints(proxied),
                   "steps": [{"type": "run_command", "arguments": {"shell": shell}}]}
            files = {"Fetch.java": JAVA, "pom.xml": POM, "settings.xml": SETTINGS, "job.json": json.dumps(job),
                     "Gemfile": 'source "@URL@"\ngem "rails"\n'}
            for name, words in files.items():
                (place / name).write_text(words.replace("@URL@", url))
            for path in [place, *place.iterdir()]:
                os.chown(path, 54321, 54321)
            proxy = {name: "http://127.0.0.1:3128" for name in ("http_proxy", "https_proxy") if proxied}
            words = [word for name in ("job", "result") for word in (f"--{name}", place / f"{name}.json")]
            run("unshare", "--net", sys.executable, "-c", ALONE, *USER, "/", place / "runner", *words, "--workspace",
                place, env={"PATH": "/usr/bin:/bin", "HOME": directory, **proxy})
            return json.loads((place / "result.json").read_text())

    def test_what_they_want_of_the_outside_is_told(self):
        if run("unshare", "--net", "ip", "link", "set", "lo", "up").returncode:
            self.skipTest("there are no network namespaces here, or no ip")
        tried = 0
        for tool, shell in self.FETCH.items():
            if not shutil.which(tool.split()[0], path="/usr/bin:/bin"):
                print(f"{tool} is not here", flush=True)
                continue
            for url, proxied in ((NAME, False), ("https://192.0.2.1", False), (NAME, True)):
                with self.subTest(tool, url=url, proxied=proxied):
                    tried += 1
                    result = self.code(shell, url, proxied)
                    is_told = not proxied or tool not in self.CANNOT_TELL
                    self.assertEqual(result["failure_code"], "ext_net_required" if is_told else "step_failed", result)
                    self.assertTrue(not is_told or url[8:] in result["failure_message"], result["failure_message"])
        self.assertGreater(tried, 0, "there is none of them here")


class Small(Root):
    """A root that is made for the test and goes with it."""
    WANT_THE_OUTSIDE = ("wget http://nowhere.example/x", "wget https://nowhere.example/x", "wget http://192.0.2.1/x",
                        "nslookup nowhere.example", "nc nowhere.example 80", "/tmp/resolve nowhere.example")

    def failure_code(self, directory, shell):
        """Of a job with that one command, where there is no network."""
        (directory / "job.json").write_text(json.dumps({
            "protocol_version": "1.0", "job_id": "j", "task_id": "t", "constraints": constraints(False),
            "steps": [{"type": "run_command", "arguments": {"shell": shell}}]}))
        script = 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec "$@"'
        options = [word for name in ("job", "result") for word in (f"--{name}", f"/tmp/job/{name}.json")]
        command = [*USER, self.path, "/tmp/job/runner", *options, "--workspace", "/tmp/job"]
        done = run("unshare", "--mount", "--net", "sh", "-c", script, self.path, *command,
                   env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
        return json.loads((directory / "result.json").read_text()).get("failure_code"), done.stdout + done.stderr

    def test_what_its_tools_want_of_the_outside_is_told(self):
        if run("unshare", "--net", "true").returncode:
            self.skipTest("there are no network namespaces here")
        directory = self.path / "tmp/job"
        directory.mkdir()
        os.chown(directory, 54321, 54321)
        shutil.copy(BINARY, directory / "runner")
        (self.path / "tmp/resolve.c").write_text(RESOLVE)
        made = run(USER[0], self.path, "/bin/sh", "-c", "cc -o /tmp/resolve /tmp/resolve.c",
                   env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(made.returncode, 0, made.stderr)
        for command in self.WANT_THE_OUTSIDE:
            code, log = self.failure_code(directory, command)
            self.assertEqual(code, "ext_net_required", (command, log))
        self.assertEqual(self.failure_code(directory, "ls nowhere.example")[0], "step_failed")

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="sba-roots-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.directory.chmod(0o755)
        cls.path = make(cls.kind, cls.directory / "root")


class Busybox(Small, unittest.TestCase):
    kind = "busybox"


class Musl(Small, unittest.TestCase):
    """As Alpine is: musl, loaded at run time; what the examples compile is loaded by it."""
    kind = "musl"

    def test_has_its_own_loader(self):
        (self.path / "tmp/a.c").write_text('#include <stdio.h>\nint main(void) { return puts("loaded") < 0; }\n')
        done = run("/usr/sbin/chroot", self.path, "/bin/sh", "-c", "cc -o /tmp/a /tmp/a.c && /tmp/a",
                   env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(done.stdout, "loaded\n", done.stderr)
        self.assertIn("/lib/ld-musl-", run("readelf", "-lW", self.path / "tmp/a").stdout)


@unittest.skipUnless(shutil.which("debootstrap"), "there is no debootstrap")
class Debian(Root, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        CACHE.mkdir(parents=True, exist_ok=True)
        lock = open(CACHE / "lock", "w")
        cls.addClassCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        cls.path = CACHE / "debian"
        if not cls.path.exists():
            print("making a Debian with debootstrap, the first time only", flush=True)
            make("debian", cls.path)


if os.geteuid() != 0 or run("unshare", "--mount", "true").returncode:
    print("skipped: chroot and mounts want root, and a place where unshare works")
    sys.exit(77)
unittest.main(verbosity=2)
