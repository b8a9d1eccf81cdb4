# SPDX-License-Identifier: Apache-2.0
"""A session in a container: it waits, rounds come by exec, and it ends at once when it is stopped."""
import json

import node
import podman

EXAMPLE = podman.TOP / "examples/session"


class SessionTest(node.NodeCase):
    def round(self, container, job):
        done = podman.podman("exec", "--interactive", container, "cynode-sba", "--stdin", check=False, input=job)
        return done.returncode, json.loads(done.stdout)

    def shell(self, container, script):
        return podman.podman("exec", container, "sh", "-c", script).stdout

    def test_the_rounds_of_the_example(self):
        container = self.start(arguments=["--idle"])
        for expected in sorted(EXAMPLE.glob("*.expected.json")):
            wanted = json.loads(expected.read_text())
            status, result = self.round(container, (EXAMPLE / expected.name.replace(".expected", "")).read_text())
            self.assertEqual((status, result["status"]), (wanted["exit_status"], wanted["result"]["status"]), result)
        self.assertEqual(result["steps"][0]["output"], "42\n")
        self.assertEqual((self.workspace / "sum.sh").stat().st_uid, node.UID)

    def test_it_reaps_and_ends_at_once(self):
        container = self.start(arguments=["--idle"])
        self.shell(container, "(setsid true &); (setsid sleep 600 >/dev/null 2>&1 &)")
        podman.wait_for(lambda: "Z" not in self.shell(container, "ps -e -o stat="), "the orphan to be reaped")
        self.assertIn("sleep", self.shell(container, "ps -e -o comm="))
        # The grace is longer than this test may take: who has not ended by SIGTERM alone fails it.
        podman.podman("stop", "--time=600", container, timeout=60)
        self.assertEqual(podman.podman("wait", container).stdout.strip(), "143")


node.main()
