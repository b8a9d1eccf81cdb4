# SPDX-License-Identifier: Apache-2.0
"""The patches that git and GNU patch test themselves with, through real jobs: the same are accepted, with the same
files after.

The cases are not ours and stand outside the project: in $SBA_CORPUS, else in ../shared/corpus beside the checkout.
Where there are none the test is skipped (exit code 77).
"""
import json
import os
import pathlib
import shutil
import stat
import sys
import tarfile
import unittest

import sba

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("SBA_CORPUS", CHECKOUT.parent / "shared" / "corpus"))

SHIFTED = b"""#include <stdio.h>

void print_int(int num);
/* a comment */
int func(int num);

int main() {
       int i;

       for (i = 0; i < 10; i++) {
               print_int(func(i)); /* stuff */
       }

\tprintf("\\n");

       return 0;
}

int func(int num) {
       return num * num;
}

void print_int(int num) {
       printf("%d", num);
}
"""

# Cases that end in another way here, as contract.md says: the error code, or the files that are other than before.
WANTED = {
    "git-apply/016": "binary_patch",  # binary patches are always refused
    "git-apply/017": "binary_patch",
    "git-apply/029": "binary_patch",
    # A line of context is missing: fuzz 1, which git apply does not know.
    "git-apply/047": {"one": ("file", b"b\na\n", 0)},
    "git-apply/028": {"main.c": ("file", SHIFTED, 0)},  # its indentation is shifted as a whole, and one place fits
    "gnu-patch-p1/023": "path_escape",  # links to outside
    "gnu-patch-p1/024": "path_escape",
}


def tree(directory):
    """Relative path -> (kind, content, owner's bit to run it) of all files and links below."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(directory))
        if stat.S_ISLNK(mode):
            found[name] = ("link", os.readlink(path).encode(), 0)
        elif stat.S_ISREG(mode):
            found[name] = ("file", path.read_bytes(), mode & 0o100)
    return found


def unpack(archive, directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(directory)


class PatchCorpus(sba.SandboxCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = tarfile.open(CORPUS / "apply.tar.gz")
        cls.addClassCleanup(cls.cases.close)

    def strip_of(self, args):
        for arg in args:
            if arg.startswith("-p"):
                return {"strip": int(arg[2:])}
        return {}

    def run_case(self, case, directory):
        """(accepted, error code, error, files after) of a case."""
        unpack(directory / "pre.tar", self.workspace)
        self.give(self.workspace, *self.workspace.rglob("*"))
        diff = (directory / "x.patch").read_bytes().decode()
        if not diff:
            return False, "invalid_patch", None, tree(self.workspace)
        outcome = self.run_steps(self.apply_diff(diff, **self.strip_of(case["args"])))
        step = outcome.steps[0]
        return outcome.exit == 0, step.get("error_code"), step.get("error"), tree(self.workspace)

    def check_case(self, name, case, directory):
        accepted, code, error, after = self.run_case(case, directory)
        unpack(directory / "pre.tar", self.root / "pre")
        unpack(directory / "post.tar", self.root / "post")
        wanted = WANTED.get(name)
        expected = tree(self.root / ("post" if accepted else "pre"))
        if isinstance(wanted, dict):
            expected = {**tree(self.root / "pre"), **wanted}
        elif wanted:
            self.assertEqual(code, wanted)
        else:
            self.assertEqual(accepted, case["ok"], error)
        self.assertEqual(after, expected, error)

    def run_all(self, group):
        where = self.root / "cases"
        self.cases.extractall(where)
        directory = next(where.rglob(group))
        cases = json.loads((directory / "index.json").read_text())
        self.assertTrue(cases)
        for case in cases:
            name = f"{group}/{case['id']}"
            with self.subTest(name, test=case["test"]):
                self.check_case(name, case, directory / case["id"])
        print(f"ran {len(cases)} cases of {group}", file=sys.stderr)

    def test_as_git_apply(self):
        self.run_all("git-apply")

    def test_as_gnu_patch(self):
        self.run_all("gnu-patch-p1")


if not (CORPUS / "apply.tar.gz").is_file():
    sba.skip(f"no cases in {CORPUS}; set SBA_CORPUS to run them")
unittest.main(verbosity=2)
