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

    def validate(self, document, version):
        import kubernetes_validate
        kubernetes_validate.validate(document, version, strict=True)

    def test_the_schema_of_the_api(self):
        self.assertEqual(set(self.documents), {"ConfigMap", "Job", "NetworkPolicy"})
        for version in VERSIONS:
            for document in [*self.documents.values(), *manifests.load("pod.yaml").values()]:
                self.validate(document, version)

    def test_the_job_is_valid(self):
        for job in (self.job, json.loads(manifests.load("pod.yaml")["ConfigMap"]["data"]["job.json"])):
            done = subprocess.run([podman.BINARY, "--validate", "-"], input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "<stdin>: valid\n"))

    def test_the_readme_waits_for_jobs_that_fail_too(self):
        lines = [line.strip() for line in (manifests.DIRECTORY / "README.md").read_text().splitlines() if line.startswith("    ")]
        begin = lines.index("job=job/cynode-sba-example")
        end = next(index for index, line in enumerate(lines) if line.startswith("kubectl logs $job"))
        for outcome in ("complete", "failed"):
            kubectl = f"""kubectl() {{
                case $* in
                *={outcome}*) echo "job.batch/cynode-sba-example condition met" ;;
                wait*) exec sleep 30 ;;
                logs*) echo '{{"protocol_version":"1.0"}}' ;;
                esac
            }}"""
            done = subprocess.run(["bash", "-c", "\n".join([kubectl, *lines[begin:end + 1]])], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  timeout=20, text=True, check=False)
            met, result = done.stdout.split("\n", 1)
            self.assertEqual((done.returncode, met[-13:], json.loads(result)), (0, "condition met", {"protocol_version": "1.0"}))

    def test_the_deadline_is_above_the_jobs_own(self):
        grace = self.pod["terminationGracePeriodSeconds"]
        self.assertGreater(self.documents["Job"]["spec"]["activeDeadlineSeconds"], self.job["constraints"]["max_runtime_seconds"] + grace)

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

    def test_the_proxy_is_a_sidecar_that_shares_a_socket(self):
        proxy, runner = self.pod["initContainers"][0], self.pod["containers"][0]
        self.assertEqual(proxy["restartPolicy"], "Always")
        shared = {mount["name"] for mount in proxy["volumeMounts"]} & {mount["name"] for mount in runner["volumeMounts"]}
        self.assertEqual(shared, {"inference"})
        self.assertIn({"name": "inference", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, self.pod["volumes"])


class SandboxTest(unittest.TestCase):
    def setUp(self):
        self.sandbox = manifests.load("sandbox.yaml")["Sandbox"]

    def test_its_pod_and_claims_by_the_schema_of_the_api(self):
        import kubernetes_validate
        parts = [("Pod", self.sandbox["spec"]["podTemplate"]), *(("PersistentVolumeClaim", claim) for claim in self.sandbox["spec"]["volumeClaimTemplates"])]
        for version in VERSIONS:
            for kind, part in parts:
                kubernetes_validate.validate({"apiVersion": "v1", "kind": kind, **part}, version, strict=True)

    def test_it_waits_with_the_claim_as_its_workspace(self):
        runner, = self.sandbox["spec"]["podTemplate"]["spec"]["containers"]
        claim, = self.sandbox["spec"]["volumeClaimTemplates"]
        self.assertEqual(runner["args"], ["--idle"])
        self.assertIn({"name": claim["metadata"]["name"], "mountPath": "/workspace"}, runner["volumeMounts"])


if __name__ == "__main__":
    manifests.enter()
    unittest.main(verbosity=2)
