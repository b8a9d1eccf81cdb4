# SPDX-License-Identifier: Apache-2.0
"""What tests of confinement share: a job directory that commands may not write, and a token that they must not see."""
import os
import unittest

import sba

TOKEN = "a-token-that-must-not-be-seen"
# Directories outside of what commands may write, where a test can have its job directory.
PLACES = ["/srv", "/opt", str(sba.TOOLS.resolve())]
WRITABLE = ("/tmp/", "/var/tmp/", "/dev/", "/proc/")
PLACE = next((name for name in PLACES if os.access(name, os.W_OK) and not f"{name}/".startswith(WRITABLE)), None)
ABI = int(sba.run("--lua", "-e", "print(require 'native.confine'.abi())").stdout)


@unittest.skipUnless(PLACE, "no directory outside of /tmp can be written")
class ConfinedCase(sba.SandboxCase):
    place = PLACE

    def setUp(self):
        super().setUp()
        self.secret = self.root / "secrets"
        self.secret.mkdir()
        self.token = self.secret / "token"
        self.token.write_text(TOKEN, encoding="utf-8")
        self.give(self.secret, self.token)

    def shell(self, script, *more, **options):
        done = self.run_job(self.job(self.sh(script), **options.pop("fields", {})), *more, **options)
        return done, done.steps[0].get("output", "")

    def assert_untouched(self, done):
        """The result is the runner's own, and so is all that lies beside it."""
        self.assertEqual(done.result["job_id"], "job-1")
        self.assertEqual([step["type"] for step in done.steps], ["run_command"])
        names = {entry.name for entry in self.job_directory.iterdir()}
        self.assertLessEqual(names, {"job.json", "result.json", "todo.json", "journal.jsonl", "artifacts"}, names)
