# SPDX-License-Identifier: Apache-2.0
"""Artifacts and the result leave by PUT, to addresses whose queries are credentials."""
import json
import signal

import sba
from servers import status

SIGNATURE = "0123456789abcdef" * 4
QUERY = f"?X-Amz-Credential=AKIA0000000000000000%2F20260101&X-Amz-Signature={SIGNATURE}&token=short-one&size=12345678"
SECRETS = (SIGNATURE, "AKIA0000000000000000", "short-one")


class Put(sba.SandboxCase):
    def server(self, *answers):
        return self.closing(status.Server(*(answers or (200,))))

    def template(self, server, path="/bucket/{job_id}/{path}", query=QUERY):
        return {"SBA_ARTIFACT_URL_TEMPLATE": server.url + path + query}

    def came(self, server):
        """What was put: path without its query, and the body."""
        return [(head.split(" ")[1].split("?")[0].removeprefix("/status"), body)
                for head, body in zip(server.heads, server.received)]

    def assert_silent(self, outcome):
        """No credential is anywhere."""
        files = [path for path in self.job_directory.rglob("*") if path.name != "job.json"]
        for path in [*files, *self.workspace.rglob("*")]:
            for secret in SECRETS if path.is_file() else ():
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
        for secret in SECRETS:
            self.assertNotIn(secret.encode(), outcome.stderr)

    def job_of(self, script, **constraints):
        return self.job(self.sh(script), **constraints)

    def test_artifacts_then_the_result_then_the_report(self):
        server, reports = self.server(), self.server(204)
        names = ["a b/ü+%.txt", "empty", "large"]
        script = ('cd "$CYNODE_ARTIFACTS_DIR"; mkdir "a b"; printf hi >"a b/ü+%.txt"; : >empty; '
                  f'head -c 3000000 /dev/zero >large; env | grep ARTIFACT_URL; echo {SIGNATURE}')
        environment = {**self.template(server), "SBA_JOB_STATUS_URL": reports.url}
        outcome = self.assert_end(self.run_job(self.job_of(script), env=environment), 0)
        came = self.came(server)
        self.assertEqual([path for path, _ in came], ["/bucket/job-1/a%20b/%C3%BC%2B%25.txt", "/bucket/job-1/empty",
                                                      "/bucket/job-1/large", "/bucket/job-1/result.json"])
        self.assertEqual([len(body) for _, body in came[:3]], [2, 0, 3000000])
        self.assertEqual(came[3][1], outcome.result_bytes)
        for head, (_, body) in zip(server.heads, came):
            self.assertIn(QUERY, head)
            self.assertRegex(head, f"(?i)\r\ncontent-length: {len(body)}(\r|$)")
            self.assertNotRegex(head, "(?i)\r\n(content-type|transfer-encoding|expect):")
        self.assertEqual([one["path"] for one in outcome.result["artifacts"]], names)
        self.assertEqual([one["ref"] for one in outcome.result["artifacts"]], [server.url + one[0] for one in came[:3]])
        self.assertEqual([line["path"] for line in outcome.events("artifact.uploaded")], [*names, "result.json"])
        self.assertEqual(reports.said("completed")[0]["result"], outcome.result)
        self.assertNotIn("SBA_ARTIFACT", outcome.steps[0]["output"])  # env printed nothing
        self.assert_silent(outcome)

    def test_addresses_of_a_file(self):
        server = self.server()
        urls = {"a": f"{server.url}/x/a?sig={SIGNATURE}", "result.json": f"{server.url}/y?sig={SIGNATURE}&d=1"}
        listed = self.put(self.root / "urls.json", json.dumps(urls))
        script = f'cd "$CYNODE_ARTIFACTS_DIR"; echo 1 >a; echo 2 >b; cat {listed} 2>/dev/null; true'
        outcome = self.assert_end(self.run_job(self.job_of(script), env={"SBA_ARTIFACT_URLS_FILE": str(listed)}), 0)
        self.assertEqual([path for path, _ in self.came(server)], ["/x/a", "/y"])
        self.assertEqual([one.get("ref") for one in outcome.result["artifacts"]], [server.url + "/x/a", None])
        (failed,) = outcome.events("artifact.failed")
        self.assertEqual((failed["path"], failed["code"]), ("b", "no_url"))
        self.assert_silent(outcome)

    def test_what_fails_is_said_and_changes_nothing(self):
        elsewhere = (307, {"Location": "http://other.example/"})
        for answers, tries, words in (((403,), 1, "status 403"), ((503, 503, 200), 0, ""),
                                      ((elsewhere,), 1, "not followed"), ((status.drop, 200), 0, "")):
            with self.subTest(answers):
                case = self.fresh()
                server = case.server(*answers)
                outcome = case.run_job(case.job_of('echo 1 >"$CYNODE_ARTIFACTS_DIR/a"'), env=case.template(server))
                case.assert_end(outcome, 0)
                failed = [line["path"] for line in outcome.events("artifact.failed")]
                self.assertEqual(failed, ["a", "result.json"][:2 * tries])
                for line in outcome.events("artifact.failed"):
                    self.assertIn(words, line["error"])
                self.assertEqual("ref" in outcome.result["artifacts"][0], not tries)
                case.assert_silent(outcome)

    def test_a_failed_or_refused_job_is_put_too(self):
        server = self.server()
        outcome = self.run_job(self.job_of('echo 1 >"$CYNODE_ARTIFACTS_DIR/a"; exit 3'), env=self.template(server))
        self.assert_end(outcome, 1, code="step_failed")
        self.assertEqual(len(server.received), 2)
        refused = self.fresh()
        outcome = refused.run_job({"job_id": "job-2", "nonsense": 1}, env=refused.template(server))
        self.assertEqual(outcome.exit, 2)
        self.assertEqual(self.came(server)[2], ("/bucket/job-2/result.json", outcome.result_bytes))

    def test_a_job_cannot_choose_another_place(self):
        server = self.server()
        for job_id, path in (("x/y?z#", "/bucket/x%2Fy%3Fz%23/result.json"), ("../x", None), ("..", None),
                             ("a b", "/bucket/a%20b/result.json")):
            with self.subTest(job_id):
                case, count = self.fresh(), len(server.heads)
                job = case.job_of("true")
                job["job_id"] = job_id
                outcome = case.run_job(job, env=case.template(server))
                case.assert_end(outcome, 0)
                self.assertEqual([came for came, _ in self.came(server)[count:]], [path] if path else [])
        case = self.fresh()
        outcome = case.run_job(case.job_of('echo 1 >"$CYNODE_ARTIFACTS_DIR/result.json"'), env=case.template(server))
        self.assertEqual(self.came(server)[-1][1], outcome.result_bytes)
        self.assertEqual(outcome.events("artifact.failed")[0]["path"], "result.json")

    def test_in_a_query_slashes_are_encoded(self):
        server = self.server()
        script = 'mkdir "$CYNODE_ARTIFACTS_DIR/d"; echo 1 >"$CYNODE_ARTIFACTS_DIR/d/a"'
        self.run_job(self.job_of(script), env=self.template(server, "/put", "?to={task_id}/{path}"))
        self.assertEqual([head.split(" ")[1] for head in server.heads],
                         ["/status/put?to=task-1/d%2Fa", "/status/put?to=task-1/result.json"])

    def test_through_a_proxy(self):
        proxy = self.server()
        environment = {"SBA_ARTIFACT_URL_TEMPLATE": "http://store.example/{path}" + QUERY,
                       "HTTP_PROXY": proxy.url.removesuffix("/status")}
        outcome = self.run_job(self.job_of("true"), env=environment)
        self.assertEqual(proxy.heads[0].split("\r\n")[0], f"PUT http://store.example/result.json{QUERY} HTTP/1.1")
        self.assert_silent(outcome)

    def test_a_server_that_hangs_costs_a_cancelled_job_seconds(self):
        server = self.server(status.hang)
        job = self.job_of("touch up; sleep 600")
        begun = (self.workspace / "up").exists
        outcome = self.run_and_signal(job, signal.SIGTERM, begun, "the step", env=self.template(server))
        self.assertEqual((outcome.exit, outcome.code), (143, "cancelled"))
        self.assertEqual([line["path"] for line in outcome.events("artifact.failed")], ["result.json"])

    def test_mistakes_of_the_operator_are_warnings(self):
        for environment, words in (({"SBA_ARTIFACT_URL_TEMPLATE": "http://127.0.0.1:1/x"}, "no {path}"),
                                   ({"SBA_ARTIFACT_URLS_FILE": "/no/such"},
                                    "cannot read the file of SBA_ARTIFACT_URLS_FILE")):
            with self.subTest(environment):
                outcome = self.assert_end(self.fresh().run_job(self.job_of("true"), env=environment), 0)
                self.assertIn(words, outcome.events("secret.warning")[0]["error"])


sba.main(__name__)
