# SPDX-License-Identifier: Apache-2.0
"""docs/job.md's recipes: the JSON language server of VS Code (also Neovim's jsonls) with the schema that the program prints."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
import packages  # noqa: E402

BINARY = os.environ["SBA_BINARY"]
PACKAGE = "vscode-langservers-extracted@4.10.0"


class Client:
    """As much of the Language Server Protocol as an editor needs to see mistakes."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, method, params, number=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})}
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self, wanted):
        """The next message that fits; the end of the stream is an error."""
        while True:
            length = 0
            while (line := self.process.stdout.readline().strip()):
                name, value = line.split(b":")
                length = int(value) if name.lower() == b"content-length" else length
            message = json.loads(self.process.stdout.read(length))
            if wanted(message):
                return message

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class LanguageServer(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="sba-editor-")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.schema = self.place / "job.schema.json"
        self.schema.write_bytes(subprocess.run([BINARY, "--schema", "job"], check=True, capture_output=True).stdout)
        programs = packages.node_modules("json-server-2", PACKAGE) / ".bin"
        self.client = Client(programs / "vscode-json-language-server")
        self.addCleanup(self.client.close)
        self.client.send("initialize", {"processId": None, "rootUri": self.place.as_uri(), "capabilities": {},
                                        "initializationOptions": {"handledSchemaProtocols": ["file"], "provideFormatter": False}}, 1)
        self.client.receive(lambda message: message.get("id") == 1)
        self.client.send("initialized", {})

    def mistakes(self, name, job):
        """What the editor underlines: (line, words), from 1."""
        uri = (self.place / name).as_uri()
        self.client.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "json", "version": 1, "text": job}})
        told = self.client.receive(lambda message: message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri)
        return [(found["range"]["start"]["line"] + 1, found["message"]) for found in told["params"]["diagnostics"]]

    JOB = ('{ %s"protocol_version": "1.0", "job_id": "j", "task_id": "t",\n'
           '  "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1000 },\n'
           '  "steps": [ { "type": "read_file", "arguments": { "path": "x" } } ]%s\n}\n')

    def test_the_job_names_its_schema(self):
        named = '"$schema": "%s", ' % self.schema.as_uri()
        self.assertEqual(self.mistakes("good.json", self.JOB % (named, "")), [])
        found = self.mistakes("bad.json", self.JOB % (named, ',\n  "surprise": 1'))
        self.assertEqual([line for line, _ in found], [4], found)

    def test_the_settings_name_it(self):
        self.client.send("workspace/didChangeConfiguration", {"settings": {"json": {"validate": {"enable": True}, "schemas": [
            {"fileMatch": ["job.json"], "url": self.schema.as_uri()}]}}})
        found = self.mistakes("job.json", (self.JOB % ("", "")).replace("60", '"long"').replace("read_file", "raed_file"))
        self.assertEqual({line for line, _ in found}, {2, 3}, found)


if __name__ == "__main__":
    unittest.main()
