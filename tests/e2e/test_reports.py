# SPDX-License-Identifier: Apache-2.0
"""Reports of a job's beginning and end: to servers that are there, late, dead, silent, and of another mind."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import sba
from servers import model, status

GUARD = 120  # seconds after which something hangs

DELIVERED = {"in_progress": "delivered", "completed": "delivered"}


class ReportCase(sba.SandboxCase):
    def server(self, *answers, **options):
        return self.closing(status.Server(*answers, **options))

    def reported(self, server, *steps, env=None, **options):
        return self.run_steps(*steps, **options, env={"SBA_JOB_STATUS_URL": server.url, **(env or {})})

    @staticmethod
    def ends(outcome):
        return {line["report"]: line.get("outcome", "delivered") for line in outcome.log
                if line["event"] in ("report.sent", "report.failed")}


class Delivered(ReportCase):
    def test_beginning_and_end_by_one_connection(self):
        server = self.server(204)
        outcome = self.assert_end(self.reported(server, self.sh("echo done")), 0)
        self.assertEqual(server.bodies[0], {"status": "in_progress", "job_id": "job-1", "task_id": "task-1"})
        self.assertEqual(server.bodies[1],
                         {"status": "completed", "job_id": "job-1", "task_id": "task-1", "result": outcome.result})
        self.assertEqual((len(server.bodies), server.connections), (2, 1))
        self.assertEqual(self.ends(outcome), DELIVERED)
        self.assertTrue(all(head.startswith("POST /status HTTP/1.1\r\n")
                            and "\r\nContent-Type: application/json" in head
                            for head in server.heads))
        self.assertEqual(outcome.log[-1]["event"], "job.finished")

    def test_the_variables_and_their_order(self):
        first, second = self.server(204), self.server(204)
        self.run_steps(env={"SBA_CALLBACK_URL": second.url, "SBA_JOB_STATUS_URL": first.url})
        self.assertEqual((len(first.bodies), len(second.bodies)), (2, 0))
        self.run_steps(env={"SBA_CALLBACK_URL": second.url, "SBA_JOB_STATUS_URL": ""})
        self.assertEqual(len(second.bodies), 2)

    def test_the_result_file_is_complete_before_its_end_is_reported(self):
        seen = []

        def look(connection):
            seen.append(json.loads(self.result_path.read_bytes()))
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        outcome = self.reported(self.server(look, look), self.sh("true"))
        self.assertEqual([result["failure_code"] for result in seen], ["interrupted", None])
        self.assertEqual(seen[1], outcome.result)

    def test_a_status_delivers_whatever_body_follows(self):
        def endless(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b" " * 65536)

        def cut(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        for answer in (endless, cut):
            self.assertEqual(self.ends(self.reported(self.server(answer))), DELIVERED)

    def test_a_large_result_is_not_copied_to_be_sent(self):
        job = self.job(self.sh("head -c 33554432 /dev/zero | tr '\\0' 'x'"), max_output_bytes=1 << 26)

        def peak(env):
            """KiB of memory that a run of the job has at most."""
            process = self.start(job, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, code, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(code)
            self.assertEqual(process.returncode, 0)
            return usage.ru_maxrss
        server = self.server(204)
        with_report, without = peak({"SBA_JOB_STATUS_URL": server.url}), peak({})
        self.assertEqual(len(server.said("completed")), 1)
        if not sba.IS_DEV:
            self.assertLess(with_report - without, 4096)


class HowJobsEnd(ReportCase):
    """The end is reported of every job, the beginning of valid ones."""
    OUTER = {"CYNODE_JOB_ID": "outer", "CYNODE_TASK_ID": "t"}

    def test_failed_and_timed_out(self):
        for script, code, exit_status in (("exit 3", "step_failed", 1), ("sleep 60", "timeout", 124)):
            server = self.server(204)
            outcome = self.reported(server, self.sh(script), max_runtime_seconds=2)
            self.assert_end(outcome, exit_status, code)
            self.assertEqual(server.said("completed")[0]["result"], outcome.result)

    def test_a_refused_job_is_never_in_progress(self):
        server = self.server(204)
        for job in (b"{", {**self.job(), "surprise": 1}, self.job(context={"task_context": "/job/missing.md"})):
            server.bodies.clear()
            outcome = self.run_job(job, env={"SBA_JOB_STATUS_URL": server.url, **self.OUTER})
            self.assertEqual((outcome.exit, server.said("in_progress")), (2, []))
            (body,) = server.bodies
            self.assertEqual(body["result"], outcome.result)
            self.assertEqual(body["result"]["failure_code"], "schema_validation")
            self.assertEqual(body["job_id"], outcome.result["job_id"])
        self.assertNotEqual(outcome.result["job_id"], "outer")

    def test_a_cancelled_job(self):
        server = self.server(204)
        process = self.start(self.job(self.sh("echo > started; sleep 60")), env={"SBA_JOB_STATUS_URL": server.url})
        sba.wait_for((self.workspace / "started").exists, "the command to begin")
        process.send_signal(signal.SIGTERM)
        outcome = self.assert_end(self.outcome_of(process), 143, "cancelled")
        self.assertEqual(server.said("completed")[0]["result"], outcome.result)

    @unittest.skipUnless(os.geteuid() == 0, "only root is refused as root")
    def test_a_runner_that_refuses_root(self):
        server = self.server(204)
        outcome = self.run_job(self.job(), env={"SBA_JOB_STATUS_URL": server.url, **self.OUTER}, user=0, group=0)
        self.assertEqual((outcome.exit, server.said("in_progress")), (2, []))
        self.assertEqual(server.bodies[0]["result"]["failure_code"], "runs_as_root")
        self.assertEqual(server.bodies[0]["job_id"], "outer")

    def test_no_end_is_reported_whose_result_does_not_stand(self):
        server = self.server(204)
        target = self.root / "no" / "such" / "result.json"
        process = self.start(self.job(), "--result", str(target), env={"SBA_JOB_STATUS_URL": server.url})
        stderr = process.communicate(timeout=GUARD)[1]
        self.assertEqual((process.returncode, server.bodies), (3, []))
        self.assertIn(b'"event":"report.failed"', stderr)


class Troubled(ReportCase):
    def test_a_late_server(self):
        server = self.server(204, begin=False)
        job = self.job(self.sh("echo > begun; until test -e go; do sleep 0.02; done"), self.sh("true"))
        process = self.start(job, env={"SBA_JOB_STATUS_URL": server.url})
        sba.wait_for((self.workspace / "begun").exists, "the command to begin")
        server.start()
        self.put("go")
        outcome = self.assert_end(self.outcome_of(process), 0)
        self.assertEqual([body["status"] for body in server.bodies], ["in_progress", "completed"])
        self.assertEqual(self.ends(outcome), DELIVERED)
        self.assertEqual(len(outcome.events("report.retry")), 1)

    def start_silenced(self, job):
        """The same job where nothing that could answer does, each in its own way."""
        servers = {"dead": self.server(begin=False).url, "silent": self.server(status.hang).url,
                   "endless": self.server(status.drip).url, "signalled": self.server(status.hang).url}
        runs = {}
        for name, url in servers.items():
            case = self.fresh()
            runs[name] = case, case.start(job, env={"SBA_JOB_STATUS_URL": url})
        return runs

    def test_what_never_answers_costs_what_is_promised_and_no_more(self):
        begun = time.monotonic()
        runs = self.start_silenced(self.job(*[self.sh("true")] * 20,
                                            self.sh("echo > last; until test -e go; do sleep 0.05; done")))
        for name in ("dead", "silent", "endless"):
            runs[name][0].put("go")
        case, process = runs["signalled"]
        sba.wait_for((case.workspace / "last").exists, "the last step")
        process.send_signal(signal.SIGTERM)
        for name, (case, process) in runs.items():
            outcome = case.outcome_of(process)
            took = time.monotonic() - begun
            with self.subTest(name):
                self.assertEqual((outcome.exit, outcome.code), (143, "cancelled") if name == "signalled" else (0, None))
                self.assertEqual(self.ends(outcome), {"in_progress": "undeliverable", "completed": "undeliverable"})
                if name not in ("endless", "signalled"):  # no answer either, but one try uses up the time
                    self.assertTrue(all(line["tries"] > 1 for line in outcome.events("report.failed")))
                if name == "silent":  # two seconds, then what is left of three; later steps do not try again
                    (start,) = [line for line in outcome.events("report.failed") if line["report"] == "in_progress"]
                    self.assertLessEqual(start["tries"], 3)
                    self.assertLessEqual(float(re.search(r"within ([\d.]+) s", start["error"])[1]), 1)
                self.assertEqual(outcome.events("result.slow"), [])
                # Four seconds and half a minute, but for a busy machine.
                self.assertLess(outcome.result["duration_ms"], 20000)
                self.assertLess(took, 80)

    def test_a_second_signal_ends_it_at_once(self):
        server = self.server(204, status.hang)
        process = self.start(self.job(self.sh("touch begun; sleep 600")), env={"SBA_JOB_STATUS_URL": server.url})
        sba.wait_for((self.workspace / "begun").exists, "the step to begin")
        process.send_signal(signal.SIGTERM)
        sba.wait_for(lambda: server.said("completed"), "the end to be reported")
        process.send_signal(signal.SIGTERM)
        outcome = self.assert_end(self.outcome_of(process), 143, "cancelled")
        (failed,) = [line for line in outcome.events("report.failed") if line["report"] == "completed"]
        self.assertIn("the job was cancelled", failed["error"])
        self.assertFalse(outcome.events("watchdog.ended"))

    def test_the_first_signal_leaves_it_some_seconds(self):
        server = self.server(204, status.hang, 204)
        process = self.start(self.job(self.sh("true")), env={"SBA_JOB_STATUS_URL": server.url})
        sba.wait_for(lambda: server.said("completed"), "the end to be reported")
        process.send_signal(signal.SIGTERM)
        outcome = self.assert_end(self.outcome_of(process), 0)
        self.assertEqual(self.ends(outcome)["completed"], "delivered")

    def test_busy_and_then_not(self):
        server = self.server(503, 204, status.drop, (429, {"Retry-After": "1"}), 500, 408, 201)
        outcome = self.reported(server, self.sh("true"), self.sh("true"))
        self.assertEqual(self.ends(outcome), DELIVERED)
        self.assertEqual([body["status"] for body in server.bodies], ["in_progress"] * 2 + ["completed"] * 5)
        (sent,) = [line for line in outcome.events("report.sent") if line["report"] == "completed"]
        # The connection that was kept and then dropped is no try of its own: the same one goes on with another.
        self.assertEqual((sent["tries"], sent["status"]), (4, 201))

    def test_what_is_refused_is_not_tried_again(self):
        for answer in (400, 404, 401, 422, (302, {"Location": "/x"}), 304):
            server = self.server(answer)
            outcome = self.assert_end(self.reported(server, self.sh("true"), self.sh("true")), 0)
            self.assertEqual([body["status"] for body in server.bodies], ["in_progress", "completed"])
            self.assertEqual(self.ends(outcome), {"in_progress": "refused", "completed": "refused"})
            code = answer[0] if isinstance(answer, tuple) else answer
            self.assertEqual([line["status"] for line in outcome.events("report.failed")], [code] * 2)

    def test_a_redirect_from_an_address_whose_origin_is_unknown(self):
        # curl takes one to three slashes, and would take the path of the redirect for a host.
        server = self.server((307, {"Location": "/elsewhere/"}))
        for slashes in ("/", "///"):
            address = {"SBA_JOB_STATUS_URL": server.url.replace("//", slashes, 1)}
            outcome = self.assert_end(self.run_steps(self.sh("true"), env=address), 0)
            self.assertEqual(self.ends(outcome), {"in_progress": "refused", "completed": "refused"})

    def test_the_token_stays_with_the_gateway(self):
        server = self.server(204)
        self.reported(server, env={"SBA_MCP_TOKEN": "s3cret-token"})
        self.assertEqual(len(server.heads), 2)
        self.assert_lacks("".join(server.heads), "s3cret-token", "uthorization")

    def test_reports_do_not_use_the_jobs_time(self):
        # Two tries of the first take longer than the job may.
        server = self.server(status.hang, status.hang, 204)
        outcome = self.assert_end(self.reported(server, self.sh("true"), self.sh("true"), max_runtime_seconds=1), 0)
        self.assertEqual(self.ends(outcome), {"in_progress": "undeliverable", "completed": "delivered"})
        late = self.reported(self.server(status.hang, 204), self.sh("sleep 60"), max_runtime_seconds=1)
        self.assertEqual(late.exit, 124)


class Resumed(ReportCase):
    def test_an_end_that_did_not_arrive_is_reported_by_the_next_run(self):
        server = self.server((503, {"Retry-After": "100"}))
        once = self.sh("echo once >> count")
        first = self.reported(server, once)
        self.assertEqual(self.ends(first)["completed"], "undeliverable")
        self.assertEqual(len(server.said("completed")), 1)  # that wait is not begun
        server.answers = [204]
        server.bodies.clear()
        again = self.run_job(self.job(once), "--resume", env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual([body["status"] for body in server.bodies], ["completed"])
        self.assertEqual(server.bodies[0]["result"], first.result)
        self.assertEqual((again.exit, again.result), (0, first.result))
        self.assertEqual(self.text("count"), "once\n")

    def test_an_end_that_arrived_is_not_reported_again(self):
        for answer in (204, 400):
            server = self.server(answer)
            self.reported(server, self.sh("true"))
            server.bodies.clear()
            again = self.run_job(self.job(self.sh("true")), "--resume", env={"SBA_JOB_STATUS_URL": server.url})
            self.assertEqual((again.exit, server.bodies), (0, []))


class NotReported(ReportCase):
    def test_validation_and_replay_report_to_nobody(self):
        server = self.server(204)
        self.run_job(self.job(), "--validate", self.job_directory / "job.json", env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual(server.connections, 0)
        recording = self.root / "recording.jsonl"
        recording.write_text(json.dumps({"event": "model.exchange", "reply": model.ending("done")}) + "\n")
        job = self.job(execution_mode="agent_inference", inference={"allowed_models": ["m"]})
        outcome = self.run_job(job, "--replay", str(recording), env={"SBA_JOB_STATUS_URL": server.url})
        self.assertEqual((outcome.exit, server.connections), (0, 0))


sba.main(__name__)
