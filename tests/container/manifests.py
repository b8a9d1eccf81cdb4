# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes, and what knows their schemas, in directories of their own."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import podman
import packages

DIRECTORY = podman.TOP / "examples/kubernetes"
VALIDATOR = "kubernetes-validate==1.37.0"
SANDBOX = "sigs.k8s.io/agent-sandbox@v0.1.0"  # Go's module of it has its definition


def enter():
    """Begins the program again with the Python that has the validator and its YAML reader; ends it as skipped where they cannot be had."""
    name = VALIDATOR.replace("==", "-")
    if sys.prefix == str(packages.CACHE / name):
        return
    try:
        python = packages.environment(name, VALIDATOR, oldest=(3, 9)) / "python"
    except unittest.SkipTest as reason:
        print(f"skipped, {VALIDATOR} cannot be had: {reason}")
        sys.exit(podman.SKIPPED)
    os.execv(python, [str(python), "-B", *sys.argv])


def sandbox_definition():
    """The schema of a Sandbox as the API server has it; skips the test where it cannot be had."""
    import yaml
    if not shutil.which("go"):
        raise unittest.SkipTest("there is no Go here to fetch the definition of a Sandbox")
    try:
        done = subprocess.run(["go", "mod", "download", "-json", SANDBOX], cwd="/", env={**os.environ, "GO111MODULE": "on"},
                              capture_output=True, timeout=packages.REACHABLE, check=False)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest(f"Go's proxy did not answer within {packages.REACHABLE} s") from None
    if done.returncode:
        raise unittest.SkipTest("Go's proxy cannot be reached: " + json.loads(done.stdout or '{"Error": ""}')["Error"][:200])
    file = pathlib.Path(json.loads(done.stdout)["Dir"], "k8s/crds/agents.x-k8s.io_sandboxes.yaml")
    return closed(yaml.safe_load(file.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def closed(schema):
    """Refuses fields that the schema does not name, as kubectl does."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {} if "properties" not in schema or not isinstance(schema["properties"], dict) else {"additionalProperties": False}
    return {**strict, **{name: closed(part) for name, part in schema.items()}}


def load(name="job.yaml"):
    """The documents of a file, by their kind."""
    import yaml
    return {document["kind"]: document for document in yaml.safe_load_all((DIRECTORY / name).read_text())}
