# SPDX-License-Identifier: Apache-2.0
"""The image of the Containerfile: what it says of itself, what it has, and jobs in it as a node runs them."""
import json
import os
import shutil
import subprocess

import node
import podman

LABELS = {"io.cynodeai.sandbox.agent-compatible": "true", "io.cynodeai.sandbox.purpose": "base-tools",
          "org.opencontainers.image.title": "cynode-sba", "org.opencontainers.image.licenses": "Apache-2.0"}


class ImageTest(node.NodeCase):
    def test_it_says_what_it_is(self):
        config = json.loads(podman.podman("image", "inspect", self.image).stdout)[0]["Config"]
        self.assertEqual({name: config["Labels"].get(name) for name in LABELS}, LABELS)
        self.assertEqual(config["User"], "1000:1000")
        self.assertEqual((config["Entrypoint"], config["StopSignal"]), (["/usr/local/bin/cynode-sba"], "SIGTERM"))
        self.assertFalse(config.get("ExposedPorts") or config.get("Volumes"))
        version = podman.podman("run", "--rm", *self.options, self.image, "--version").stdout.split()[1]
        self.assertEqual(config["Labels"]["org.opencontainers.image.version"], version)

    def test_the_licences_of_what_is_inside_go_along(self):
        found = podman.podman("run", "--rm", *self.options, "--entrypoint=ls", self.image,
                              "/usr/local/share/licenses/cynode-sba").stdout
        self.assertLessEqual({"LICENSE", "lua5.4", "openssl", "curl", "pcre2", "musl"}, set(found.split()))

    def test_git_knows_no_remotes(self):
        for url in ("https://host.invalid/x.git", "ssh://host.invalid/x", "git://host.invalid/x", "host.invalid:x"):
            done = podman.podman("run", "--rm", "--network=none", *self.options, "--entrypoint=git", self.image,
                                 "ls-remote", url, check=False)
            self.assertIn("not allowed", done.stderr)


class RequirementsTest(node.NodeCase):
    def check(self, image):
        """What container/check says of an image: exit status, and the points that are not met."""
        wrapper = self.root / "podman"
        wrapper.write_text(f'#!/bin/sh\nexec podman --root {podman.CACHE}/storage --runroot {podman.CACHE}/run "$@"\n')
        wrapper.chmod(0o755)
        environment = {**os.environ, "CONTAINER_RUNTIME": str(wrapper), "CONTAINER_OPTIONS": " ".join(self.options),
                       "SBA_BINARY": str(podman.BINARY)}
        done = subprocess.run([podman.TOP / "container/check", image], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        points = [line.split(maxsplit=3) for line in done.stdout.splitlines() if line.startswith("  ")]
        self.assertGreater(len(points), 30, done.stderr)
        return done.returncode, {point[3].split(":")[0] for point in points if point[0] != "ok"}

    def test_the_image_meets_all(self):
        self.assertEqual(self.check(self.image), (0, set()))

    def test_the_bare_base_lacks_what_debian_leaves_out(self):
        status, missing = self.check(self.base)
        self.assertEqual(status, 1)
        self.assertLessEqual({"unzip", "zip", "jq", "git, used locally", "python3", "a writable /workspace",
                              "a user that is not root",
                              "certificates of authorities (ca-certificates)", "the label that agents may use it"},
                             missing)
        self.assertFalse({"cat", "tar", "bash", "diff"} & missing)

class JobTest(node.NodeCase):
    def test_a_job_with_the_images_tools(self):
        example = podman.TOP / "examples/read-and-search"
        shutil.copytree(example / "workspace", self.workspace, dirs_exist_ok=True)
        subprocess.run(["chown", "-R", "1000:1000", str(self.workspace)], check=True)
        job = json.loads((example / "job.json").read_text())
        job["steps"] += self.job(
            "git init -q . && git config user.name x && git config user.email x@localhost && "
            "git add -A && git commit -q -m all && git log --oneline",
            "jq -n -c '{a: 1}' && python3 -c 'print(6 * 7)' && bash -c 'echo $BASH_VERSION'",
            'all="$CYNODE_ARTIFACTS_DIR/all.zip"; ps && zip -q -r "$all" notes && unzip -l "$all"')["steps"]
        done, result = self.run_as_node(job)
        self.assertEqual((done.returncode, result["status"]), (0, "success"), result)
        self.assertEqual([artifact["path"] for artifact in result["artifacts"]], ["all.zip"])
        self.assertEqual((self.job_directory / "result.json").stat().st_uid, node.UID)

    def test_the_container_is_closed(self):
        done, result = self.run_as_node(self.job(
            "id -u", "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status", "ls /sys/class/net",
            "touch /etc/x 2>&1 || true", 'echo "$CYNODE_TASK_ID $CYNODE_JOB_ID $HOME" && touch /tmp/x'))
        self.assertEqual(done.returncode, 0, result)
        user, status, network, root, environment = [step["output"] for step in result["steps"]]
        self.assertEqual((user, network, environment), ("1000\n", "lo\n", "task-1 job-1 /tmp\n"))
        self.assertEqual([line.split()[1].strip("0") for line in status.splitlines()], ["", "", "1"])
        self.assertIn("Read-only file system", root)

    def test_a_workspace_of_another_user_is_no_stranger_to_git(self):
        os.chown(self.workspace, 4711, 4711)
        self.workspace.chmod(0o777)
        done, result = self.run_as_node(self.job("git init -q . && git status --short"))
        self.assertEqual(done.returncode, 0, result)

    def test_root_is_refused(self):
        done, result = self.run_as_node(self.job("true"), "--user=0", "--cap-add=DAC_OVERRIDE")
        self.assertEqual((done.returncode, result["failure_code"]), (2, "runs_as_root"))

    def test_stop_cancels_and_keeps_what_was_done(self):
        self.put_job(self.job("echo said; touch begun; sleep 600"))
        name = self.start()
        podman.wait_for((self.workspace / "begun").exists, "the command to begin")
        podman.podman("stop", "--time=60", name)
        result = json.loads((self.job_directory / "result.json").read_text())
        self.assertEqual((result["failure_code"], result["steps"][0]["result"]["stdout"]), ("cancelled", "said\n"))
        self.assertEqual(podman.podman("wait", name).stdout.strip(), "143")

    def test_memory_that_runs_out_is_said_to_have(self):
        if not node.has_cgroups(self.options):
            self.skipTest("no cgroup can be made here")
        done, result = self.run_as_node(self.job("exec tail /dev/zero"), "--memory=64m")
        self.assertEqual((done.returncode, result["steps"][0]["error_code"]), (1, "out_of_memory"), result)


class DeployedNode(node.NodeCase):
    """As a deployed node runs a job: its directory open to everybody, an empty result file in it, and its variables."""

    def lay_out(self, owner):
        example = podman.TOP / "examples/deployed-node"
        shutil.copytree(example / "workspace", self.workspace, dirs_exist_ok=True)
        shutil.copy(example / "job.json", self.job_directory)
        (self.job_directory / "result.json").touch()
        for path in (self.job_directory, self.workspace, *self.job_directory.iterdir(), *self.workspace.iterdir()):
            os.chown(path, owner, owner)
        self.job_directory.chmod(0o777)
        (self.job_directory / "result.json").chmod(0o666)
        self.workspace.chmod(0o700)
        variables = (example / "environment").read_text().split()
        return ["--env=CYNODE_WORKSPACE_DIR=/workspace", *(f"--env={variable}" for variable in variables)]

    def check(self, done):
        """The result holds what the example expects, and stdout, which the node takes for the answer, is empty."""
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        result = json.loads((self.job_directory / "result.json").read_text())
        expected = json.loads((podman.TOP / "examples/deployed-node/expected.json").read_text())["result"]
        self.assertEqual([step["output"] for step in result["steps"]], [step["output"] for step in expected["steps"]])
        self.assertEqual(result["artifacts"], expected["artifacts"])

    def test_as_the_images_user(self):
        variables = self.lay_out(node.UID)
        for arguments in ([], ["cynode-sba"]):  # a node may repeat our name
            done = podman.podman("run", "--rm", *self.options, "--network=none", *variables, *self.volumes(),
                                 self.image, *arguments, check=False)
            self.check(done)
            (self.workspace / "greeting.txt").unlink()


node.main()
