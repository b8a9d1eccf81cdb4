# SPDX-License-Identifier: Apache-2.0
"""Podman without root, as a user who exists only for the test: the files that name users are overlaid in a mount namespace."""
import os
import pathlib
import signal
import subprocess

import podman

UID = 54321
SUBORDINATES = f"{UID}:200000:65536\n"


class Account:
    """A context: a home, a runtime directory and a store of images below a directory."""

    def __init__(self, root):
        self.root = pathlib.Path(root, "rootless")

    def __enter__(self):
        self.root.mkdir(mode=0o755)
        for name in ("home", "run"):
            (self.root / name).mkdir(mode=0o700)
            os.chown(self.root / name, UID, UID)
        (self.root / "passwd").write_text(pathlib.Path("/etc/passwd").read_text() + f"sbatest:x:{UID}:{UID}::{self.root}/home:/bin/sh\n")
        (self.root / "group").write_text(pathlib.Path("/etc/group").read_text() + f"sbatest:x:{UID}:\n")
        (self.root / "subuid").write_text(SUBORDINATES)
        (self.root / "subgid").write_text(SUBORDINATES)
        return self

    def __exit__(self, *unused):
        """Podman leaves a process that holds its user namespace; and files of users that only the namespace knows."""
        for path in self.root.glob("run/libpod/**/pause.pid"):
            os.kill(int(path.read_text()), signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(self.root)], check=True)

    def podman(self, *arguments, **variables):
        """Runs podman as the account, with these variables too."""
        script = "".join(f'mount --bind "$0/{name}" /etc/{name}\n' for name in ("passwd", "group", "subuid", "subgid"))
        user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "env", "-i", "-C", str(self.root),
                f"HOME={self.root}/home", f"XDG_RUNTIME_DIR={self.root}/run", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                *(f"{name}={value}" for name, value in variables.items())]
        command = ["unshare", "--mount", "sh", "-ec", script + 'exec "$@"', str(self.root), *user, "podman", "--storage-driver=overlay",
                   *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)

    def why_not(self, image):
        """Brings the image into the account's store and tries it. Returns why that does not go, or None."""
        for name in ("subuid", "subgid"):
            if not os.path.exists(f"/etc/{name}"):
                return f"there is no /etc/{name}"
        archive = self.root / "image.tar"
        podman.podman("save", "--quiet", "--format=docker-archive", f"--output={archive}", image)
        archive.chmod(0o644)
        for arguments in (["load", "--quiet", f"--input={archive}"], ["run", "--rm", "--network=none", "--entrypoint=true", image]):
            done = self.podman(*arguments)
            if done.returncode:
                return done.stderr.strip()[-500:]
        return None
