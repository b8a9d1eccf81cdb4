#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of a model's endpoint: it counts requests and tokens, and adds a key that the agent behind it never sees.

    examples/eval/proxy.py --endpoint https://api.example/v1 --api-key-env KEY [--listen 127.0.0.1:8080]     prints the figures at Ctrl-C
"""
import argparse
import http.client
import http.server
import json
import os
import re
import threading
import urllib.error
import urllib.request

PROMPT, COMPLETION = (re.compile(rb'"(?:%s)"\s*:\s*(\d+)' % names) for names in (b"prompt_tokens|prompt_eval_count|input_tokens",
                                                                                b"completion_tokens|eval_count|output_tokens"))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        if not self.path.startswith("/"):  # behind the origin it would name another
            return self.send_error(400)
        proxy, body = self.server.proxy, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_chat = self.command == "POST" and self.path.endswith(("/chat", "/chat/completions", "/responses", "/generate"))
        if is_chat and self.path.endswith("/completions") and (fields := json.loads(body)).get("stream"):
            body = json.dumps({**fields, "stream_options": {"include_usage": True}}).encode()
        headers = {name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers}
        request = urllib.request.Request(proxy.origin + self.path, body or None, headers, method=self.command)
        if proxy.key:
            request.add_unredirected_header("Authorization", f"Bearer {proxy.key}")
        try:
            answer = urllib.request.urlopen(request)
        except urllib.error.HTTPError as failure:
            answer = failure
        except OSError as failure:
            return self.send_error(502, str(failure))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.end_headers()
        try:
            said = self.pass_on(answer)
        except (OSError, http.client.HTTPException):  # the endpoint died within its reply, which does not count
            return None
        if is_chat and answer.status == 200:
            proxy.count(said)
        return None

    def pass_on(self, answer):
        """What the endpoint said."""
        said = b""
        with answer:
            while piece := answer.read1(65536):
                said += piece
                try:
                    self.wfile.write(piece)
                except ConnectionError:  # the agent has heard enough, or its time is up
                    break
        return said

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Proxy:
    def __init__(self, endpoint, key_variable=None, listen="127.0.0.1:0"):
        self.origin, _, self.path = re.match(r"((?:\w+://)?[^/]*)(/?)(.*)", (endpoint or "").rstrip("/")).groups()
        self.key, self.url = os.environ.get(key_variable or "", ""), None
        self.listen, self.used, self.lock = listen.split(":"), [0, 0, 0], threading.Lock()

    def __enter__(self):
        if self.origin:
            self.server = http.server.ThreadingHTTPServer((self.listen[0], int(self.listen[1])), Handler)
            self.server.proxy, self.url = self, "http://%s:%d/%s" % (*self.server.server_address, self.path)
            self.url = self.url.rstrip("/")
            threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.origin:
            self.server.shutdown(), self.server.server_close()

    def count(self, said):
        with self.lock:
            tokens = (int((pattern.findall(said) or [0])[-1]) for pattern in (PROMPT, COMPLETION))
            self.used = [used + more for used, more in zip(self.used, (1, *tokens))]

    def figures(self):
        return dict(zip(("turns", "prompt_tokens", "completion_tokens"), self.used)) if self.origin else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True), parser.add_argument("--api-key-env"), parser.add_argument("--listen", default="127.0.0.1:8080")
    options = parser.parse_args()
    with Proxy(options.endpoint, options.api_key_env, options.listen) as proxy:
        print(proxy.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(json.dumps(proxy.figures()))


if __name__ == "__main__":
    main()
