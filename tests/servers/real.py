# SPDX-License-Identifier: Apache-2.0
"""What nginx.py, tinyproxy.py and others share: a real server in a directory of its own, until close()."""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = 20  # seconds until a server must listen
BEGINNING = 60  # seconds until one of npm or PyPI must listen
USER = 54321 if os.geteuid() == 0 else None


def free_port():
    """A port on which nobody listens: below those that the kernel gives out, so that nobody comes by it meanwhile."""
    while True:
        port = random.randrange(10000, 32768)
        if not listens(port):
            return port


def is_there(program):
    return shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None


def listens(port, address="127.0.0.1"):
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


@contextlib.contextmanager
def listening(port, *command):
    """Runs a command that serves on that port, until the block ends, and ends what it has started too. The address of
    its MCP endpoint, where it has one."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True)
        try:
            end = time.monotonic() + BEGINNING
            while not listens(port):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(log.read().decode())
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class RealServer:
    """A server that configure() writes the settings of; command() starts it in the foreground."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sba-server-"))
        os.chmod(self.directory, 0o755)
        self.process = None

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def start(self, command, *ports, user=USER, address="127.0.0.1"):
        """Starts it, as another user where that is not None, and waits until it listens on every port."""
        for path in (self.directory, *self.directory.rglob("*")):
            os.chown(path, user or -1, user or -1)
        user = {"user": user, "group": user, "extra_groups": []} if user else {}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE,
                                        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, cwd=self.directory, **user)
        end = time.monotonic() + PATIENCE
        while not all(listens(port, address) for port in ports):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                words = self.process.stderr.read().decode()
                self.close()
                raise RuntimeError(f"{command[0]} does not listen: {words}")
            time.sleep(0.01)

    def log(self, name="log"):
        path = self.directory / name
        return path.read_text() if path.exists() else ""

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process:
            self.process.stderr.close()
        shutil.rmtree(self.directory, ignore_errors=True)
