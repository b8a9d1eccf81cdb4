# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes: by the API's schema, and by what they promise."""
import json
import subprocess
import unittest

import manifests
import podman

VERSIONS = ["1.29", "1.33", "1.37"]


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.documents = manifests.load()
        self.pod = self.documents["Job"]["spec"]["template"]["spec"]
        self.job = json.loads(self.documents["ConfigMap"]["data"]["job.json"])

    def test_the_schema_of_the_api(self):
        import kubernetes_validate
        self.assertEqual(set(self.documents), {"ConfigMap", "Job", "NetworkPolicy"})
        sandbox = manifests.load("sandbox.yaml")["Sandbox"]["spec"]
        parts = [("Pod", sandbox["podTemplate"]), *(("PersistentVolumeClaim", claim) for claim in sandbox["volumeClaimTemplates"])]
        for version in VERSIONS:
            for document in [*self.documents.values(), *manifests.load("pod.yaml").values(),
                             *({"apiVersion": "v1", "kind": kind, **part} for kind, part in parts)]:
                kubernetes_validate.validate(document, version, strict=True)

    def test_the_job_is_valid(self):
        for job in (self.job, json.loads(manifests.load("pod.yaml")["ConfigMap"]["data"]["job.json"])):
            done = subprocess.run([podman.BINARY, "--validate", "-"], input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "<stdin>: valid\n"))

    def test_everything_is_closed(self):
        sandbox = manifests.load("sandbox.yaml")["Sandbox"]["spec"]["podTemplate"]["spec"]
        for pod in (self.pod, manifests.load("pod.yaml")["Pod"]["spec"], sandbox):
            self.assertEqual((pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]["type"],
                              pod["automountServiceAccountToken"]), (True, "RuntimeDefault", False))
            for container in pod["containers"] + pod.get("initContainers", []):
                context = container["securityContext"]
                self.assertEqual((context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"], context["capabilities"]),
                                 (True, False, {"drop": ["ALL"]}))
                self.assertIn("memory", container["resources"]["limits"])


if __name__ == "__main__":
    manifests.enter()
    unittest.main(verbosity=2)
