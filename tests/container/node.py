# SPDX-License-Identifier: Apache-2.0
"""What a node does: lays out a job directory and a workspace, and runs the image on them, closed as far as it goes."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import podman

UID = 1000  # the image's user
NODE = ["--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--pids-limit=256",
        "--workdir=/workspace",
        "--env=CYNODE_TASK_ID=task-1", "--env=CYNODE_JOB_ID=job-1", "--env=CYNODE_WORKSPACE_DIR=/workspace"]


def has_cgroups(options):
    return "--cgroups=disabled" not in options


class NodeCase(unittest.TestCase):
    """base, options, image: what podman.require returned; set by the module."""
    base = options = image = None

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sba-test-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.root.chmod(0o755)
        self.job_directory, self.workspace = self.root / "job", self.root / "workspace"
        for directory in (self.job_directory, self.workspace):
            directory.mkdir()
            os.chown(directory, UID, UID)

    @staticmethod
    def job(*scripts, **fields):
        steps = [{"type": "run_command", "arguments": {"shell": script}} for script in scripts]
        return {"protocol_version": "1.0", "job_id": "job-1", "task_id": "task-1",
                "constraints": {"max_runtime_seconds": 60, "max_output_bytes": 1 << 20}, "steps": steps, **fields}

    def put_job(self, job):
        (self.job_directory / "job.json").write_text(json.dumps(job))

    def node_options(self):
        if not has_cgroups(self.options):
            return [*(option for option in NODE if not option.startswith("--pids-limit")), *self.options,
                    *self.volumes()]
        return [*NODE, *self.options, *self.volumes()]

    def volumes(self):
        return [f"--volume={self.job_directory}:/job", f"--volume={self.workspace}:/workspace"]

    def run_as_node(self, job, *more):
        self.put_job(job)
        done = podman.podman("run", "--rm", *self.node_options(), *more, self.image, check=False)
        result = self.job_directory / "result.json"
        return done, json.loads(result.read_text()) if result.exists() else None

    def start(self, *more, arguments=()):
        """Starts the image in the background; returns the container's name, which the test's end removes."""
        name = podman.podman("run", "--detach", *self.node_options(), *more, self.image, *arguments).stdout.strip()
        self.addCleanup(podman.podman, "rm", "--force", "--time=0", name, check=False)
        return name


def main(with_image=True):
    """Runs the test cases of the calling module, or says why none can be."""
    NodeCase.base, NodeCase.options, NodeCase.image = podman.require(with_image)
    unittest.main(verbosity=2)
