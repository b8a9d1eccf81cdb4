# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of packages from PyPI, made once, in the user's cache directory."""
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path(os.environ.get("HOME", "/tmp"), ".cache")) / "cynode-sba"
REACHABLE = 30  # seconds


def works(*command):
    """Whether a command ends well, and soon."""
    try:
        return subprocess.run(command, timeout=REACHABLE, capture_output=True, check=False).returncode == 0
    except (subprocess.TimeoutExpired, OSError):
        return False


@functools.cache
def python(oldest):
    """A Python that is at least (3, minor)."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv", "versions")
    found = [shutil.which(f"python3.{minor}") for minor in range(oldest[1], oldest[1] + 5)]
    for candidate in [sys.executable, *filter(None, found), *sorted(pyenv.glob("3.*/bin/python3"))]:
        if works(candidate, "-c", f"import ensurepip, sys; sys.exit(sys.version_info < {oldest})"):
            return candidate
    raise unittest.SkipTest("there is no Python of at least %d.%d here" % oldest)


@functools.cache
def has(pip, package):
    """Whether PyPI has a package. Asked once, so that its silence costs one wait."""
    with tempfile.TemporaryDirectory() as place:
        return works(pip, "--retries", "0", "download", "--no-deps", "--dest", place, package)


@functools.cache
def environment(name, *packages, oldest=(3, 12)):
    """The directory of the programs of packages, fetched the first time. Skips the test where they cannot be had."""
    place = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            subprocess.run([python(oldest), "-m", "venv", "--clear", place], check=True)
            if not has(place / "bin" / "pip", packages[0]):
                raise unittest.SkipTest(f"PyPI cannot be reached, or did not give {packages[0]} within {REACHABLE} s")
            print(f"== Fetching {' '.join(packages)} into {place}", file=sys.stderr, flush=True)
            subprocess.run([place / "bin" / "pip", "--quiet", "install", *packages], check=True)
            (place / "complete").touch()
    return place / "bin"
