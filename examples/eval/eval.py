#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""How many of forty-eight tasks a model solves with cynode-sba: bugs, features, refactorings, questions.

    examples/eval/eval.py --endpoint http://127.0.0.1:11434 --model qwen3:8b       Ollama, or any OpenAI-compatible endpoint
    examples/eval/eval.py --endpoint URL --model NAME --repeat 3 --json a.json c-  the tasks whose names begin so, three times each
    examples/eval/eval.py --compare a.json b.json                                  two or more runs side by side
    examples/eval/eval.py --agent 'COMMAND' --endpoint URL ...                     another agent, for comparison
    examples/eval/eval.py --reference                                              the reference solutions, by a scripted model

A task is solved where its hidden check passes, whatever the agent says. README.md beside this file says more.
The exit status is 0 where all was run, with --reference only where all is solved; 1 where not, and 2 for a wrong call.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests")]
import proxy  # noqa: E402
from servers import model  # noqa: E402

# By the beginning of a task's name.
PROGRAMS = {"c": "cc", "py": "python3", "toy": "python3", "sh": "sh", "js": "node", "go": "go", "tally": "python3"}
USER = {"user": 54321, "group": 54321, "extra_groups": []} if os.geteuid() == 0 else {}  # the runner refuses root
CHECK_SECONDS, OUTPUT_BYTES = 300, 65536  # Go builds its library in it
LEFT_OUT = {"solved": None, "turns": None, "prompt_tokens": None, "completion_tokens": None, "seconds": None}


def give(*places):
    """Makes directories and what is in them belong to the user of the runner."""
    for place in places if USER else ():
        for path in [place, *place.rglob("*")]:
            os.chown(path, USER["user"], USER["group"], follow_symlinks=False)


def run_limited(command, seconds, directory, **options):
    """Runs a command in a session of its own, which does not outlive the time. Its exit status, None past the time, and what it wrote.
    It writes to files in a directory: a pipe could be held open by what it leaves running."""
    with open(directory / "stdout", "w+b") as stdout, open(directory / "stderr", "w+b") as stderr:
        process = subprocess.Popen(command, start_new_session=True, stdout=stdout, stderr=stderr, **options)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        stdout.seek(0), stderr.seek(0)
        return status, *(file.read(OUTPUT_BYTES).decode(errors="replace").strip() for file in (stdout, stderr))


class Task:
    """A directory of tasks/: task.md (kind, then what is asked), workspace/, check, and solution.patch or solution.txt. With change.json
    the workspace is a repository of repositories/, with what is right there made wrong."""

    def __init__(self, directory):
        self.directory, self.name = directory, directory.name
        self.kind, _, prompt = (directory / "task.md").read_text().partition("\n")
        self.prompt = prompt.strip()
        language = self.name.partition("-")[0]
        self.program, self.base = PROGRAMS[language], HERE / "repositories" / language
        change = directory / "change.json"
        self.change = json.loads(change.read_text()) if change.exists() else {"changes": []}
        self.criteria = self.change.get("acceptance_criteria", [])

    def make_workspace(self, place):
        """What the agent finds."""
        shutil.copytree(self.base if self.change["changes"] else self.directory / "workspace", place, ignore=shutil.ignore_patterns("__pycache__"))
        for one in self.change["changes"]:
            path = place / one["path"]
            path.write_text(path.read_text().replace(one["right"], one["wrong"]))

    def solution(self):
        """What a scripted model replies, and calls."""
        patch, text = self.directory / "solution.patch", self.directory / "solution.txt"
        answer = text.read_text().strip() if text.exists() else "The patch is applied."
        changes = [model.call("apply_unified_diff", diff=patch.read_text())] if patch.exists() else []
        changes += [model.call("replace_in_file", path=one["path"], old_text=one["wrong"], new_text=one["right"]) for one in self.change["changes"]]
        acceptance = [{"criterion": str(number), "met": True, "evidence": "step-2"} for number in range(1, len(self.criteria) + 1)]
        return [model.call("list_tree"), *changes, model.call("finish", answer=answer, acceptance=acceptance)]


class Attempt:
    """One try of one task, in a directory of its own."""

    def __init__(self, task, options, go_cache):
        self.task, self.options = task, options
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=f"sba-eval-{task.name}-", dir=options.directory))
        self.root.chmod(0o755)
        self.workspace, self.job, self.home = (self.root / name for name in ("workspace", "job", "home"))
        task.make_workspace(self.workspace)
        for directory in (self.job, self.home):
            directory.mkdir()
        give(self.workspace, self.job, self.home)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "GOCACHE": str(go_cache),
                            "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "PYTHONDONTWRITEBYTECODE": "1"}

    def check(self, answer):
        """Why a copy of the workspace does not pass the check; None where it does."""
        place = self.root / "checked"
        shutil.rmtree(place, ignore_errors=True)
        try:
            shutil.copytree(self.workspace, place, symlinks=True)
        except (OSError, shutil.Error) as failure:  # of a FIFO, for example
            return f"the workspace cannot be copied: {failure}"
        (self.root / "answer").write_text(answer + "\n")
        give(place)
        script = "\n".join([f"WORD={secrets.token_hex(6)}", f"BASE='{self.task.base}'", *(path.read_text() for path in (HERE / "check.sh", self.task.directory / "check"))])
        status, _, stderr = run_limited(["sh", "-euc", script], CHECK_SECONDS, self.root, cwd=place, stdin=subprocess.DEVNULL, **USER,
                                        env={**self.environment, "ANSWER": str(self.root / "answer")})
        if status is None:
            return f"the check does not end within {CHECK_SECONDS} s"
        return None if status == 0 else stderr or f"the check exits with {status}"

    def run_sba(self, endpoint, name):
        """The runner's result, or what it said instead of one."""
        (self.job / "job.json").write_text(json.dumps({
            "protocol_version": "1.0", "job_id": self.task.name, "task_id": "eval", "execution_mode": "agent_inference",
            "constraints": {"max_runtime_seconds": self.options.seconds, "max_output_bytes": 1 << 20},
            "inference": {"allowed_models": [name]}, "context": {"task_context": self.task.prompt, "acceptance_criteria": self.task.criteria}, "steps": []}))
        command = [self.options.binary, "--job", self.job / "job.json", "--result", self.job / "result.json",
                   "--workspace", self.workspace, "--log-format", "json"]
        with open(self.job / "log", "wb") as log:
            subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **USER,
                           env={**self.environment, "OLLAMA_BASE_URL": endpoint})
        try:
            result = json.loads((self.job / "result.json").read_bytes())
        except (OSError, ValueError):
            result = {"failure_code": "no result", "failure_message": (self.job / "log").read_text(errors="replace")[-300:]}
        used = result.get("inference") or {}
        said = f"{result['failure_code']}: {result['failure_message']}" if result.get("failure_code") else None
        return result.get("final_answer") or "", said, {
            "turns": used.get("requests"), "prompt_tokens": used.get("prompt_tokens"),
            "completion_tokens": used.get("completion_tokens"), "seconds": result.get("duration_ms", 0) / 1000}

    def without_key(self):
        return {name: value for name, value in os.environ.items() if name != self.options.api_key_env}

    def run_agent(self):
        """Another agent: a shell command in the workspace, the task on its stdin, its answer on its stdout. It is run as we are."""
        begun = time.monotonic()
        with open(self.root / "task", "w+", encoding="utf-8") as task:
            task.write(self.task.prompt)
            task.seek(0)
            with proxy.Proxy(self.options.endpoint, self.options.api_key_env) as counting:
                places = {"OPENAI_BASE_URL": counting.url, "OLLAMA_HOST": counting.url, "OLLAMA_BASE_URL": counting.url} if counting.url else {}
                status, stdout, _ = run_limited(["sh", "-c", self.options.agent], self.options.seconds, self.root, cwd=self.workspace,
                                                stdin=task, env={"OPENAI_API_KEY": "none", **self.without_key(), **places})
        said = None if status == 0 else "timeout" if status is None else f"the agent exits with {status}"
        return stdout, said, {"seconds": time.monotonic() - begun, **counting.figures()}

    def run_reference(self):
        if not self.check(""):
            return "", "the check passes for the untouched workspace", {"solved": False}
        with model.Server({"models": {"reference": {}}, "replies": self.task.solution()}) as server:
            return self.run_sba(server.url, "reference")

    def run(self):
        """The row of the table, as a dict."""
        if self.options.reference:
            answer, said, figures = self.run_reference()
        elif self.options.agent:
            answer, said, figures = self.run_agent()
        else:
            with proxy.Proxy(self.options.endpoint, self.options.api_key_env) as counting:
                answer, said, figures = self.run_sba(counting.url, self.options.model)
            figures = {**figures, **counting.figures()}
        wrong = self.check(answer)
        claimed = f"says done, but {wrong}" if wrong and not said else wrong
        row = {**LEFT_OUT, "solved": not wrong, **figures, "claimed": not said, "wrong": "; ".join(filter(None, (said, claimed)))}
        if not self.options.keep:
            shutil.rmtree(self.root, ignore_errors=True)
        return row


def attempt(task, options, go_cache):
    row = {"task": task.name, "kind": task.kind}
    if not shutil.which(task.program):
        return {**row, **LEFT_OUT, "wrong": f"skipped: there is no {task.program} here"}
    return {**row, **Attempt(task, options, go_cache).run()}


def shown(value, places=0):
    return "-" if value is None else f"{value:.{places}f}"


def line_of(row):
    verdict = {True: "yes", False: "NO", None: "-"}[row["solved"]]
    wrong = " ".join(row["wrong"].split())
    return (f"{row['task']:20}{row['kind']:13}{verdict:8}{shown(row['turns']):>5}{shown(row['prompt_tokens']):>10}"
            f"{shown(row['completion_tokens']):>9}{shown(row['seconds'], 1):>9}  {wrong if len(wrong) < 200 else wrong[:197] + '...'}").rstrip()


def summary(rows):
    run = [row for row in rows if row["solved"] is not None]
    total = {name: sum(row[name] or 0 for row in run) for name in ("turns", "prompt_tokens", "completion_tokens", "seconds")}
    false = sum(row["claimed"] and not row["solved"] for row in run)
    return (f"solved {sum(row['solved'] for row in run)} of {len(run)}, said done of {false} that were not, skipped {len(rows) - len(run)}; "
            f"{total['turns']} turns, {total['prompt_tokens']} + {total['completion_tokens']} tokens, {total['seconds']:.0f} s")


def compare(files):
    """One column a run: how many tries of a task solved it."""
    runs = [json.loads(pathlib.Path(file).read_text()) for file in files]
    for index, run in enumerate(runs):
        print(f"[{index + 1}] {run['agent']} {run['model'] or ''} {run['date']}: {summary(run['rows'])}")
    for name in sorted({row["task"] for run in runs for row in run["rows"]}):
        tries = [[row["solved"] for row in run["rows"] if row["task"] == name and row["solved"] is not None] for run in runs]
        print(f"{name:20}" + "".join(f"{f'{sum(one)}/{len(one)}' if one else '-':>8}" for one in tries))


def wanted_tasks(names):
    tasks = [Task(path) for path in sorted((HERE / "tasks").iterdir())]
    return [task for task in tasks if not names or any(task.name.startswith(name) for name in names)]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TASK", help="tasks whose names begin so; default: all")
    parser.add_argument("--endpoint", metavar="URL")
    parser.add_argument("--api-key-env", metavar="NAME", help="the variable with the endpoint's key; agents never see it")
    parser.add_argument("--model", metavar="NAME")
    parser.add_argument("--agent", metavar="COMMAND", help="run by sh in the workspace, with the task on stdin and the answer on stdout")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--compare", nargs="+", metavar="FILE", help="what --json wrote")
    parser.add_argument("--repeat", type=int, default=1, help="how often each task is tried")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time")
    parser.add_argument("--seconds", type=int, default=600, help="for one try")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="where the rows go, for --compare")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/cynode-sba")
    parser.add_argument("--keep", action="store_true", help="leave the directories of the tries where they are")
    parser.add_argument("--directory", help="where they are made")
    options = parser.parse_args()
    if not (options.compare or options.agent or options.reference or options.endpoint and options.model):
        parser.error("it needs --endpoint and --model, --agent, --reference or --compare")
    options.binary = options.binary.resolve()
    if not (options.compare or options.agent) and not os.access(options.binary, os.X_OK):
        parser.error(f"there is no {options.binary}: build it (scripts/build release), or name another with --binary")
    if not options.compare and not wanted_tasks(options.names):
        parser.error(f"there is no task {' '.join(options.names)}")
    return options


def measure(options):
    go_cache = pathlib.Path(tempfile.mkdtemp(prefix="sba-eval-go-", dir=options.directory))
    give(go_cache)
    print(f"{'task':20}{'kind':13}{'solved':8}{'turns':>5}{'prompt':>10}{'reply':>9}{'seconds':>9}  what went wrong")
    rows = []
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            tries = [task for task in wanted_tasks(options.names) for _ in range(options.repeat)]
            for row in pool.map(lambda task: attempt(task, options, go_cache), tries):
                rows.append(row)
                print(line_of(row), flush=True)
    finally:
        shutil.rmtree(go_cache, ignore_errors=True)
    print(summary(rows))
    if options.json:
        agent = options.agent or subprocess.run([options.binary, "--version"], capture_output=True, check=True, text=True).stdout.strip()
        options.json.write_text(json.dumps({"agent": agent, "model": options.model, "endpoint": options.endpoint,
                                            "date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")
    return rows


def main():
    options = read_options()
    if options.compare:
        return compare(options.compare)
    rows = measure(options)
    if options.reference and any(row["solved"] is False or not row.get("claimed", True) for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
