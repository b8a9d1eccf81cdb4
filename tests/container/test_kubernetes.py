# SPDX-License-Identifier: Apache-2.0
"""The manifests of examples/kubernetes and examples/fleet/kubernetes: by the API's schema, and by what they promise."""
import json
import subprocess
import unittest

import manifests
import podman

VERSIONS = ["1.29", "1.33", "1.37"]
FLEET = manifests.DIRECTORY.parent / "fleet/kubernetes/jobs.yaml"
FLEET_VERSIONS = [f"1.{minor}" for minor in range(31, 38)]


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.documents = manifests.load()
        self.pod = self.documents["Job"]["spec"]["template"]["spec"]
        self.job = json.loads(self.documents["ConfigMap"]["data"]["job.json"])

    def test_the_schema_of_the_api(self):
        import kubernetes_validate
        self.assertEqual(set(self.documents), {"ConfigMap", "Job", "NetworkPolicy"})
        sandbox = manifests.load("sandbox.yaml")["Sandbox"]["spec"]
        parts = [("Pod", sandbox["podTemplate"]),
                 *(("PersistentVolumeClaim", claim) for claim in sandbox["volumeClaimTemplates"])]
        for version in VERSIONS:
            for document in [*self.documents.values(), *manifests.load("pod.yaml").values(),
                             *({"apiVersion": "v1", "kind": kind, **part} for kind, part in parts)]:
                kubernetes_validate.validate(document, version, strict=True)

    def test_the_job_is_valid(self):
        for job in (self.job, json.loads(manifests.load("pod.yaml")["ConfigMap"]["data"]["job.json"])):
            done = subprocess.run([podman.BINARY, "--validate", "-"], input=json.dumps(job), stdout=subprocess.PIPE,
                                  text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "<stdin>: valid\n"))

    def test_everything_is_closed(self):
        sandbox = manifests.load("sandbox.yaml")["Sandbox"]["spec"]["podTemplate"]["spec"]
        fleet = manifests.load(FLEET)["Job"]["spec"]["template"]["spec"]
        for pod in (self.pod, manifests.load("pod.yaml")["Pod"]["spec"], sandbox, fleet):
            self.assertEqual((pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["seccompProfile"]["type"],
                              pod["automountServiceAccountToken"]), (True, "RuntimeDefault", False))
            for container in pod["containers"] + pod.get("initContainers", []):
                context = container["securityContext"]
                self.assertEqual((context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"],
                                  context["capabilities"]),
                                 (True, False, {"drop": ["ALL"]}))
                self.assertIn("memory", container["resources"]["limits"])

    def test_the_schema_of_many_jobs(self):
        import kubernetes_validate
        documents = manifests.load(FLEET)
        self.assertEqual(set(documents), {"PersistentVolumeClaim", "Job"})
        for version in FLEET_VERSIONS:
            for document in documents.values():
                kubernetes_validate.validate(document, version, strict=True)

    def test_many_jobs_run_again_only_where_the_outside_broke_them(self):
        job = manifests.load(FLEET)["Job"]
        spec, pod = job["spec"], job["spec"]["template"]["spec"]
        rules = [(rule["action"], rule.get("onExitCodes", {}).get("values"))
                 for rule in spec["podFailurePolicy"]["rules"]]
        self.assertEqual(rules, [("Ignore", None), ("Count", [75]), ("FailIndex", [1, 2, 3, 124])])
        self.assertEqual((spec["completionMode"], spec["podReplacementPolicy"], pod["restartPolicy"]),
                         ("Indexed", "Failed", "Never"))
        self.assertIn("kueue.x-k8s.io/queue-name", job["metadata"]["labels"])
        (runner,) = pod["containers"]
        self.assertIn("--resume", runner["args"])
        self.assertIn("/jobs/$(JOB_COMPLETION_INDEX)/job.json", runner["args"])
        own = {mount["mountPath"] for mount in runner["volumeMounts"]
               if "$(JOB_COMPLETION_INDEX)" in mount.get("subPathExpr", "")}
        self.assertEqual(own, {"/result", "/workspace"})


manifests.enter()
unittest.main(verbosity=2)
