# SPDX-License-Identifier: Apache-2.0
"""Artifacts and the result at a real S3-compatible server, by presigned URLs."""
import json

import sba
from servers import s3


class Presigned(sba.SandboxCase):
    def run_with(self, urls):
        listed = self.put(self.root / "urls.json", json.dumps(urls))
        script = ': >empty; head -c 30000000 /dev/zero >large; mkdir d; echo hi >"d/a b+ü.txt"'
        return self.run_steps(self.sh(f'cd "$CYNODE_ARTIFACTS_DIR"; {script}'),
                              env={"SBA_ARTIFACT_URLS_FILE": str(listed)})

    def test_all_arrives(self):
        server = self.closing(s3.S3())
        keys = {"d/a b+ü.txt": "job-1/d/a%20b%2B%C3%BC.txt", "empty": "job-1/empty", "large": "job-1/large",
                "result.json": "job-1/result.json"}
        outcome = self.run_with({path: s3.presigned(server.url + key) for path, key in keys.items()})
        self.assert_end(outcome, 0)
        self.assertEqual(outcome.events("artifact.failed"), [])
        refs = [one["ref"] for one in outcome.result["artifacts"]]
        self.assertEqual(refs, [server.url + keys[name] for name in sorted(keys)[:3]])
        wanted = {"d/a b+ü.txt": b"hi\n", "empty": b"", "large": bytes(30000000), "result.json": outcome.result_bytes}
        for path, content in wanted.items():
            self.assertEqual(server.has("job-1/" + path), content, path)
        self.assertNotIn(b"Signature=", outcome.stderr + outcome.result_bytes + self.journal_file.read_bytes())

    def test_what_the_server_refuses_is_said(self):
        server = self.closing(s3.S3())
        other = s3.presigned(server.url + "of/another/path").replace("of/another/path", "empty")
        outcome = self.run_with({"large": s3.presigned(server.url + "large", seconds=-60), "empty": other})
        self.assert_end(outcome, 0)
        said = {line["path"]: line["error"] for line in outcome.events("artifact.failed")}
        self.assertIn("status 403: AccessDenied: Request has expired", said["large"])
        self.assertIn("status 403: SignatureDoesNotMatch", said["empty"])
        self.assertEqual(sorted(said), ["d/a b+ü.txt", "empty", "large", "result.json"])
        self.assertIsNone(server.has("large"))


sba.main(__name__)
