# SPDX-License-Identifier: Apache-2.0
"""A command that the kernel kills for want of memory is said to be so, and no other is."""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import time
import unittest

import sba

LIMIT = 192 << 20
HOG = "tail /dev/zero"


class Cgroup:
    """A memory cgroup of our own below the one that the test is in, of either version."""

    def __init__(self, parent, limits):
        self.directory = parent / f"sba-test-{os.getpid()}"
        self.directory.mkdir()
        for name, needed in limits.items():
            try:
                (self.directory / name).write_text(str(LIMIT))
            except OSError:
                if needed:
                    self.remove()
                    raise

    def remove(self):
        """Its last process may still be on its way out."""
        for _ in range(200):
            with contextlib.suppress(OSError):
                return self.directory.rmdir()
            time.sleep(0.05)


def own_path(controllers):
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controllers in names.split(","):
            return path.strip("/")
    return None


def new_cgroup():
    """None where there is none to be had."""
    for controllers, root, limits in (
            ("memory", "/sys/fs/cgroup/memory", {"memory.limit_in_bytes": True, "memory.memsw.limit_in_bytes": False}),
            ("", "/sys/fs/cgroup", {"memory.max": True, "memory.swap.max": False})):
        path = own_path(controllers)
        for directory in [] if path is None else [path, ""]:
            with contextlib.suppress(OSError):
                return Cgroup(pathlib.Path(root, directory), limits)
    return None


class OutOfMemory(sba.SandboxCase):
    def setUp(self):
        super().setUp()
        self.cgroup = new_cgroup() if sba.UID else None
        if not self.cgroup:
            self.skipTest("no memory cgroup can be made here: it wants root, and the memory controller")
        self.addCleanup(self.cgroup.remove)

    def run_limited(self, *steps, **fields):
        steps = [self.sh(step) if isinstance(step, str) else step for step in steps]
        enter = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.cgroup.directory / "cgroup.procs"), *sba.AS_USER]
        return self.run_job(self.job(*steps, **fields), wrapper=enter, **sba.AS_ROOT)

    def assert_out_of_memory(self, done, ending):
        step = done.steps[-1]
        self.assertEqual((done.exit, done.code, step["error_code"]), (1, "step_failed", "out_of_memory"), done.result)
        self.assertRegex(step["error"], f"{ending}: memory ran out, and the kernel killed a process; .*more")

    def test_the_command_itself(self):
        done = self.run_limited("exec " + HOG)
        self.assertEqual(done.steps[0]["result"]["signal"], "SIGKILL")
        self.assert_out_of_memory(done, "was ended by SIGKILL")

    def test_the_runner_itself(self):
        # It is killed like anybody else; what was done until then stands.
        self.put("large", b"a line\n" * (LIMIT // 7))
        patch = self.apply_diff("--- a/large\n+++ b/large\n@@ -1 +1 @@\n-a line\n+another\n")
        done = self.assert_end(self.run_limited("echo before", self.until_said("before"), patch), -9, "interrupted")
        self.assertEqual(done.steps[0]["output"], "before\n")

    def test_a_process_of_the_command(self):
        self.assert_out_of_memory(self.run_limited(HOG + "; exit 2"), "ended with exit code 2")

    def test_a_command_that_ends_well_all_the_same(self):
        self.assertEqual(self.run_limited(HOG + "; exit 0").exit, 0)

    def test_an_earlier_kill_is_not_blamed_on_a_later_command(self):
        counted = f"cd {self.cgroup.directory}; until grep -qs 'oom_kill [1-9]' memory.oom_control memory.events"
        done = self.run_limited(f"{HOG}; {counted}; do sleep 0.05; done", "kill -KILL $$")
        step = done.steps[1]
        self.assertEqual((step["error_code"], step["result"]["signal"]), ("step_failed", "SIGKILL"), done.result)
        self.assertNotIn("memory", step["error"])


@unittest.skipUnless(sba.MAY_MOUNT and os.path.isdir("/sys/fs/cgroup"), "nothing can be mounted, or there is no /sys")
class SecondVersion(sba.SandboxCase):
    """cgroup 2 keeps the count elsewhere: a file stands in for the kernel's, and the command counts."""
    COUNTER = "/sys/fs/cgroup/memory.events"
    environment = {"SBA_WRITABLE": "/sys/fs/cgroup"}  # the command writes the count

    def test_oom_kill_in_memory_events(self):
        def counts(numbers):
            return rf"printf 'low %d\nmax %d\noom %d\noom_kill %d\noom_group_kill %d\n' {numbers} >{self.COUNTER}"

        fake = f"mount -t tmpfs none /sys/fs/cgroup; {counts('0 0 0 0 0')}"
        count = counts("0 9 1 1 7")
        for script, code in (("exit 137", "step_failed"), (f"{count}; exit 137", "out_of_memory")):
            done = self.run_job(self.job(self.sh(script)), **self.in_namespace(f"{fake}; chmod 666 {self.COUNTER}"))
            self.assertEqual(done.steps[0]["error_code"], code, done.result)


@unittest.skipIf(sba.IS_DEV, "the sanitizers take memory as they like")
class ManySteps(sba.SandboxCase):
    """What steps gave is in the journal, not in memory, and the result is composed of it."""

    def test_memory_does_not_grow_with_them(self):
        step = self.sh("head -c 30000 /dev/zero | tr '\\0' x")
        done = self.run_steps(*[step] * 2000, max_runtime_seconds=600)
        self.assertEqual((done.exit, [step["output"] for step in done.steps]), (0, ["x" * 30000] * 2000))
        self.assertLess(done.result["resource_usage"]["max_rss_bytes"], 12 << 20)

    def test_nor_where_a_crash_or_a_resume_reads_them(self):
        self.put("small", b"x" * 20000)
        job = self.job(*[self.read_file("small")] * 3000, self.sh("test -e begun && exit; touch begun; sleep 600"))
        crashed = self.run_and_signal(job, signal.SIGSEGV, (self.workspace / "begun").exists, "the last step")
        resumed = self.run_job(job, "--resume")
        self.assertEqual((len(crashed.steps), crashed.code, resumed.exit), (3001, "internal_error", 0))
        for outcome in (crashed, resumed):
            self.assertLess(outcome.result["resource_usage"]["max_rss_bytes"], 24 << 20)

    def test_nor_in_a_script(self):
        script = sba.run("--lua", "-e", "print(collectgarbage 'isrunning')")
        self.assertEqual(script.stdout, b"true\n")

    def test_nor_with_the_size_of_a_text(self):
        # What a command printed is in a file without a name until the journal has it.
        text = "\u20ac \"quoted\"\tx\n" * (4 << 20)
        self.put("large", text.encode())
        half = text[:len(text) // 2]
        printing = self.sh(f"head -c {len(half.encode())} large; head -c {len(half.encode())} large >&2")
        digest = hashlib.sha256(text.encode()).hexdigest()
        for step, wanted in ((self.read_file("large"), {"content": text, "encoding": "utf-8", "sha256": digest}),
                             (printing, {"stdout": half, "stderr": half, "exit_code": 0})):
            job = self.job(step, max_output_bytes=1 << 30)
            on_stdout = sba.run("--stdin", "--workspace", str(self.workspace), stdin=json.dumps(job).encode())
            for outcome in (self.run_job(job).result, json.loads(on_stdout.stdout)):
                entry = outcome["steps"][0]
                for name, value in wanted.items():
                    self.assertTrue(entry["result"][name] == value, (name, outcome["failure_message"]))
                self.assertTrue(entry["output_truncated"] and entry["output"].startswith(text[:400000])
                                and entry["output"].endswith(text[-400000:]))
                self.assertLess(outcome["resource_usage"]["max_rss_bytes"], 12 << 20)

    def test_nor_with_the_size_of_what_is_no_text(self):
        # Bytes, a range of one long line, bytes that are cut: all is read, encoded and redacted a piece at a time.
        size, password = 60 << 20, b"sEcReT-pAsSwOrD"
        data = os.urandom(size // 2) + password + os.urandom(size // 2)
        self.put("bytes", data)
        self.put("line", b"first\n" + b"\xe2\x82\xac" * (size // 3) + b"\nlast")
        clean = base64.b64encode(data.replace(password, b"[redacted]")).decode()
        most = len(clean) - 7
        for arguments, most, wanted in (
                ({"path": "bytes"}, 1 << 30,
                 {"content": clean, "encoding": "base64", "sha256": hashlib.sha256(data).hexdigest()}),
                ({"path": "bytes"}, most, {"content": clean[:most // 4 * 4], "truncated": True}),
                ({"path": "line", "start_line": 2, "end_line": 2}, 1 << 30,
                 {"content": "\u20ac" * (size // 3) + "\n", "encoding": "utf-8", "total_lines": 3}),
                ({"path": "line", "offset_bytes": 6, "max_bytes": size - 4}, 1 << 30,
                 {"content": "\u20ac" * (size // 3 - 2), "encoding": "utf-8", "truncated": True})):
            done = self.run_steps(self.step("read_file", **arguments), max_output_bytes=most,
                                  env={"HTTP_PROXY": f"http://user:{password.decode()}@127.0.0.1:1/"})
            result = done.steps[0]["result"]
            for name, value in wanted.items():
                self.assertTrue(result[name] == value, (arguments, name, done.message))
            self.assertLess(done.result["resource_usage"]["max_rss_bytes"], 32 << 20)

    def test_a_search_for_which_memory_is_short(self):
        # At no limit is half a match in the result.
        self.put("many", 'a needle in "quotes"\n' * 4000)
        job = self.job(self.step("search_files", pattern="needle", max_matches=10 ** 6))
        for limit in range(12 << 20, 40 << 20, 1 << 16) if sba.LONG else range(15 << 20, 18 << 20, 1 << 16):
            for path in (self.result_path, self.journal_file):
                path.unlink(missing_ok=True)
            done = self.run_job(job, wrapper=["prlimit", f"--as={limit}"])
            for path in (self.result_path, self.journal_file):
                for line in path.read_text().splitlines() if path.exists() else ():
                    json.loads(line)
            self.assertTrue(done.exit == 0 or done.result is None or "memory" in done.message, (limit, done.result))

    def test_a_patch_takes_little_more_than_the_file_before_and_after(self):
        line, count = "abcdefghijklmnopqrstuvwxyz 0123456789\n", 1 << 20
        for number in (count + 1, 1):  # where the line is, and where it must be looked for
            self.put("large", line * count + "needle\n" + line * count)
            done = self.assert_end(self.run_steps(self.apply_diff(
                f"--- a/large\n+++ b/large\n@@ -{number} +{number} @@\n-needle\n+pin\n"), max_runtime_seconds=600), 0)
            self.assertTrue(self.text("large") == line * count + "pin\n" + line * count)
            most = 2.3 * 2 * len(line) * count  # of which 4 MiB are an empty job's
            self.assertLess(done.result["resource_usage"]["max_rss_bytes"], most)

    def test_a_journal_that_a_command_changed(self):
        # It is said, and nothing of it is believed. Below /tmp the commands may write to it.
        # One of a terabyte is not read for it.
        for script in ("printf x >>", "printf x | dd conv=notrunc of=", ": >", "truncate -s 1T "):
            done = self.run_steps(self.sh("echo one"), self.sh(f"{script}{self.job_directory}/journal.jsonl"))
            self.assertEqual((done.exit, done.code, done.steps), (1, "internal_error", []))
            self.assertIn("journal.jsonl was changed by a command", done.message)


sba.main(__name__)
