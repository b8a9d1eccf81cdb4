# SPDX-License-Identifier: Apache-2.0
"""The result file: its form, its artifacts, and the places where it cannot be written as usual."""
import ctypes
import datetime
import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import termios
import unittest

import sba
from sba import SandboxCase

KEYS = ["protocol_version", "job_id", "task_id", "status", "started_at", "finished_at", "duration_ms", "steps",
        "artifacts", "todo", "resource_usage", "inference_used", "runner", "retryable", "confinement", "failure_code",
        "failure_message"]
STEP_KEYS = ["index", "id", "type", "status", "started_at", "duration_ms", "exit_code", "output", "output_truncated",
             "error", "error_code", "result"]


def parse_time(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


class FormTest(SandboxCase):
    def test_keys_come_in_the_contracts_order(self):
        job = self.job(self.sh("echo out"), self.sh("exit 3"), self.sh("true"))
        result = self.run_job(job).result
        self.assertEqual(list(result), KEYS)
        self.assertIs(result["retryable"], False)
        sha256 = hashlib.sha256((self.job_directory / "job.json").read_bytes()).hexdigest()
        system = os.uname()
        self.assertEqual(list(result["runner"].items())[1:],
                         [("job_sha256", sha256), ("arch", system.machine), ("kernel", system.release)])
        self.assertIn(result["runner"]["version"], sba.run("--version").stdout.decode())
        self.assertNotIn("retryable", self.run_steps().result)
        for step in result["steps"]:
            self.assertEqual(list(step), [key for key in STEP_KEYS if key in step])
        self.assertEqual(list(result["todo"]), ["total", "done", "items"])
        self.assertEqual([step["index"] for step in result["steps"]], [0, 1, 2])

    def test_who_ran_it_is_in_every_result(self):
        def digest():
            return hashlib.sha256((self.job_directory / "job.json").read_bytes()).hexdigest()
        waits = self.job(self.sh("touch killed; sleep 600"))
        for number, code in ((signal.SIGKILL, "interrupted"), (signal.SIGTERM, "cancelled"),
                             (signal.SIGABRT, "internal_error")):
            outcome = self.run_and_signal(waits, number, (self.workspace / "killed").exists, "the step")
            self.assertEqual((outcome.code, outcome.result["runner"]["job_sha256"]), (code, digest()))
            (self.workspace / "killed").unlink()
        edited = self.run_job(self.job(self.sh("true"), max_runtime_seconds=59), "--resume")
        self.assertEqual((edited.code, edited.result["runner"]["job_sha256"]), (None, digest()))
        self.assertEqual(self.run_job(b"no job").result["runner"]["job_sha256"], digest())

    def test_times_and_usage(self):
        slow = sba.slowness()
        result = self.run_steps(self.sh("sleep 0.2")).result
        started, finished = parse_time(result["started_at"]), parse_time(result["finished_at"])
        self.assertEqual(len(result["started_at"]), len("2026-01-31T09:05:00.123Z"))
        differ = abs((finished - started).total_seconds() * 1000 - result["duration_ms"])
        self.assertLessEqual(differ, 100 * max(slow, sba.slowness()))
        self.assertGreaterEqual(result["duration_ms"], 200)
        self.assertLessEqual(started, parse_time(result["steps"][0]["started_at"]))
        self.assertGreater(result["resource_usage"]["max_rss_bytes"], 100000)
        self.assertIs(result["inference_used"], False)

    def test_plain_output_is_whole_up_to_its_limit(self):
        numbers = "yes 0123456789 | head -c 100000"
        steps = self.run_job(self.job(
            self.sh(numbers + " | tee numbers"), self.read_file("numbers"),
            self.sh(numbers, max_output_bytes=1000), self.sh(numbers, max_output_bytes=10),
            self.sh("echo 1; " + self.until_said("1") + "; echo 2 >&2; " + self.until_said(r"1\n2") + "; echo 3"),
            self.read_file("numbers", max_bytes=5))).steps
        self.assertEqual([step["output"] == ("0123456789\n" * 9091)[:100000] for step in steps[:2]], [True, True])
        cut = r"\[\.\.\. \d+ of 100000 bytes left out \.\.\.\]"
        self.assertRegex(steps[2]["output"], rf"^(0123456789\n)+0*1*2*[\s\S]*{cut}\n[\s\S]*0123456789\n")
        self.assertLessEqual(len(steps[2]["output"]), 1000)
        self.assertEqual([step["output"] for step in steps[3:]], ["0123456789", "1\n2\n3\n", "01234"])
        self.assertEqual([step.get("output_truncated") for step in steps], [None, None, True, True, None, True])

    def test_plain_output_past_a_mebibyte_is_head_and_tail(self):
        steps = self.run_steps(self.sh("echo first; yes | head -c 3000000; echo last >&2"),
                               self.sh("yes | head -c 1048576"), self.sh("yes | head -c 1048577"),
                               max_output_bytes=1 << 23).steps
        output = steps[0]["output"]
        self.assertTrue(output.startswith("first\ny\n") and output.endswith("y\nlast\n"))
        self.assertEqual(len(steps[0]["result"]["stdout"]), 3000006)
        self.assertTrue(1000000 < len(output) <= 1 << 20, len(output))
        self.assertRegex(output, r"\n\[\.\.\. \d+ of 3000011 bytes left out \.\.\.\]\n")
        self.assertEqual([step.get("output_truncated") for step in steps], [True, None, True])
        self.assertEqual(len(steps[1]["output"]), 1 << 20)
        self.assertTrue(1000000 < len(steps[2]["output"]) <= 1 << 20, len(steps[2]["output"]))

    def test_the_log_says_how_much_of_a_long_text_is_kept(self):
        self.put("large", b"x" * 3000000)
        done = self.run_steps(self.read_file("large", max_bytes=2000000),
                              self.sh("cat large", max_output_bytes=2000000), max_output_bytes=1 << 22)
        self.assertEqual([event["kept_bytes"] for event in done.events("step.output_truncated")], [2000000, 2000000])

    def test_the_todo_list_follows_the_steps(self):
        job = self.job(self.sh("true"), self.sh("false"),
                       self.sh("true"),
                       context={"requirements": ["r1", "ä" * 1000], "acceptance_criteria": ["a1"]})
        outcome = self.run_job(job)
        todo = outcome.result["todo"]
        self.assertEqual(todo["items"][1]["title"], "ä" * 200)
        self.assertEqual((todo["total"], todo["done"]), (6, 1))
        self.assertEqual([item["source"] for item in todo["items"]],
                         ["requirement"] * 2 + ["acceptance_criterion"] + ["step"] * 3)
        self.assertEqual([item["status"] for item in todo["items"]], ["pending"] * 3 + ["done", "dropped", "dropped"])
        self.assertEqual([item["id"] for item in todo["items"]], [str(i) for i in range(1, 7)])
        self.assertEqual(self.todo_items(), todo["items"])

    def test_a_long_step_does_not_keep_those_before_it_out(self):
        # A checkpoint that was put off when a step ended is written when it has become old.
        job = self.job(self.sh("head -c 100000 /dev/zero | tr '\\0' x"),
                       self.sh("echo second"),
                       self.sh(self.until_said("second"), timeout_seconds=30))
        self.assertEqual(self.run_job(job).exit, 0)

    def test_nothing_but_its_files_is_left_in_the_job_directory(self):
        self.run_steps(self.sh("true"))
        self.assertEqual(sorted(os.listdir(self.job_directory)),
                         ["artifacts", "job.json", "journal.jsonl", "result.json", "todo.json"])
        self.assertEqual(self.result_path.stat().st_mode & 0o7777, 0o644)


class ArtifactTest(SandboxCase):
    def check_artifacts(self, outcome, files):
        expected = [{"path": path, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                    for path, content in sorted(files.items())]
        self.assertEqual(outcome.result["artifacts"], expected)

    def test_regular_files_below_the_directory_beside_the_result(self):
        script = ("cd $CYNODE_ARTIFACTS_DIR && mkdir -p a/b && printf one > a/b/1 && : > 0 && "
                  "ln -s 0 link && mkfifo fifo && ln -s / root")
        outcome = self.run_steps(self.sh(script))
        self.check_artifacts(outcome, {"a/b/1": b"one", "0": b""})

    def test_a_directory_of_ones_own(self):
        directory = self.folder(self.root / "elsewhere")
        job = self.job(self.sh("pwd; printf x > $CYNODE_ARTIFACTS_DIR/x"))
        outcome = self.run_job(job, env={"CYNODE_ARTIFACTS_DIR": str(directory)})
        self.check_artifacts(outcome, {"x": b"x"})
        self.assertFalse((self.job_directory / "artifacts").exists())


@sba.wants("strace")
class DurableTest(SandboxCase):
    """What a power loss would tell: the order of the system calls. The last rename is the final result's."""

    def calls_of(self, *more, script="true"):
        trace = self.put(self.root / "trace")
        wrapper = sba.strace("writev,ftruncate,fsync,fdatasync,renameat,renameat2,fcntl", "-f", log=trace)
        self.assert_end(self.run_job(self.job(self.sh(script)), *more, wrapper=wrapper), 0)
        calls, original = [], {}
        pattern = r"^\d+ +(\w+)\((\d+)(?:, F_DUPFD_CLOEXEC, 0\) += (\d+))?"
        for name, descriptor, copy in re.findall(pattern, trace.read_text(), re.MULTILINE):
            if copy:
                original[copy] = descriptor  # a thread syncs it
            elif name != "fcntl":
                calls.append((name, original.pop(descriptor, descriptor) if name == "fsync" else descriptor))
        return calls

    def test_the_final_one_is_on_disk_before_it_has_its_name_and_its_name_before_the_runner_ends(self):
        calls = self.calls_of()
        at = max(i for i, (name, _) in enumerate(calls) if name.startswith("rename"))
        written, synced, (_, directory), directory_synced = calls[at - 2:at + 2]
        self.assertEqual((written[0], synced, directory_synced),
                         ("writev", ("fsync", written[1]), ("fsync", directory)))

    def test_nothing_else_waits_for_the_disk(self):
        # Neither what is written while a command runs, nor what it leaves.
        shown = "echo x > $CYNODE_ARTIFACTS_DIR/x; echo shown; " + self.until_said("shown")
        for script in ("true", shown):
            self.assertEqual([name for name, _ in self.calls_of(script=script)].count("fsync"), 2)

    def test_in_place_it_is_on_disk_too(self):
        self.calls_of()  # leaves the files
        self.job_directory.chmod(0o555)
        self.addCleanup(self.job_directory.chmod, 0o755)
        calls = self.calls_of()
        self.assertEqual([name for name, _ in calls[-3:]], ["writev", "ftruncate", "fsync"])
        self.assertEqual(len({descriptor for _, descriptor in calls[-3:]}), 1)


class UsageTest(SandboxCase):
    def test_what_commands_use_counts(self):
        done = self.run_steps(self.step("run_command", argv=["/usr/bin/python3", "-c", "x = bytearray(300 << 20)"]))
        self.assertGreater(done.result["resource_usage"]["max_rss_bytes"], 300 << 20)


class PlaceTest(SandboxCase):
    def check_unwritable(self, job, *more, **options):
        outcome = self.run_job(job, *more, **options)
        self.assertEqual(outcome.exit, 3)
        lines = [line for line in outcome.stderr.decode().splitlines() if not line.startswith('{"ts"')]
        self.assertTrue(lines[0].startswith("cynode-sba: "), lines)
        self.assertEqual(list(json.loads(lines[1])), KEYS)
        self.assertFalse((self.workspace / "ran").exists())
        return json.loads(lines[1])

    def ran(self):
        return self.job(self.sh("touch ran"))

    def test_a_missing_directory_and_what_is_no_file(self):
        os.mkfifo(self.job_directory / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.job_directory / "socket"))
            for path in (self.root / "none" / "result.json", self.workspace, self.job_directory / "fifo",
                         self.job_directory / "socket", "/dev/null"):
                result = self.check_unwritable(self.ran(), "--result", str(path))
                self.assertIn(os.path.dirname(path), result["failure_message"])

    def test_what_a_command_put_in_its_place_or_way(self):
        result, directory = self.result_path, self.job_directory
        outcome = self.run_steps(self.sh(f"rm {result}; mkdir {result}"))
        self.assertEqual((outcome.exit, outcome.result_on_stderr["status"]), (3, "success"))
        self.assertEqual([path.name for path in directory.iterdir() if path.name.startswith(".")], [])
        result.rmdir()
        outcome = self.assert_end(self.run_steps(self.sh(f"chmod 500 {directory}")), 0)
        self.assertEqual(outcome.events("result.in_place"), [], "the runner opens its directory again")
        self.assertEqual(directory.stat().st_mode & 0o700, 0o700)

    def test_a_link_is_replaced_and_its_target_left(self):
        target = self.put("target", "untouched")
        self.result_path.symlink_to(target)
        self.assertEqual(self.run_job(self.ran()).exit, 0)
        self.assertFalse(self.result_path.is_symlink())
        self.assertEqual(target.read_text(), "untouched")

    def test_a_read_only_directory_with_a_writable_result(self):
        self.put(self.result_path, "older" * 10000)
        os.chown(self.job_directory, 0, 0) if sba.UID else None
        self.start(self.ran()).communicate()  # leaves job.json
        self.result_path.write_text("older" * 10000)
        for name in ("journal.jsonl", "todo.json"):
            (self.job_directory / name).unlink(missing_ok=True)
        (self.workspace / "ran").unlink(missing_ok=True)
        self.job_directory.chmod(0o555)
        self.addCleanup(self.job_directory.chmod, 0o755)
        outcome = self.assert_end(self.run_job(self.ran()), 0)
        self.assertTrue((self.workspace / "ran").exists())
        events = [line["event"] for line in outcome.log]
        self.assert_says(events, "journal.failed", "todo.failed", "result.in_place")

    @unittest.skipUnless(sba.UID, "wants root")
    def test_a_job_directory_of_another_user(self):
        # A node that forgot to give it away is told why nothing ran, and who the runner was.
        os.chown(self.job_directory, 0, 0)
        outcome = self.run_job(self.ran())
        self.assertEqual(outcome.exit, 3)
        self.assertFalse((self.workspace / "ran").exists())
        self.assertRegex(outcome.stderr.decode(), rf"user {sba.UID} cannot write \S+result.json, .*: Permission denied")

    @unittest.skipUnless(sba.UID, "wants root")
    def test_a_sticky_directory_of_another_user(self):
        # There nobody may put a file in the place of the node's, but everybody may write that one.
        os.chown(self.job_directory, 0, 0)
        self.job_directory.chmod(0o1777)
        self.result_path.touch()
        self.result_path.chmod(0o666)
        outcome = self.assert_end(self.run_job(self.ran()), 0)
        self.assertTrue(outcome.events("result.in_place"))

    @unittest.skipUnless(sba.MAY_MOUNT, "nothing can be mounted here")
    def test_a_read_only_mount_with_a_bind_mounted_file(self):
        # A node that lets a container write nothing but its result.
        outside = self.put(self.root / "outside")
        self.result_path.touch()
        job, result = self.job_directory, self.result_path
        mounts = f"mount --bind {job} {job}; mount --bind {outside} {result}; mount -o remount,bind,ro {job}"
        outcome = self.run_job(self.ran(), **self.in_namespace(mounts))
        self.assertEqual(outcome.exit, 0, outcome.stderr)
        self.assertEqual(json.loads(outside.read_text())["status"], "success")
        self.assertTrue(outcome.events("result.in_place"))

    def test_stdout(self):
        process = self.start(self.ran(), "--result", "-")
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(list(json.loads(stdout)), [key for key in KEYS if key != "retryable"])
        self.assertEqual(json.loads(stderr.splitlines()[-1])["event"], "job.finished")
        self.assertEqual(sorted(os.listdir(self.job_directory)), ["job.json"])

    def test_stdout_that_is_closed(self):
        # Else the result would be lost, and the status would say that all is well.
        outcome = self.run_job(self.ran(), "--result", "-", wrapper=["sh", "-c", 'exec "$0" "$@" >&-'])
        self.assertEqual((outcome.exit, outcome.result_on_stderr["status"]), (3, "success"))
        self.assertIn("stdout took only 0 of ", outcome.stderr.decode())

    def test_stdout_that_nobody_reads_when_a_signal_comes(self):
        # The watch over the end ends the runner, whose result is not whole.
        job = self.job(self.sh("head -c 900000 /dev/zero | tr '\\0' x"))
        process = self.start(job, "--result", "-")
        taken = ctypes.c_int()
        sba.wait_for(lambda: fcntl.ioctl(process.stdout, termios.FIONREAD, taken) == 0 and taken.value, "its begin")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 3)
        stdout, _ = process.communicate()
        self.assertRaises(ValueError, json.loads, stdout)


sba.main(__name__)
