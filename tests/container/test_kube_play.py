# SPDX-License-Identifier: Apache-2.0
"""The pods of examples/kubernetes, run by `podman kube play`: pod.yaml as it is, and the Job's with a scripted model server in
place of the cluster's.

This podman knows neither Jobs nor sidecars among the first containers, so the Job's pod is played, and the proxy is one of
its containers.
"""
import copy
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import manifests
import podman  # which knows where the servers are
from servers.model import call

SCRIPT = {
    "models": {"llama3.2": {"capabilities": ["completion", "tools"], "context_length": 131072}},
    "replies": [
        call("write_file", path="primes.sh", content="printf '%s\\n' 2 3 5 7 11 13 17 19 23 29\n"), call("run_command", shell="sh primes.sh"),
        call("finish", answer="Done.", acceptance=[
            {"criterion": "sh primes.sh prints 2 first and 29 last", "met": True, "evidence": "step-2 printed both"}]),
    ],
}
MODEL = {"name": "model", "command": ["python3", "/servers/model.py", "--script", "/script/script.json", "--listen", "127.0.0.1:11434"],
         "securityContext": {"readOnlyRootFilesystem": True},
         "volumeMounts": [{"name": "servers", "mountPath": "/servers"}, {"name": "script", "mountPath": "/script"}]}


class PodTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sba-test-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.root.chmod(0o755)
        shutil.copytree(podman.TOP / "tests/servers", self.root / "servers")
        (self.root / "script").mkdir()
        (self.root / "script/script.json").write_text(json.dumps(SCRIPT))
        self.documents = manifests.load()

    def pod(self):
        spec = copy.deepcopy(self.documents["Job"]["spec"]["template"]["spec"])
        proxy = spec.pop("initContainers")[0]
        proxy.pop("restartPolicy")
        proxy["env"] = [entry if entry["name"] != "UPSTREAM_HOST" else {**entry, "value": "127.0.0.1"} for entry in proxy["env"]]
        spec["volumes"] += [{"name": name, "hostPath": {"path": str(self.root / name)}} for name in ("servers", "script")]
        spec["containers"] = [copy.deepcopy(MODEL), proxy, *spec["containers"]]
        for container in spec["containers"]:
            container["image"] = image
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sba-example"}, "spec": spec}

    def environment(self):
        """What `run` has options for, a pod gets from the configuration."""
        limits = [option.split("=", 1)[1] for option in options if option.startswith("--ulimit=")]
        settings = [f"default_ulimits = {json.dumps(limits)}", *(['cgroups = "disabled"'] if "--cgroups=disabled" in options else [])]
        configuration = self.root / "containers.conf"
        configuration.write_text("\n".join(["[containers]", *settings, ""]))
        return {**os.environ, "CONTAINERS_CONF": str(configuration)}

    def play(self, manifest, container):
        """Plays a manifest to the end of a container; returns the result, which is its last line."""
        self.addCleanup(podman.podman, "kube", "down", str(manifest), check=False)
        played = podman.podman("kube", "play", "--network=none", str(manifest), check=False, env=self.environment())
        if played.returncode:
            self.skipTest(f"podman kube play cannot make a pod here: {played.stderr.strip()[-500:]}")
        status = podman.podman("wait", container, timeout=120).stdout.strip()
        logs = podman.podman("logs", container)
        self.assertEqual(status, "0", logs.stdout + logs.stderr)
        return json.loads(logs.stdout.splitlines()[-1])

    def test_pod_yaml_plays(self):
        podman.podman("tag", image, manifests.load("pod.yaml")["Pod"]["spec"]["containers"][0]["image"])
        result = self.play(manifests.DIRECTORY / "pod.yaml", "cynode-sba-pod-runner")
        self.assertEqual(result["status"], "success", result)
        self.assertEqual(result["steps"][1]["output"].split(), "2 3 5 7 11 13 17 19 23 29".split())

    def test_the_job_is_done(self):
        import yaml
        manifest = self.root / "pod.yaml"
        manifest.write_text(yaml.safe_dump_all([self.documents["ConfigMap"], self.pod()]))
        result = self.play(manifest, "sba-example-runner")
        self.assertEqual((result["status"], result["inference"]["model"]), ("success", "llama3.2"), result)
        self.assertEqual(result["steps"][1]["output"].split()[::9], ["2", "29"])


if __name__ == "__main__":
    manifests.enter()
    _, options, image = podman.require()
    unittest.main(verbosity=2)
