# SPDX-License-Identifier: Apache-2.0
"""scripts/release: what it makes is whole, works, and has the same bytes wherever and whenever it is made."""
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests/container")]
import podman  # noqa: E402
import packages  # noqa: E402

BINARY = pathlib.Path(os.environ["SBA_BINARY"])
VERSION = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
ARCHITECTURES = ["amd64", "arm64"] if os.environ.get("SBA_LONG") else [HOST]
EPOCH = "1790000000"


def output_of(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, **options).stdout


def release(top, **environment):
    """Runs the script on a copy of the tree; returns the digest of each file in dist/."""
    done = subprocess.run([top / "scripts/release", VERSION, *ARCHITECTURES], capture_output=True, text=True,
                          timeout=1500,
                          env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "SBA_VENDOR_ALLOW_OLDER": "1", **environment})
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (top / "dist").iterdir()}


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="sba-release-"))
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.top = cls.place / "a copy"
        tracked = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                 capture_output=True)
        if tracked.returncode:
            raise unittest.SkipTest("the tree is not git's, so its files are not known")
        cls.top.mkdir()
        subprocess.run(["tar", "-C", TOP, "--null", "--files-from=-", "-cf", cls.place / "tree"], input=tracked.stdout,
                       check=True)
        subprocess.run(["tar", "-C", cls.top, "-xf", cls.place / "tree"], check=True)
        cls.digests = release(cls.top)
        cls.dist = cls.top / "dist"

    def test_the_bytes_are_the_same_in_another_directory_and_another_day(self):
        # BINARY was built elsewhere; what is packed from it again has other times of files, zone and mask.
        self.assertEqual(self.digests[f"cynode-sba-{VERSION}-{HOST}"], hashlib.sha256(BINARY.read_bytes()).hexdigest())
        for path in self.top.rglob("*"):
            if "build" not in path.relative_to(self.top).parts[:1]:
                os.utime(path, (0, 0), follow_symlinks=False)
        mask = os.umask(0o077)
        self.addCleanup(os.umask, mask)
        self.assertEqual(release(self.top, TZ="Pacific/Auckland", LC_ALL="C.UTF-8"), self.digests)

    def test_the_sums_are_those_of_all_files(self):
        lines = (self.dist / "SHA256SUMS").read_text().splitlines()
        self.assertEqual({line.split()[1]: line.split()[0] for line in lines},
                         {name: digest for name, digest in self.digests.items() if name != "SHA256SUMS"})
        self.assertEqual(len(lines), 6 * len(ARCHITECTURES))

    def test_the_package_and_the_archive_have_the_same_files(self):
        root, archive = self.place / "root", self.place / "archive"
        subprocess.run(["dpkg-deb", "--extract", self.dist / f"cynode-sba_{VERSION}_{HOST}.deb", root], check=True)
        self.assertEqual(output_of("dpkg-deb", "--field", self.dist / f"cynode-sba_{VERSION}_{HOST}.deb", "Version",
                                   "Architecture", "Depends"),
                         f"Version: {VERSION}\nArchitecture: {HOST}\n")
        archive.mkdir()
        subprocess.run(["tar", "-C", archive, "-xf", self.dist / f"cynode-sba-{VERSION}-{HOST}.tar.gz"], check=True)
        (archive,) = archive.iterdir()
        self.assertEqual(archive.name, f"cynode-sba-{VERSION}")
        files = {str(path.relative_to(archive)) for path in archive.rglob("*") if path.is_file()}
        debian = {"share/man/man1/cynode-sba.1.gz": "share/man/man1/cynode-sba.1",
                  "share/zsh/vendor-completions/_cynode-sba": "share/zsh/site-functions/_cynode-sba"}
        installed = {str(path.relative_to(root / "usr")) for path in root.rglob("*") if path.is_file()}
        self.assertLessEqual(debian.keys(), installed)
        packed = {debian.get(name, name) for name in installed}
        self.assertEqual(packed - files,
                         {"share/doc/cynode-sba/changelog.gz", "share/lintian/overrides/cynode-sba"})  # Debian's own
        self.assertEqual(files - packed, set())
        self.assertLessEqual({"bin/cynode-sba", "share/man/man1/cynode-sba.1", "share/cynode-sba/job.schema.json",
                              "share/bash-completion/completions/cynode-sba", "share/doc/cynode-sba/copyright",
                              "share/doc/cynode-sba/licenses/openssl"}, {name.rstrip("/") for name in files} | {
                                  str(path.relative_to(archive)) for path in archive.rglob("*")})
        self.assertIn(VERSION, output_of(root / "usr/bin/cynode-sba", "--version"))

    def test_the_wheel_installs_with_pipx_and_uv(self):
        (wheel,) = self.dist.glob(f"cynode_sba-{VERSION}-*{'x86_64' if HOST == 'amd64' else 'aarch64'}.whl")
        tools = packages.environment("installers-1", "pipx==1.18.4", "uv==0.13.9")
        for name, arguments in (("pipx", ["install"]), ("uv", ["tool", "install", "--offline"])):
            place = self.place / name
            variables = {"PIPX_HOME": place, "PIPX_BIN_DIR": place / "bin", "UV_TOOL_DIR": place,
                         "UV_TOOL_BIN_DIR": place / "bin", "UV_CACHE_DIR": place / "cache"}
            subprocess.run([tools / name, *arguments, wheel], check=True, capture_output=True, timeout=300,
                           env={**os.environ, **{variable: str(path) for variable, path in variables.items()}})
            self.assertIn(VERSION, output_of(place / "bin/cynode-sba", "--version"))

    def test_the_bill_of_materials_names_every_library(self):
        path = self.dist / f"cynode-sba-{VERSION}-{HOST}.spdx.json"
        named = {package["name"]: package for package in json.loads(path.read_text())["packages"]}
        linked = output_of(BINARY, "--version")
        for name in ("Lua", "lua-cjson", "LPeg", "OpenSSL", "libcurl", "PCRE2"):
            self.assertIn(f"{name} {named[name]['versionInfo']}", linked)
        self.assertEqual(named["cynode-sba"]["checksums"][0]["checksumValue"],
                         self.digests[f"cynode-sba-{VERSION}-{HOST}"])
        checker = packages.environment("spdx-tools-0.8.3", "spdx-tools==0.8.3", "click<8.2") / "pyspdxtools"
        done = subprocess.run([checker, "--infile", path], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_image_runs_a_job(self):
        archive = self.dist / f"cynode-sba-{VERSION}-{HOST}.oci.tar"
        job_directory, workspace = self.place / "job", self.place / "workspace"
        for directory in (job_directory, workspace):
            directory.mkdir()
            os.chown(directory, 1000, 1000) if os.geteuid() == 0 else self.skipTest("wants root")
        (job_directory / "job.json").write_text(json.dumps({
            "protocol_version": "1.0", "job_id": "j", "task_id": "t",
            "constraints": {"max_runtime_seconds": 60, "max_output_bytes": 1000},
            "steps": [{"type": "write_file", "arguments": {"path": "made", "content": "by the image"}},
                      {"type": "run_command", "arguments": {"command": "cynode-sba", "args": ["--version"]}}]}))
        os.chmod(self.place, 0o755)
        loaded = podman.podman("load", "--input", str(archive), check=False)
        if loaded.returncode:
            self.skipTest("podman cannot load an image here: " + loaded.stderr[-200:])
        image = loaded.stdout.split()[-1]
        self.assertRegex(image, rf"^(localhost|docker\.io/library)/cynode-sba:{re.escape(VERSION)}$")
        for options in podman.OPTIONS:
            done = podman.podman("run", "--rm", "--network=none", *options, f"--volume={job_directory}:/job",
                                 f"--volume={workspace}:/workspace", image, check=False)
            if (job_directory / "result.json").exists():
                break
        else:
            self.skipTest("no container can run here: " + done.stderr[-200:])
        result = json.loads((job_directory / "result.json").read_text())
        self.assertEqual((done.returncode, result["status"]), (0, "success"), result)
        self.assertIn(VERSION, result["steps"][1]["output"])
        self.assertEqual((workspace / "made").read_text(), "by the image")

    def test_another_version_is_refused(self):
        done = subprocess.run([self.top / "scripts/release", "9.9.9"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"this tree is version {VERSION}, not 9.9.9", done.stderr)


class Workflows(unittest.TestCase):
    def test_they_are_well_formed(self):
        # The one that makes releases, and the one of the tutorial.
        actionlint = packages.go_program("actionlint-2", "github.com/rhysd/actionlint/cmd/actionlint",
                                         "github.com/rhysd/actionlint@v1.7.12")
        shown = re.search(r"^```yaml github.yml\n(.*?)^```$", (TOP / "docs/tutorial.md").read_text(),
                          re.MULTILINE | re.DOTALL)[1]
        for arguments, workflow in (([TOP / ".github/workflows/release.yml"], ""), (["-"], shown)):
            done = subprocess.run([actionlint, *arguments], input=workflow, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (0, ""))


if os.geteuid() == 0:
    podman.enter_namespace()
unittest.main()
