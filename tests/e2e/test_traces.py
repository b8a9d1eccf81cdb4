# SPDX-License-Identifier: Apache-2.0
"""Traces: one for each job, sent once; their context for commands and requests; and what must never fail a job."""
import json

import sba  # first: it knows where the others are
from agent_case import AgentCase, finish, writes
from servers import status

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


def attributes(item):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in item["attributes"]}


class TraceCase(AgentCase):
    def collector(self, *answers, **options):
        return self.closing(status.Server(*answers, **options))

    def traced(self, *steps, collector=None, env=None, **options):
        collector = collector or self.collector(200)
        outcome = self.run_steps(*steps, **options, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **(env or {})})
        return outcome, self.spans(collector)

    @staticmethod
    def spans(collector):
        return {span["name"]: span for body in collector.bodies for resource in body["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]}

    @staticmethod
    def failures(outcome):
        return [line["error"] for line in outcome.events("trace.failed")]


shell = sba.SandboxCase.sh


class TheTrace(TraceCase):
    def test_a_direct_job(self):
        collector = self.collector(200)
        outcome, spans = self.traced(shell('echo "$TRACEPARENT"'), self.write_file("x", "ab"),
                                     self.read_file("x", max_bytes=1), shell("exit 3"), collector=collector,
                                     env={"OTEL_SERVICE_NAME": "runner", "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,k=v"})
        self.assertEqual((outcome.exit, len(collector.bodies), self.failures(outcome)), (1, 1, []))
        self.assertTrue(collector.heads[0].startswith("POST /status/v1/traces HTTP/1.1\r\n"), collector.heads[0])
        resource = attributes(collector.bodies[0]["resourceSpans"][0]["resource"])
        self.assertLessEqual({"service.name": "runner", "team": "a b", "k": "v"}.items(), resource.items())
        job, write, failed = spans["job"], spans["step write_file"], spans["step run_command"]
        self.assertEqual({span["parentSpanId"] for span in (write, failed)}, {job["spanId"]})
        self.assertNotIn("parentSpanId", job)
        self.assertEqual({span["traceId"] for span in spans.values()}, {job["traceId"]})
        self.assertEqual((job["status"]["code"], write["status"]["code"], failed["status"]["code"]), (2, 1, 2))
        self.assertTrue(job["status"]["message"].startswith("step_failed: "))
        self.assertEqual([event["name"] for event in spans["step read_file"]["events"]], ["step.output_truncated"])
        self.assertEqual((attributes(failed)["process.exit.code"], attributes(failed)["error.type"]),
                         ("3", "step_failed"))
        self.assertEqual((attributes(job)["cynode.job.id"], attributes(job)["cynode.job.status"]), ("job-1", "failure"))
        self.assertTrue(all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans.values()))
        said = outcome.steps[0]["output"].strip()
        self.assertRegex(said, f"^00-{job['traceId']}-[0-9a-f]{{16}}-01$")
        first = [span for body in collector.bodies for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]][1]
        self.assertEqual(said.split("-")[2], first["spanId"])
        self.assertEqual({line["trace_id"] for line in outcome.log}, {job["traceId"]})

    def test_a_base_address_with_a_query_or_with_the_path(self):
        for more, target in (("/?key=v#x", "/v1/traces?key=v"), ("/v1/traces/", "/v1/traces")):
            collector = self.collector(200)
            self.traced(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + more}, collector=collector)
            self.assertIn(f"POST /status{target} HTTP/1.1", collector.heads[0])

    def test_a_failure_that_is_tolerated(self):
        _, spans = self.traced({**shell("exit 3"), "on_failure": "continue"}, collector=self.collector(200))
        job, step = spans["job"], spans["step run_command"]
        self.assertEqual((job["status"]["code"], step["status"]["code"]), (1, 2))
        self.assertIs(attributes(step)["cynode.step.tolerated"], True)

    def test_an_agents_job_by_the_conventions_for_models(self):
        server = self.server(writes("x", "y"), finish())
        collector, report = self.collector(200), self.collector(204)
        outcome = self.run_agent(server, env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.url + "/mine",
                                              "SBA_JOB_STATUS_URL": report.url})
        self.assertEqual((outcome.exit, self.failures(outcome)), (0, []))
        self.assertTrue(collector.heads[0].startswith("POST /status/mine HTTP/1.1\r\n"))
        spans = self.spans(collector)
        job, chat, tool = spans["invoke_agent cynode-sba"], spans["chat m"], spans["execute_tool write_file"]
        self.assertLessEqual({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
                              "gen_ai.provider.name": "ollama"}.items(),
                             attributes(chat).items())
        self.assertGreater(int(attributes(chat)["gen_ai.usage.input_tokens"]), 0)
        self.assertEqual(attributes(tool)["gen_ai.tool.name"], "write_file")
        self.assertEqual({chat["parentSpanId"], tool["parentSpanId"]}, {job["spanId"]})
        self.assertLessEqual({"report in_progress", "report completed"}, set(spans))
        self.assertEqual(chat["kind"], 3)
        heads = [head for head in report.heads if "\r\ntraceparent: " in head]
        self.assertEqual(len(heads), 2)

    def test_the_model_that_answered_is_the_one_that_the_server_names(self):
        for format in ("ollama", "openai"):
            routed = {**writes("x", "y"), "model": "m-2026"}
            server = self.server(routed, finish(), formats=[format])
            collector = self.collector(200)
            outcome = self.run_agent(server, form=format, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
            self.assertEqual((outcome.exit, self.failures(outcome)), (0, []))
            spans = collector.bodies[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
            chats = [attributes(span) for span in spans if span["name"] == "chat m"]
            self.assertEqual([chat["gen_ai.request.model"] for chat in chats], ["m", "m"])
            self.assertEqual([chat["gen_ai.response.model"] for chat in chats], ["m-2026", "m"])
            logged = [line.get("response_model") for line in outcome.events("model.response")]
            self.assertEqual(logged, ["m-2026", None])

    def test_the_context_of_the_environment(self):
        report = self.collector(204)
        given = {"TRACEPARENT": TRACEPARENT, "TRACESTATE": "a=1", "BAGGAGE": "user=me",
                 "SBA_JOB_STATUS_URL": report.url}
        outcome, spans = self.traced(shell('echo "$TRACEPARENT $TRACESTATE $BAGGAGE"'), env=given)
        self.assertEqual((spans["job"]["traceId"], spans["job"]["parentSpanId"], spans["job"]["traceState"]),
                         (TRACE, PARENT, "a=1"))
        self.assertRegex(outcome.steps[0]["output"],
                         f"^00-{TRACE}-{spans['step run_command']['spanId']}-01 a=1 user=me\n$")
        head = report.heads[-1]
        for line in (f"traceparent: 00-{TRACE}-{spans['job']['spanId']}-01", "tracestate: a=1", "baggage: user=me"):
            self.assertIn(f"\r\n{line}\r\n", head)
        self.assertEqual({line["trace_id"] for line in outcome.log}, {TRACE})

    def test_without_a_collector_the_context_is_passed_on_as_it_came(self):
        report = self.collector(204)
        outcome = self.run_steps(shell('echo "$TRACEPARENT"'),
                                 env={"TRACEPARENT": TRACEPARENT, "SBA_JOB_STATUS_URL": report.url})
        self.assertEqual(outcome.steps[0]["output"], TRACEPARENT + "\n")
        self.assertIn(f"\r\ntraceparent: {TRACEPARENT}\r\n", report.heads[0])
        self.assertEqual({line["trace_id"] for line in outcome.log}, {TRACE})
        outcome = self.run_steps(shell("true"))
        self.assertTrue(all("trace_id" not in line for line in outcome.log))

    def test_a_context_that_is_not_one_begins_a_new_trace(self):
        for value in ("", "x", TRACEPARENT.upper(), TRACEPARENT + "-00", f"00-{'0' * 32}-{PARENT}-01",
                      f"00-{TRACE}-{'0' * 16}-01",
                      "ff" + TRACEPARENT[2:], TRACEPARENT.replace("-", "_"), "0" * 100_000):
            outcome, spans = self.traced(shell("true"), env={"TRACEPARENT": value, "TRACESTATE": "a=1\r\nx: y"})
            self.assertNotIn("parentSpanId", spans["job"], value[:60])
            self.assertNotEqual(spans["job"]["traceId"], TRACE)


class Failures(TraceCase):
    def test_what_is_wrong_with_the_collector_is_logged_and_changes_nothing(self):
        for collector, env, words in (
                (self.collector(500), {}, "answered with status 500"),
                (self.collector(400), {}, "answered with status 400"),
                (self.collector(status.hang), {}, "the trace was not delivered"),
                (self.collector(200), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
                 "the trace was not delivered"),
                (self.collector(200), {"OTEL_EXPORTER_OTLP_ENDPOINT": "nowhere"}, "the trace was not delivered"),
                (self.collector(200), {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
                 'the protocol "http/protobuf"')):
            outcome, _ = self.traced(shell("true"), collector=collector,
                                     env={**env, "OTEL_EXPORTER_OTLP_TIMEOUT": "300"})
            self.assert_end(outcome, 0)
            self.assertEqual(len(self.failures(outcome)), 1, outcome.log)
            self.assertIn(words, self.failures(outcome)[0])

    def test_the_headers_are_sent_and_are_secrets(self):
        collector = self.collector(200)
        outcome, spans = self.traced(shell("env; echo key-of-the-collector"), collector=collector, env={
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=key-of-the-collector,x-other=a%20b"})
        self.assert_says(collector.heads[0], "\r\nx-key: key-of-the-collector\r\n", "\r\nx-other: a b\r\n")
        text = outcome.steps[0]["output"]
        self.assertNotIn("OTEL_EXPORTER_OTLP_HEADERS", text)
        for place in (text, outcome.stderr.decode(), json.dumps(spans)):
            self.assertNotIn("key-of-the-collector", place)
        self.assertIn("[redacted]", text)


sba.main(__name__)
