# SPDX-License-Identifier: Apache-2.0
"""Through how many files of lua/sba one reads, and how many of these call into how many others: from main to a step,
from one step to the next, from main to a model's first reply, and from there to the next; and the same of a resume,
whose replies are in the journal. lua/README.md tells the ways, and names no file that is not on them. The numbers may
fall; what makes one grow wants a reason in its commit."""
import json
import pathlib
import re

import sba
from agent_case import AgentCase, finish, writes

SCRIPT = pathlib.Path(__file__).with_name("ways.lua")
README = pathlib.Path(__file__).parents[2] / "lua/README.md"
STEP, REPLY = ("sba.run.step", "run"), ("sba.agent.transcript", "next")

class Ways(AgentCase):
    def assert_told(self, way, files):
        """lua/README.md names some of these files as the way, and no others."""
        told = README.read_text().split(f"- **{way}")[1].split("\n- ")[0].split("\n\n")[0]
        named = set(re.findall(r"`((?:\w+/)+\w*|main|cli)(?:\.lua)?`", told))
        self.assertGreater(len(named), 3)
        for name in named:
            self.assertTrue(any(file.startswith(name.removesuffix("X")) for file in files), (name, files))

    def assert_short(self, way, function, job, first, following, *more, env=None):
        """first: at most so many files until the first call of the function, and calls between them; following: from
        one call of it to the next."""
        arguments = ["--lua", str(SCRIPT), *function, *self.arguments(), *more]
        outcome = self.run_job(job, env=env, arguments=arguments)
        self.assertTrue(outcome.stdout, outcome.stderr)
        found = json.loads(outcome.stdout)
        self.assertEqual(found["status"], 0, outcome.stderr)
        for part, (files, calls) in ((found["first"], first), (found["next"], following)):
            self.assertLessEqual(len(part["files"]), files, part["files"])
            self.assertLessEqual(len(part["calls"]), calls, part["calls"])
        self.assert_told(way, found["first"]["files"] + found["next"]["files"])

    # What another machine says of itself (no Landlock, a slow answer during which the log is looked at) may be a few
    # more than was counted on one.

    def test_of_a_direct_job(self):
        # 27 and 60, 18 and 21
        steps = [self.write_file("a.txt", name) for name in "abc"]
        self.assert_short("From `main` to a step", STEP, self.job(*steps), (32, 70), (18, 24))

    def test_of_an_agent(self):
        # 70 and 109, 47 and 87
        server = self.server(*[writes("a.txt", name) for name in "abc"], finish())
        self.assert_short("A turn of an agent", REPLY, self.agent_job(), (74, 120), (47, 90),
                          env={"MODEL_SERVER": server.url})

    def test_of_a_resume(self):
        # 74 and 113, 25 and 36
        server, job = self.server(writes("a.txt", "a"), finish()), self.agent_job()
        short = {**job, "inference": {**job["inference"], "max_requests": 1}}
        self.assertEqual(self.run_agent(server, job=short).code, "constraint_violation")
        self.assert_short("A resume", REPLY, job, (78, 125), (25, 40), "--resume", env={"MODEL_SERVER": server.url})


sba.main(__name__)
