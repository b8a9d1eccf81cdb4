# SPDX-License-Identifier: Apache-2.0
"""Artifacts go to the orchestrator before the end is reported, and get their references."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import time

import sba
from servers import mcp, status

MIB = 1 << 20
PUT = {"inputSchema": {"type": "object", "properties": {name: {"type": "string"} for name in
                                                       ("task_id", "job_id", "path", "content_bytes_base64")},
                       "required": ["task_id", "path", "content_bytes_base64"]}}


class Store:
    """artifact.put: keeps what comes; answers with a reference, or as it is told."""

    def __init__(self, answer=lambda path: {"ref": "art:" + path}, plain=False):
        self.answer, self.plain, self.calls = answer, plain, []

    def __call__(self, exchange):
        given = exchange.message.get("params", exchange.message)["arguments"]  # of MCP, or of the plain form
        content = base64.b64decode(given.pop("content_bytes_base64"), validate=True)
        self.calls.append({**given, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        answer = self.answer(given["path"])
        if self.plain or not isinstance(answer, dict) or "content" in answer:
            return answer
        return {"content": [], "structuredContent": answer}


class ArtifactCase(sba.SandboxCase):
    ONE = sba.SandboxCase.sh("echo > $CYNODE_ARTIFACTS_DIR/a")

    def gateway(self, store, kind=mcp.Server, **options):
        return self.closing(kind(tools={"artifact.put": (PUT, store)}, **options))

    def uploaded(self, server, *steps, env=None, **options):
        return self.run_steps(*steps, **options, env={"SBA_MCP_GATEWAY_URL": server.url, **(env or {})})

    @staticmethod
    def refs(outcome):
        return {artifact["path"]: artifact.get("ref") for artifact in outcome.result["artifacts"]}


class Listed(ArtifactCase):
    def test_what_cannot_be_read_is_listed_without_a_digest(self):
        script = "echo a > a; echo b > b; truncate -s 2M c; mkdir d; echo e > d/e; chmod 0 b c d"
        outcome = self.run_steps(self.sh("cd $CYNODE_ARTIFACTS_DIR; " + script))
        self.addCleanup(os.chmod, self.job_directory / "artifacts/d", 0o755)
        self.assert_end(outcome, 0)
        self.assertEqual([(one["path"], one["size_bytes"], "sha256" in one) for one in outcome.result["artifacts"]],
                         [("a", 2, True), ("b", 2, False), ("c", 2 * MIB, False)])
        sba.result_validator().validate(outcome.result)
        closed, unread = outcome.events("artifacts.failed")
        self.assertIn("cannot read the directory d in the artifacts", closed["error"])
        self.assertEqual((unread["count"], unread["path"]), (2, "b"))
        self.assertRegex(unread["error"], "cannot read 2 artifacts, .* b: Permission denied")

    def test_the_node_can_delete_them_where_it_shared_the_job_directory(self):
        script = "cd $CYNODE_ARTIFACTS_DIR; mkdir -p d/e; echo > d/e/f; echo > a; chmod 700 d/e"
        for mode, bits in ((0o777, 0o077), (0o775, 0o070), (0o755, 0), (0o1777, 0)):
            with self.subTest(oct(mode)):
                self.job_directory.chmod(mode)
                directory = self.job_directory / "artifacts"
                for environment in ({}, {"CYNODE_ARTIFACTS_DIR": f"{directory}/"}):
                    self.assertEqual(self.run_steps(self.sh(script), env=environment).exit, 0)
                    for path, own in ((directory, 0o755), (directory / "d", 0o755), (directory / "d/e", 0o700)):
                        self.assertEqual(path.stat().st_mode & 0o777, own | bits, path)
                    shutil.rmtree(directory)

    def with_stdin(self, script, **env):
        """With the job on stdin and TMPDIR of its own. Returns the process, the result and what is left in TMPDIR."""
        temporary = self.folder(self.root / "tmp")
        job = json.dumps(self.job(self.sh(script))).encode()
        done = sba.run("--stdin", "--workspace", str(self.workspace), stdin=job, env={"TMPDIR": str(temporary), **env})
        return done, json.loads(done.stdout), list(temporary.iterdir())

    SCRIPT = "cd $CYNODE_ARTIFACTS_DIR; pwd; mkdir d; echo hello > d/a; ln -s /etc link"

    def test_with_the_result_on_stdout_they_are_in_a_temporary_directory(self):
        done, result, left = self.with_stdin(self.SCRIPT)
        self.assertEqual((done.returncode, [one["path"] for one in result["artifacts"]], left), (0, ["d/a"], []))
        self.assertTrue(result["steps"][0]["output"].startswith(str(self.root / "tmp/")))

    def test_the_temporary_directory_stays_where_an_upload_failed(self):
        store = Store()
        server = self.gateway(store)
        _, result, left = self.with_stdin(self.SCRIPT, SBA_MCP_GATEWAY_URL=server.url)
        self.assertEqual((result["artifacts"][0]["ref"], left), ("art:d/a", []))
        store.answer = lambda path: mcp.text("disk full", isError=True)
        done, result, left = self.with_stdin(self.SCRIPT, SBA_MCP_GATEWAY_URL=server.url)
        self.assertEqual((len(left), (left[0] / "d/a").read_text()), (1, "hello\n"))
        self.assertIn(f"all are kept in {left[0]}", done.stderr.decode())


class Claimed(ArtifactCase):
    """What lay there before and is unchanged is not this job's."""

    def artifact(self, *names, text="x"):
        return self.sh("cd $CYNODE_ARTIFACTS_DIR; " + "; ".join(f"printf {text} > {name}" for name in names))

    def of(self, job_id, *steps, **fields):
        return {**self.job(*steps, **fields), "job_id": job_id}

    def listed(self, job, *more):
        outcome = self.assert_end(self.run_job(job, *more), 0)
        return sorted(self.refs(outcome))

    def test_an_earlier_jobs_files_are_not_this_ones(self):
        reporting = self.of("one", self.artifact("one", "both"), self.write_file("new", "x"), report_changes=True)
        patch = self.job_directory / "artifacts" / "changes.patch"
        self.assertEqual(self.listed(reporting), ["both", "changes.patch", "one"])
        self.assertEqual(self.listed(self.of("two", self.artifact("two"))), ["two"])
        self.assertFalse(patch.exists())
        self.assertEqual(self.listed(self.of("three", self.artifact("both", text="y"))), ["both"])
        self.put(patch, "a user's own")
        self.assertEqual(self.listed(self.of("four")), [])
        self.assertEqual(patch.read_text(), "a user's own")

    def test_all_runs_of_a_job_are_its_own(self):
        self.assertEqual(self.listed(self.of("zero", self.artifact("zero"))), ["zero"])
        first = self.of("one", self.artifact("first"), self.sh("test -e again && exit; touch again; exit 1"))
        self.assert_end(self.run_job(first), 1, "step_failed")
        self.assertEqual(self.listed(first, "--resume"), ["first"])
        self.assertEqual(self.listed(self.of("one", self.artifact("second"))), ["first", "second"])

    def test_the_patch_of_a_run_that_is_not_resumed_goes(self):
        # It would say that this one changed what it left as it was.
        job = self.of("one", self.write_file("new", "x"), self.artifact("kept"), report_changes=True)
        self.assertEqual(self.listed(job), ["changes.patch", "kept"])
        outcome = self.run_job(job)
        self.assertEqual(([one["path"] for one in outcome.result["artifacts"]],
                          outcome.result["workspace_changes"]["files"]), (["kept"], []))
        self.assertFalse((self.job_directory / "artifacts" / "changes.patch").exists())

    def test_a_killed_one_too(self):
        self.assertEqual(self.listed(self.of("zero", self.artifact("zero"))), ["zero"])
        job = self.of("one", self.artifact("first"), self.sh("test -e killed || { touch killed; sleep 60; }"))
        self.run_and_kill(job)
        self.assertEqual(self.listed(job, "--resume"), ["first"])


class Uploaded(ArtifactCase):
    FILES = sba.SandboxCase.sh("cd $CYNODE_ARTIFACTS_DIR; printf hello > a; : > empty; mkdir 'd \"q\"'; "
                               "head -c 100001 /dev/urandom > 'd \"q\"/\u00e4'")

    def test_by_mcp_of_both_eras_and_by_the_plain_form(self):
        for kind, era in ((mcp.Server, "legacy"), (mcp.Server, "modern"), (mcp.PlainForm, None)):
            with self.subTest(kind.__name__, era=era):
                store = Store(plain=kind == mcp.PlainForm)
                outcome = self.assert_end(self.uploaded(self.gateway(store, kind, era=era), self.FILES), 0)
                listed = [(one["path"], one["size_bytes"], one["sha256"]) for one in outcome.result["artifacts"]]
                self.assertEqual([(call["path"], call["size"], call["sha256"]) for call in store.calls], listed)
                self.assertEqual([path for path, _, _ in listed], ["a", 'd "q"/\u00e4', "empty"])
                self.assertEqual({(call["task_id"], call["job_id"]) for call in store.calls}, {("task-1", "job-1")})
                self.assertEqual(self.refs(outcome), {path: "art:" + path for path, _, _ in listed})
                self.assertEqual([(line["path"], line["ref"]) for line in outcome.events("artifact.uploaded")],
                                 [(path, "art:" + path) for path, _, _ in listed])
                shutil.rmtree(self.job_directory / "artifacts")

    def test_before_the_end_is_reported(self):
        store, reports = Store(), self.closing(status.Server(204))
        store.answer = lambda path: {"ref": f"after {[body['status'] for body in reports.bodies]}"}
        outcome = self.uploaded(self.gateway(store), self.ONE, env={"SBA_JOB_STATUS_URL": reports.url})
        self.assertEqual(self.refs(outcome), {"a": "after ['in_progress']"})
        self.assertEqual(reports.said("completed")[0]["result"], outcome.result)

    def test_the_result_stands_as_interrupted_meanwhile_with_every_step(self):
        seen = []

        def look(path):
            seen.append(json.loads(self.result_path.read_bytes()))
            return {"ref": path}
        self.uploaded(self.gateway(Store(look)), self.ONE, self.sh("echo last"))
        self.assertEqual(seen[0]["failure_code"], "interrupted")
        self.assertEqual([step["status"] for step in seen[0]["steps"]], ["success"] * 2)

    def test_64_mib_in_little_memory(self):
        store = Store()
        peak = []
        store.answer = lambda path: peak.append(self.peak_of(process.pid)) or {"ref": path}
        server = self.gateway(store)
        process = self.start(self.job(self.sh("head -c 67108864 /dev/zero > $CYNODE_ARTIFACTS_DIR/big")),
                             env={"SBA_MCP_GATEWAY_URL": server.url})
        outcome = self.outcome_of(process)
        self.assertEqual(self.refs(outcome), {"big": "big"})
        self.assertEqual(store.calls[0]["size"], 64 * MIB)
        if not sba.IS_DEV:
            self.assertLess(peak[0], 16 * 1024)

    @staticmethod
    def peak_of(pid):
        """KiB of memory that a process has had at most."""
        return int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


class NotUploaded(ArtifactCase):
    """What cannot be uploaded stays on disk; the job ends as it would have."""
    SMALL = sba.SandboxCase.sh("echo a > $CYNODE_ARTIFACTS_DIR/a; echo b > $CYNODE_ARTIFACTS_DIR/b")

    def failed(self, outcome, *paths):
        self.assert_end(outcome, 0)
        lines = outcome.events("artifact.failed")
        self.assertEqual([line["path"] for line in lines], list(paths))
        self.assertTrue(all("stay" in line["error"] for line in lines))
        self.assertTrue((self.job_directory / "artifacts" / "a").exists())
        return lines

    def silent(self):
        return self.closing(status.Server(status.hang))

    def test_no_more_than_protects_the_node(self):
        store = Store()
        server = self.gateway(store)
        many = self.sh("cd $CYNODE_ARTIFACTS_DIR; for i in $(seq 10001 11003); do : > $i; done; : > a")
        outcome = self.uploaded(server, many)
        self.assertEqual((len(store.calls), len(outcome.result["artifacts"])), (1000, 1004))
        line, = self.failed(outcome, "11001")
        self.assertEqual((line["count"], line["code"]), (4, "too_many_artifacts"))

    def test_a_tool_that_fails_is_not_called_again(self):
        store = Store(lambda path: mcp.text("disk full", isError=True) if path == "a" else {"ref": path})
        outcome = self.uploaded(self.gateway(store), self.SMALL)
        (line,) = self.failed(outcome, "a")
        self.assertEqual([call["path"] for call in store.calls], ["a", "b"])
        self.assertEqual((line["tries"], self.refs(outcome)), (1, {"a": None, "b": "b"}))
        self.assertIn("disk full", line["error"])

    def test_a_gateway_that_fails_at_one_file_gets_the_others(self):
        def fail(exchange):
            exchange.whole(b"no", 500)

        def cut(exchange):
            exchange.close_connection = True
            exchange.connection.shutdown(2)
        for trouble in (fail, cut):
            def hook(exchange, trouble=trouble):
                return exchange.message["params"]["arguments"]["path"] == "a" and trouble(exchange)
            outcome = self.uploaded(self.gateway(Store(), hook=mcp.only("tools/call", hook)), self.SMALL)
            self.assertEqual(self.failed(outcome, "a")[0]["tries"], 4)
            self.assertEqual(self.refs(outcome), {"a": None, "b": "art:b"})

    def test_a_timed_out_job_ends_in_time(self):
        begun = time.monotonic()
        outcome = self.uploaded(self.silent(), self.ONE, self.sh("sleep 60"), max_runtime_seconds=1)
        # Four, but for a busy machine; without a bound, more than a minute.
        self.assertLess(time.monotonic() - begun, 30)
        self.assert_end(outcome, 124, "timeout")
        self.assertEqual(outcome.events("artifact.failed")[0]["code"], "timeout")

    # Far more than can be read in time, were it in place of the small one: files with holes.
    HUGE = "cd $CYNODE_ARTIFACTS_DIR; truncate -s 256M $(seq -f a%g 200); echo > b; "

    def test_a_timed_out_job_reads_what_there_is_time_for(self):
        slow = sba.slowness()
        outcome = self.run_steps(self.sh(self.HUGE + "sleep 60"), max_runtime_seconds=1)
        self.assert_in_time(outcome, 1, slow)
        *huge, small = outcome.result["artifacts"]
        self.assertEqual((outcome.exit, small["sha256"]), (124, hashlib.sha256(b"\n").hexdigest()))
        self.assertEqual([artifact["size_bytes"] for artifact in huge], [256 << 20] * 200)
        unread = [artifact["path"] for artifact in huge if "sha256" not in artifact]
        (failed,) = outcome.events("artifacts.failed")
        self.assertEqual((failed["count"], failed["path"] in unread), (len(unread), True))

    def test_many_are_listed_though_the_time_for_reading_is_up(self):
        # Lua that goes on past its time is stopped after a million instructions; to sort so many takes more.
        outcome = self.run_steps(self.sh(self.HUGE + "seq 20000 | xargs touch; sleep 60"), max_runtime_seconds=4)
        paths = [artifact["path"] for artifact in outcome.result["artifacts"]]
        self.assertEqual((outcome.exit, outcome.events("internal.error")), (124, []))
        self.assertEqual(paths, sorted(path.name for path in (self.job_directory / "artifacts").iterdir()))
        self.assertGreater(len(paths), 10000)

    def test_what_is_too_large_to_be_hashed_holds_no_job(self):
        huge = self.sh("cd $CYNODE_ARTIFACTS_DIR; truncate -s 1T a; truncate -s 268435457 c; echo > b")
        outcome = self.assert_end(self.uploaded(self.gateway(Store()), huge), 0)
        self.assertEqual([("sha256" in artifact, artifact.get("ref")) for artifact in outcome.result["artifacts"]],
                         [(False, None), (True, "art:b"), (False, None)])
        self.assertEqual(outcome.events("artifacts.failed"), [])
        failed = [(line["path"], line["code"]) for line in outcome.events("artifact.failed")]
        self.assertEqual(failed, [("a", "too_large"), ("c", "too_large")])

    def test_a_cancelled_job_uploads_too(self):
        outcome = self.run_and_signal(self.job(self.ONE, self.sh("touch now; sleep 60")), signal.SIGTERM,
                                      (self.workspace / "now").exists, "the artifact",
                                      env={"SBA_MCP_GATEWAY_URL": self.gateway(Store()).url})
        self.assertEqual((outcome.exit, self.refs(outcome)), (143, {"a": "art:a"}))

    def test_a_signal_ends_an_upload_that_hangs(self):
        silent = self.silent()
        begun = time.monotonic()
        outcome = self.run_and_signal(self.job(self.SMALL), signal.SIGTERM, lambda: silent.bodies, "a request",
                                      env={"SBA_MCP_GATEWAY_URL": silent.url})
        self.assertLess(time.monotonic() - begun, 30)
        # The work was done when the signal came.
        self.assertEqual(self.failed(outcome, "a")[0]["code"], "cancelled")


class Again(ArtifactCase):
    def test_a_job_that_was_killed_during_the_upload(self):
        pids = []
        store = Store(lambda path: pids and os.kill(pids.pop(), signal.SIGKILL) or {"ref": "art:" + path})
        server = self.gateway(store)
        script = "echo once >> count; echo > $CYNODE_ARTIFACTS_DIR/a; until test -e go; do sleep 0.02; done"
        job = self.job(self.sh(script))
        process = self.start(job, env={"SBA_MCP_GATEWAY_URL": server.url})
        pids.append(process.pid)
        self.put("go")
        left = self.outcome_of(process)
        self.assertEqual((left.exit, left.code, left.statuses), (-signal.SIGKILL, "interrupted", ["success"]))
        outcome = self.run_job(job, "--resume", env={"SBA_MCP_GATEWAY_URL": server.url})
        self.assertEqual((outcome.exit, self.refs(outcome)), (0, {"a": "art:a"}))
        self.assertEqual(self.text("count"), "once\n")

    def test_a_finished_job_uploads_nothing_again(self):
        store = Store()
        server = self.gateway(store)
        job = self.job(self.ONE)
        first = self.run_job(job, env={"SBA_MCP_GATEWAY_URL": server.url})
        again = self.run_job(job, "--resume", env={"SBA_MCP_GATEWAY_URL": server.url})
        self.assertEqual((len(store.calls), again.result), (1, first.result))


sba.main(__name__)
