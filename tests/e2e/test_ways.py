# SPDX-License-Identifier: Apache-2.0
"""Through how many files of lua/sba one reads, and how many of these call into how many others: from main to a step,
from one step to the next, from main to a model's first reply, and from there to the next. lua/README.md tells the ways
in order. The numbers may fall; what makes one grow wants a reason in its commit."""
import json
import pathlib

import sba
from agent_case import AgentCase, finish, writes

SCRIPT = pathlib.Path(__file__).with_name("ways.lua")
STEP, REPLY = ("sba.run.step", "run"), ("sba.agent.transcript", "next")
# Files, and calls between them: 28 and 60, 18 and 20, 69 and 108, 46 and 82 were counted on one machine. What another
# says of itself (no Landlock, a slow answer during which the log is looked at) may be a few more.
MOST = {"to a step": (32, 70), "a step": (18, 24), "to a reply": (74, 120), "a turn": (46, 90)}


class Ways(AgentCase):
    def assert_short(self, names, function, job, env=None):
        outcome = self.run_job(job, env=env, arguments=["--lua", str(SCRIPT), *function, *self.arguments()])
        self.assertTrue(outcome.stdout, outcome.stderr)
        found = json.loads(outcome.stdout)
        self.assertEqual(found["status"], 0, outcome.stderr)
        for name, way in zip(names, (found["first"], found["next"])):
            with self.subTest(name):
                files, calls = len(way["files"]), len(way["calls"])
                self.assertLessEqual(files, MOST[name][0], way["files"])
                self.assertLessEqual(calls, MOST[name][1], way["calls"])

    def test_of_a_direct_job(self):
        steps = [self.write_file("a.txt", name) for name in "abc"]
        self.assert_short(("to a step", "a step"), STEP, self.job(*steps))

    def test_of_an_agent(self):
        server = self.server(*[writes("a.txt", name) for name in "abc"], finish())
        self.assert_short(("to a reply", "a turn"), REPLY, self.agent_job(), env={"MODEL_SERVER": server.url})


sba.main(__name__)
