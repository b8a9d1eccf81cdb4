# SPDX-License-Identifier: Apache-2.0
"""The examples of README.md, CONTRIBUTING.md and docs/: a block "json NAME" is a file, "console" is typed, "sh" needs
more than a test has. In what a command prints, "..." stands for anything. A page's blocks share one directory. A
scripted model answers the tutorial."""
import doctest
import os
import pathlib
import re
import subprocess


import sba
from servers import model

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*(TOP / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
         *sorted((TOP / "docs").glob("*.md"))]


BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]*)(#[^)]*)?\)")


def anchors_of(text):
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


class Documentation(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        (self.root / "bin").mkdir()
        (self.root / "bin/cynode-sba").symlink_to(sba.BINARY)

    def shell(self, directory, script):
        fixed = model.call("replace_in_file", path="total.sh", old_text="sum - number", new_text="sum + number")
        with model.Server({"models": {"qwen3:8b": {}},
                           "replies": [fixed, model.call("finish", answer="It adds now.", acceptance=[])]}) as server:
            return subprocess.run(
                ["sh", "-c", script], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, timeout=60, **sba.ordinary_user(),
                env={"PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(directory), "LC_ALL": "C",
                     "OLLAMA_BASE_URL": server.url})

    def type_in(self, directory, commands):
        for command, expected in COMMAND.findall(commands):
            done = self.shell(directory, command)
            fits = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS)
            self.assertTrue(fits, f"$ {command}\nprinted:\n{done.stdout}\nnot:\n{expected}")

    def test_every_example_does_what_its_page_says(self):
        typed = 0
        for page in PAGES:
            directory = self.folder(self.root / page.relative_to(TOP).as_posix().replace("/", "-"))
            with self.subTest(page=page.name):
                for kind, name, text in BLOCK.findall(page.read_text()):
                    if name:
                        (directory / name).write_text(text)
                    if kind == "console":
                        self.type_in(directory, text)
                        typed += 1
                    if kind == "sh":
                        subprocess.run(["sh", "-n", "-c", text], check=True)
        self.assertGreater(typed, 4)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for path, anchor in LINK.findall(page.read_text()):
                target = page.parent / path if path else page
                with self.subTest(page=page.name, link=path + anchor):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors_of(target.read_text()))

    def test_the_readme_is_short(self):
        lines = (TOP / "README.md").read_text().splitlines()
        self.assertLessEqual(len(lines), 150)
        self.assertEqual([], [line for line in lines if len(line) > 120])


sba.main(__name__)
