# SPDX-License-Identifier: Apache-2.0
"""What the tests use from PyPI, npm and Go's proxy: pinned, fetched once, and kept in the user's cache directory. A
test is skipped where its packages cannot be had.

As a program, packages.py NAME PACKAGE... prints the directory of npm's packages, or ends with status 77.
"""
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import skips

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                     or pathlib.Path(os.environ.get("HOME", "/tmp"), ".cache")) / "cynode-sba"
REACHABLE = 30  # seconds


def works(*command):
    try:
        return subprocess.run(command, timeout=REACHABLE, capture_output=True).returncode == 0
    except (subprocess.TimeoutExpired, OSError):
        return False


def fetched(name, fetch):
    """The directory of that name, which fetch(directory) fills the first time."""
    place = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            fetch(place)
            (place / "complete").touch()
    return place


def begin(registry, is_there, names, place):
    """Says what is fetched from a registry, or skips the test where the registry does not answer."""
    if not is_there:
        raise unittest.SkipTest(f"{registry} cannot be reached, or did not give {names[0]} within {REACHABLE} s")
    print(f"== Fetching {' '.join(names)} into {place}", file=sys.stderr, flush=True)


@functools.cache
def python(oldest):
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv", "versions")
    found = [shutil.which(f"python3.{minor}") for minor in range(oldest[1], oldest[1] + 5)]
    for candidate in [sys.executable, *filter(None, found), *sorted(pyenv.glob("3.*/bin/python3"))]:
        if works(candidate, "-c", f"import ensurepip, sys; sys.exit(sys.version_info < {oldest})"):
            return candidate
    raise unittest.SkipTest("there is no Python of at least %d.%d here" % oldest)


@functools.cache
def is_on_pypi(pip, package):
    """Asked once, so that PyPI's silence costs one wait."""
    with tempfile.TemporaryDirectory() as place:
        return works(pip, "--retries", "0", "download", "--no-deps", "--dest", place, package)


@functools.cache
def environment(name, *packages, oldest=(3, 12)):
    """The directory of the programs of a virtual environment with packages from PyPI."""
    def fetch(place):
        subprocess.run([python(oldest), "-m", "venv", place], check=True)
        pip = place / "bin" / "pip"
        begin("PyPI", is_on_pypi(pip, packages[0]), packages, place)
        subprocess.run([pip, "--quiet", "install", *packages], check=True)
    return fetched(name, fetch) / "bin"


def enter(package, oldest):
    """Begins the program again with a Python that has the package; ends it as skipped (77) where it cannot be had."""
    name = package.replace("==", "-")
    if sys.prefix == str(CACHE / name):
        return
    try:
        interpreter = environment(name, package, oldest=oldest) / "python"
    except unittest.SkipTest as reason:
        skips.skip(f"{package} cannot be had: {reason}")
    os.execv(interpreter, [str(interpreter), "-B", *sys.argv])


@functools.cache
def node_modules(name, *packages):
    """The directory node_modules with packages from npm."""
    def fetch(place):
        begin("npm's registry", works("npm", "view", "--loglevel=silent", packages[0], "version"), packages, place)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", place, *packages],
                       check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return fetched(name, fetch) / "node_modules"


def version_of(source):
    """A part of a program's name: a source that changes is another program."""
    return f"-{zlib.crc32(source.read_bytes()):08x}"


@functools.cache
def go_program(name, target, *modules):
    """A program that Go builds: target is a file, or a package's path, of modules (PATH@VERSION) from Go's proxy."""
    options = {"env": {**os.environ, "GOTOOLCHAIN": "local"}, "capture_output": True, "text": True}
    is_file = isinstance(target, pathlib.Path)

    def fetch(place):
        begin("Go's proxy", works("go", "mod", "download", modules[0]), modules, place)
        subprocess.run(["go", "mod", "init", "program"], cwd=place, check=True, **options)
        got = subprocess.run(["go", "get", *modules], cwd=place, **options)
        if got.returncode:
            raise unittest.SkipTest("Go's proxy lacks the modules, or Go is too old for them: " + got.stderr[-300:])
        if is_file:
            shutil.copy(target, place)
        subprocess.run(["go", "build", "-mod=mod", "-o", "program", "." if is_file else target], cwd=place, check=True,
                       **options)
    return fetched(name + (version_of(target) if is_file else ""), fetch) / "program"


if __name__ == "__main__":
    try:
        print(node_modules(*sys.argv[1:]))
    except unittest.SkipTest as reason:
        skips.skip(reason)
