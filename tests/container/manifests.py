# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes, and what knows their schemas, in directories of their own."""
import os
import sys
import unittest

import podman
import packages

DIRECTORY = podman.TOP / "examples/kubernetes"
VALIDATOR = "kubernetes-validate==1.37.0"


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


def load(name="job.yaml"):
    import yaml
    return {document["kind"]: document for document in yaml.safe_load_all((DIRECTORY / name).read_text())}
