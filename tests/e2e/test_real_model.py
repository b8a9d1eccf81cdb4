# SPDX-License-Identifier: Apache-2.0
"""Ten small jobs, done by a real model of 1.5 billion parameters behind llama.cpp's server. The tasks are toy-* of
examples/eval, each with a check that the model does not see. A row says of each how it went; the journals of those that
failed stay in build/real-model."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import sba
from servers import llama

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVAL, KEPT = ROOT / "examples" / "eval" / "eval.py", ROOT / "build" / "real-model"
WINDOW = 16384  # tokens
SECONDS = 240  # for each job: on two quiet processors most end within 40
# Of ten, 3 to 6 were done in six runs of six builds; what the model writes differs from run to run. It shows that
# the whole works, not how well: for that, compare rows.
FLOOR = 3


class RealModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        llama.installed()
        cls.weights = llama.coder()

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sba-tests-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)

    def keep(self, name):
        """The path of the journal, which the directory of the tries does not outlive."""
        (job,) = self.directory.glob(f"sba-eval-{name}-*/job")
        KEPT.mkdir(parents=True, exist_ok=True)
        return shutil.copy(job / "journal.jsonl", KEPT / f"{name}.jsonl")

    def test_ten_jobs(self):
        shutil.rmtree(KEPT, ignore_errors=True)
        with llama.Llama(self.weights, "-c", str(WINDOW)) as server:
            done = subprocess.run([sys.executable, "-B", EVAL, "--binary", os.environ["SBA_BINARY"], "--endpoint",
                                   server.url + "/v1", "--model", "m", "--seconds", str(SECONDS), "--keep",
                                   "--directory", self.directory, "--json", self.directory / "rows.json", "toy-"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads((self.directory / "rows.json").read_text())["rows"]
        self.assertEqual(len(rows), 10)
        journals = [str(self.keep(row["task"])) for row in rows if not row["solved"]]
        print("\n".join(journals))
        self.assertGreaterEqual(len(rows) - len(journals), FLOOR, f"{done.stdout}\n{journals}")


sba.main(__name__)
