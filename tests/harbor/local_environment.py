# SPDX-License-Identifier: Apache-2.0
"""An environment of Harbor that needs no container runtime: a root directory of its own below a temporary one, entered
with chroot.

The system's programs are mounted into it, read-only. What a task's Dockerfile copies is copied into its working
directory, and nothing else of it is done: the tasks of examples/harbor need no more. Root only.
"""
import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import override

from harbor.environments.base import BaseEnvironment, ExecResult

SYSTEM = ("bin", "sbin", "lib", "lib64")  # links into /usr
# $1: the root directory, $2: the user; the rest: the command. Mounts end with the namespace.
ENTER = """mount --rbind -r /usr "$1/usr" && mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
root=$1 user=$2 && shift 2 && exec chroot --userspec="$user" "$root" "$@" """


class LocalEnvironment(BaseEnvironment):
    @staticmethod
    @override
    def type() -> str:
        return "local"

    @override
    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    def path(self, inside: str) -> Path:
        """The path on the host of one in the environment."""
        return self.root / str(inside).lstrip("/")

    @override
    async def start(self, force_build: bool) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="sba-harbor-"))
        self.root.chmod(0o755)
        for name in ("usr", "dev", "proc", "etc", "root", "tmp", "var/tmp", "logs/agent", "logs/verifier",
                     "logs/artifacts"):
            (self.root / name).mkdir(parents=True)
            if name.startswith(("logs/", "tmp", "var/tmp")):
                (self.root / name).chmod(0o777)
        for name in SYSTEM:
            if os.path.islink(f"/{name}"):
                (self.root / name).symlink_to(os.readlink(f"/{name}"))
        if os.path.isdir("/etc/alternatives"):  # Debian's awk and others are links into it
            shutil.copytree("/etc/alternatives", self.root / "etc" / "alternatives", symlinks=True)
        (self.root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        lines = [line.split() for line in (self.environment_dir / "Dockerfile").read_text().splitlines() if line]
        self.directory = next(line[1] for line in lines if line[0] == "WORKDIR")
        for name, target in (line[1:] for line in lines if line[0] == "COPY"):
            self.path(target).mkdir(parents=True, exist_ok=True)
            shutil.copy(self.environment_dir / name, self.path(target))

    @override
    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self.root)

    @override
    async def upload_file(self, source_path, target_path: str) -> None:
        self.path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self.path(target_path))

    @override
    async def upload_dir(self, source_dir, target_dir: str) -> None:
        shutil.copytree(source_dir, self.path(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path) -> None:
        shutil.copy(self.path(source_path), target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir) -> None:
        shutil.copytree(self.path(source_dir), target_dir, dirs_exist_ok=True)

    @override
    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        within = f"cd {shlex.quote(cwd or self.directory)} && {command}"
        process = await asyncio.create_subprocess_exec(
            "unshare", "--mount", "sh", "-c", ENTER, "sh", str(self.root), str(self._resolve_user(user) or "root"),
            "bash", "-c", within, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                 **(self._merge_env(env) or {})})
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            await process.wait()
            return ExecResult(stderr=f"timed out after {timeout_sec} s", return_code=124)
        return ExecResult(stdout=stdout.decode(errors="replace"), stderr=stderr.decode(errors="replace"),
                          return_code=process.returncode)
