# SPDX-License-Identifier: Apache-2.0
"""Ordinary tools do the same inside the rules as outside: each case runs twice, confined and with SBA_CONFINE=off."""
import shutil
import tempfile
import unittest

import sba
from confined_case import ABI, ConfinedCase

PATH = "/usr/local/go/bin:/usr/bin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp", "LC_ALL": "C.UTF-8", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local",
               "GOPROXY": "off", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
               "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null", "PIP_NO_INDEX": "1",
               "PIP_DISABLE_PIP_VERSION_CHECK": "1", "npm_config_update_notifier": "false"}

# What a tool needs, then a script whose exit status and last line must be the same inside and outside.
CASES = {
    "git": ("git", """
        git init -q a; cd a; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm $i; done
        git clone -q . ../b; git clone -q "file://$PWD" ../c; git worktree add -q ../w HEAD~1
        git -C ../w mv f1 g1; git -C ../w commit -qam moved; git stash list
        git gc -q --aggressive --prune=now; git fsck --strict 2>&1
        git -C ../b pull -q; git -C ../b branch -q x; git -C ../b rebase -q x
        git log --all --oneline | wc -l"""),
    "make -j": ("make", """
        printf 'all: a b c d\\n%%: ; sleep 0.0$$RANDOM; echo $@ > $@\\n' > Makefile; make -sj4
        cat a b c d | tr -d '\\n'"""),
    "go": ("go", """
        export GOPATH=$PWD/path; mkdir m; cd m; printf 'module m\\n' > go.mod
        printf 'package m\\nfunc F() int { return 1 }\\n' > m.go
        printf 'package m\\nimport "testing"\\nfunc TestF(t *testing.T) { if F() != 1 { t.Fatal() } }\\n' > m_test.go
        go build ./...; go vet ./...; go test ./... | cut -f1"""),
    "npm": ("npm", """
        export npm_config_cache=$PWD/cache; mkdir p q; cd p
        printf '{"name":"p","version":"1.0.0","bin":"p.js"}' > package.json
        printf '#!/usr/bin/env node\\nconsole.log("from p")\\n' > p.js; npm pack --silent >/dev/null; cd ../q
        printf '{"name":"q","version":"1.0.0","scripts":{"start":"p"}}' > package.json
        npm install --silent --offline --no-audit ../p/p-1.0.0.tgz >/dev/null; npm start --silent"""),
    "python": ("python3", """
        mkdir pkg; printf 'def f():\\n    return 42\\n' > pkg/__init__.py
        printf 'from setuptools import setup\\nsetup(name="pkg", version="1", packages=["pkg"])\\n' > setup.py
        python3 setup.py -q bdist_wheel 2>/dev/null; python3 -m venv v; v/bin/pip install -q dist/*.whl
        cd v; bin/python -c 'import pkg; print(pkg.f())'"""),
    "renames": ("mv", """
        f=$(mktemp); d=$(mktemp -d /var/tmp/XXXXXX); mkdir -p x/y; echo one > x/y/f
        mv x/y/f "$d/f"; mv "$d/f" "$f"; mv "$f" back
        mv x z; ln back z/link; ln -s back z/soft; mv -T z "$d/z"; cat "$d/z/link"; rm -r "$d" """),
    "unix socket": ("python3", """
        python3 - <<'END'
import os, socket, tempfile
with tempfile.TemporaryDirectory(dir="/tmp") as directory:
    for name in (directory + "/socket", "\\0sba-test-%d" % os.getpid()):
        server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen()
        if os.fork() == 0:
            client = socket.socket(socket.AF_UNIX); client.connect(name); client.send(b"hello"); os._exit(0)
        print(server.accept()[0].recv(9).decode()); os.wait()
END"""),
    "temporary files": ("python3", """
        python3 - <<'END'
import ctypes, os, tempfile
for directory in (".", "/tmp", "/dev/shm", "/var/tmp"):
    fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"x"); os.truncate(fd, 0)
    name = os.path.join(directory, "linked-%d" % os.getpid())
    at_fdcwd, follow = -100, 0x400
    assert ctypes.CDLL(None).linkat(at_fdcwd, b"/proc/self/fd/%d" % fd, at_fdcwd, name.encode(), follow) == 0, directory
    os.unlink(name)
    with tempfile.NamedTemporaryFile(dir=directory) as file: file.write(b"x")
os.memfd_create("m"); os.mkfifo("pipe"); print("all made")
END"""),
    "standard streams": ("tee", """echo a > /dev/stdout; echo b > /dev/stderr; echo c | tee /dev/fd/1 >/dev/null
        until grep -q '"output":"[^"]*b' "$RESULT"; do sleep 0.05; done; echo d > /proc/self/fd/1"""),
}


@unittest.skipUnless(ABI, "this kernel has no Landlock")
@unittest.skipIf(sba.IS_DEV, "minutes, and the same rules: the release build does it")
class Tools(ConfinedCase):
    SLOW = ("go", "python")  # half a minute of building Go's library, and installing pip twice: with tests/run --long

    def setUp(self):
        super().setUp()
        self.cache = tempfile.mkdtemp(prefix="sba-test-")  # Go's library is built once
        self.give(self.cache)
        self.addCleanup(shutil.rmtree, self.cache, ignore_errors=True)

    def run_case(self, script, mode):
        self.clean()
        done = self.run_job(self.job(self.step("run_command", argv=["/bin/bash", "-ec", script]),
                                     max_runtime_seconds=300),
                            env={**ENVIRONMENT, "GOCACHE": self.cache, "CGO_ENABLED": "0", "SBA_CONFINE": mode,
                                 "RESULT": str(self.result_path)}, timeout=400)
        step = done.steps[0]
        self.assertEqual(done.confinement["writes"], "landlock" if mode == "auto" else "none")
        return step["result"].get("exit_code"), step.get("output", "").splitlines()[-1:], step.get("output")

    def test_same_inside_and_outside(self):
        for name, (tool, script) in CASES.items():  # one after the other: they share the workspace
            with self.subTest(name):
                if not shutil.which(tool, path=PATH):
                    self.skipTest(f"{tool} is not installed")
                if name in self.SLOW and not sba.LONG:
                    self.skipTest("tests/run --long does it")
                outside, inside = self.run_case(script, "off"), self.run_case(script, "auto")
                self.assertEqual(outside[0], 0, outside[2])
                self.assertEqual(inside[:2], outside[:2], inside[2])

    @unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here")
    def test_other_file_systems_in_the_workspace(self):
        script = ("for d in tmpfs overlay bind; do cd $d; echo x > f && mv f g && mkdir d && mv g d && cat d/g; "
                  "cd ..; done")
        mounts = f"""cd {self.root}; mount -t tmpfs none workspace/tmpfs && chmod 777 workspace/tmpfs
            mount -t tmpfs none over && mkdir -m 777 over/u over/w over/l
            mount -t overlay none -o lowerdir=over/l,upperdir=over/u,workdir=over/w workspace/overlay
            mount --bind bound workspace/bind"""
        for directory in ("over", "bound", "workspace/tmpfs", "workspace/overlay", "workspace/bind"):
            (self.root / directory).mkdir()
            (self.root / directory).chmod(0o777)
        done = self.run_job(self.job(self.sh(script)), **self.in_namespace(mounts))
        self.assertEqual((done.exit, done.steps[0]["output"]), (0, "x\n" * 3), done.message)


sba.main(__name__)
