# SPDX-License-Identifier: Apache-2.0
"""The clients in clients/: their types are those of the schemas, and they run with the binary of SBA_BINARY."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
import packages  # noqa: E402

BINARY = os.environ["SBA_BINARY"]
CLIENTS = TOP / "clients"
VERSION = re.search(r"VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text().split("project(")[1])[1]
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


class Clients(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="sba-clients-")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def check(self, *command, **options):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                              **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def require_go(self):
        if not shutil.which("go"):
            self.skipTest("there is no go here")

    def test_the_types_are_those_of_the_schemas(self):
        self.require_go()
        for directory in ("python/cynode_sba", "go"):
            (self.place / directory).mkdir(parents=True)
        self.check(sys.executable, CLIENTS / "generate.py", BINARY, self.place)
        for name in ("python/cynode_sba/types.py", "go/types.go"):
            self.assertEqual((CLIENTS / name).read_text(), (self.place / name).read_text(),
                             f"run clients/generate.py, for clients/{name} is old")

    def test_the_python_client(self):
        self.check(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", CLIENTS / "python/tests",
                   env={**os.environ, "PYTHONPATH": str(CLIENTS / "python"), "PYTHONDONTWRITEBYTECODE": "1"})

    def test_a_wheel_brings_program_and_client(self):
        places = [self.place / name for name in ("one", "two")]
        for place in places:
            place.mkdir()
            self.check(TOP / "scripts/wheel", VERSION, MACHINE, BINARY, TOP / "examples/eval", place)
        (wheel,), (again,) = (list(place.iterdir()) for place in places)
        self.assertEqual(wheel.read_bytes(), again.read_bytes())
        self.check(sys.executable, "-m", "venv", self.place / "venv")
        self.check(self.place / "venv/bin/pip", "install", "--no-index", wheel)
        self.assertIn(f"cynode-sba {VERSION} ", self.check(self.place / "venv/bin/cynode-sba", "--version"))
        script = "import cynode_sba, cynode_sba.collect; print(cynode_sba._program('cynode-sba'))"
        found = self.check(self.place / "venv/bin/python", "-c", script, env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(found, f"{self.place}/venv/bin/cynode-sba\n")

    def test_installing_the_python_client_leaves_nothing_in_the_checkout(self):
        programs = packages.environment("flit", "flit_core==3.12.0", oldest=(3, 11))
        before = sorted((CLIENTS / "python").rglob("*"))
        self.check(programs / "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-compile",
                   "--target", self.place, CLIENTS / "python")
        self.assertEqual(sorted((CLIENTS / "python").rglob("*")), before)
        self.assertTrue((self.place / "cynode_sba/py.typed").exists())

    def test_the_types_of_the_python_client_are_strict(self):
        mypy = packages.environment("mypy-2", "mypy==1.18.2", "atif==1.8.0") / "mypy"
        self.check(mypy, "--strict", "--allow-any-generics", "--cache-dir", self.place, CLIENTS / "python/cynode_sba")

    def test_the_go_client(self):
        self.require_go()
        env = {**os.environ, "TMPDIR": str(self.place), "GOFLAGS": "-count=1", "GOPROXY": "off"}
        names = ["fix-failing-test", "read-and-search", "refused-job", "timeout-keeps-output", "agent"]
        self.place.chmod(0o755)
        printed = self.check(TOP / "examples/run", "--keep", "--binary", BINARY, *names, env=env)
        kept = next(path for path in self.place.glob("sba-examples-*"))
        self.addCleanup(shutil.rmtree, kept, ignore_errors=True)
        self.assertIn("as expected", printed)
        self.check("go", "vet", "./...", cwd=CLIENTS / "go", env=env)
        self.check("go", "test", "./...", cwd=CLIENTS / "go", env={**env, "SBA_EXAMPLES": str(kept)})


unittest.main()
