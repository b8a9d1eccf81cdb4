# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes, and what knows their schemas, in directories of their own."""
import podman
import packages

DIRECTORY = podman.TOP / "examples/kubernetes"
VALIDATOR = "kubernetes-validate==1.37.0"


def enter():
    """Begins the program again with the validator and its YAML reader."""
    packages.enter(VALIDATOR, oldest=(3, 9))


def load(name="job.yaml"):
    import yaml
    return {document["kind"]: document for document in yaml.safe_load_all((DIRECTORY / name).read_text())}
