# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes: by the API's schema, and by what they promise."""
import copy
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

    def validate(self, document, version):
        import kubernetes_validate
        kubernetes_validate.validate(document, version, strict=True)

    def test_the_schema_of_the_api(self):
        self.assertEqual(set(self.documents), {"ConfigMap", "Job", "NetworkPolicy"})
        for version in VERSIONS:
            for document in self.documents.values():
                self.validate(document, version)

    def test_the_validator_would_notice(self):
        import kubernetes_validate
        mistakes = [lambda job: job["spec"].update(activeDeadline=1), lambda job: job["spec"].update(backoffLimit="none"),
                    lambda job: job["spec"]["template"]["spec"]["containers"][0]["securityContext"].update(readOnlyRoot=True),
                    lambda job: job["spec"].pop("template")]
        for mistake in mistakes:
            broken = copy.deepcopy(self.documents["Job"])
            mistake(broken)
            with self.assertRaises(kubernetes_validate.ValidationError):
                self.validate(broken, VERSIONS[0])

    def test_the_job_is_valid(self):
        done = subprocess.run([podman.BINARY, "--validate", "-"], input=json.dumps(self.job), stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "the job: valid\n"))

    def test_the_deadline_is_above_the_jobs_own(self):
        grace = self.pod["terminationGracePeriodSeconds"]
        self.assertGreater(self.documents["Job"]["spec"]["activeDeadlineSeconds"], self.job["constraints"]["max_runtime_seconds"] + grace)

    def test_everything_is_closed(self):
        self.assertEqual((self.pod["securityContext"]["runAsNonRoot"], self.pod["securityContext"]["seccompProfile"]["type"],
                          self.pod["automountServiceAccountToken"]), (True, "RuntimeDefault", False))
        for container in self.pod["containers"] + self.pod["initContainers"]:
            context = container["securityContext"]
            self.assertEqual((context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"], context["capabilities"]),
                             (True, False, {"drop": ["ALL"]}))
            self.assertIn("memory", container["resources"]["limits"])

    def test_the_proxy_is_a_sidecar_that_shares_a_socket(self):
        proxy, runner = self.pod["initContainers"][0], self.pod["containers"][0]
        self.assertEqual(proxy["restartPolicy"], "Always")
        shared = {mount["name"] for mount in proxy["volumeMounts"]} & {mount["name"] for mount in runner["volumeMounts"]}
        self.assertEqual(shared, {"inference"})
        self.assertIn({"name": "inference", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, self.pod["volumes"])


if __name__ == "__main__":
    manifests.enter()
    unittest.main(verbosity=2)
