# SPDX-License-Identifier: Apache-2.0
"""Learns what tools say when the outside is missing, by running them so (tools.py, situation.py):

    learn.py [TOOL...]    runs them and rewrites their rows of learned.jsonl; tools that are not installed keep theirs

Root is needed. Tools may be in the folders of SBA_TOOLS_PATH too. A row is what one tool did in one or more situations: `tool`,
`situations`, `arguments` of run_command, `exit`, and the last lines of `stdout` and `stderr`, stack traces shortened.
spec/result/network_spec.lua holds the rule to these rows, e2e/test_ext_net.py to the tools themselves.
"""
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import situation
import tools

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "learned.jsonl"
USER = 54321
MOST_LINES, LONGEST_LINE = 20, 590
STACK = re.compile(r"\t|    |  File ")


def telling(text, home):
    """The last lines, without what is different every time; of a stack the first and the last two lines."""
    text = re.sub(r"0x[0-9a-f]{6,}", "0x0", text.replace(home, "/home/user"))
    lines = [line[:LONGEST_LINE] for line in text.splitlines(keepends=True)]
    in_stack = [STACK.match(line) is not None for line in lines]
    kept = [line for i, line in enumerate(lines) if not (2 <= i < len(lines) - 2 and all(in_stack[i - 2:i + 3]))]
    return "".join(kept[-MOST_LINES:])


def run(name, where):
    home = tempfile.mkdtemp(prefix="sba-learn-")
    try:
        tools.lay_out(name, pathlib.Path(home), USER)
        done = subprocess.run([sys.executable, "-B", HERE / "situation.py", where, "timeout", "60", *tools.command(name)], cwd=home,
                              env={**tools.environment(home), "SITUATION_USER": str(USER)}, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=100)
        return done.returncode, telling(done.stdout.decode(errors="replace"), home), telling(done.stderr.decode(errors="replace"), home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def learn(name):
    """The rows of one tool: situations in which it did the same are one row."""
    rows = {}
    for where in situation.NAMES:
        code, stdout, stderr = run(name, where)
        key = re.sub(r"\d+", "0", f"{code == 0} {stdout} {stderr}")
        row = rows.setdefault(key, {"tool": name, "situations": [], "arguments": {"argv": tools.command(name)}, "exit": code,
                                    "stdout": stdout, "stderr": stderr})
        row["situations"].append(where)
    return list(rows.values())


def main():
    names = [name for name in sys.argv[1:] or tools.COMMANDS if tools.is_installed(name)]
    kept = [json.loads(line) for line in TABLE.read_text().splitlines()] if TABLE.exists() else []
    rows = {name: [row for row in kept if row["tool"] == name] for name in tools.COMMANDS}
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        rows.update(zip(names, several.map(learn, names)))
    TABLE.write_text("".join(json.dumps(row) + "\n" for name in tools.COMMANDS for row in rows[name]))
    print(f"learned {len(names)} of {len(tools.COMMANDS)} tools; not installed: "
          f"{', '.join(name for name in tools.COMMANDS if not tools.is_installed(name)) or 'none'}")


if __name__ == "__main__":
    main()
