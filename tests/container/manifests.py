# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes, and the tool that knows the API's schema, which lives in a directory of its own."""
import fcntl
import os
import subprocess
import sys
import venv

import podman

FILE = podman.TOP / "examples/kubernetes/job.yaml"
VALIDATOR = "kubernetes-validate==1.37.0"
DIRECTORY = podman.CACHE.parent / VALIDATOR.replace("==", "-")


def fetch():
    """Installs the validator and its YAML reader once; returns why that did not go, or None."""
    if (DIRECTORY / "complete").exists():
        return None
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    print(f"fetching {VALIDATOR} into {DIRECTORY}", flush=True)
    venv.create(DIRECTORY, with_pip=True, clear=True)
    done = subprocess.run([DIRECTORY / "bin/pip", "install", "--quiet", "--disable-pip-version-check", VALIDATOR], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return done.stdout.strip()[-500:]
    (DIRECTORY / "complete").touch()
    return None


def enter():
    """Begins the program again with the Python that has the validator; ends it as skipped where that cannot be had."""
    if sys.prefix == str(DIRECTORY):
        return
    podman.CACHE.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{DIRECTORY}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            reason = fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(error)
    if reason:
        print(f"skipped, {VALIDATOR} cannot be had: {reason}")
        sys.exit(podman.SKIPPED)
    os.execv(DIRECTORY / "bin/python", [str(DIRECTORY / "bin/python"), "-B", *sys.argv])


def load():
    """The documents by their kind."""
    import yaml
    return {document["kind"]: document for document in yaml.safe_load_all(FILE.read_text())}
