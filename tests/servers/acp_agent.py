# SPDX-License-Identifier: Apache-2.0
"""An agent of the Agent Client Protocol for tests: lines of JSON-RPC on stdin and stdout; its argument says how."""
import json
import os
import sys
import time


class Agent:
    def __init__(self):
        self.last_id, self.session, self.loaded = 0, {}, None

    def send(self, message):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def read(self):
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)

    def update(self, what, **fields):
        self.send({"method": "session/update",
                   "params": {"sessionId": "s-1", "update": {"sessionUpdate": what, **fields}}})

    def say(self, words, kind="agent_message_chunk"):
        self.update(kind, content={"type": "text", "text": words})

    def ask(self, method, **params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": {"sessionId": "s-1", **params}})
        answer = self.read()
        assert answer["id"] == self.last_id, answer
        return answer.get("result"), answer.get("error")

    def serve(self, work, capabilities, **session):
        """Answers until the client closes stdin; work(agent, prompt) is the turn, and gives its stop reason."""
        while True:
            message = self.read()
            method, result = message.get("method"), {}
            if method == "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": []}
            elif method == "session/new":
                self.session = message["params"]
                result = {"sessionId": "s-1", **session}
            elif method == "session/load":
                self.loaded = f"session/load {message['params']['sessionId']}"
                self.say("What was said before.")
            elif method == "session/prompt":
                result = {"stopReason": work(self, message["params"]["prompt"][0]["text"]),
                          "usage": {"inputTokens": 120, "outputTokens": 30}}
            if "id" in message:
                self.send({"id": message["id"], "result": result})


def edits(agent, prompt):
    """Reads and writes through the client, and asks for permission."""
    agent.say("I look at it.", "agent_thought_chunk")
    agent.update("plan", entries=[{"content": "change a.txt", "priority": "high", "status": "in_progress"}])
    path = os.path.join(agent.session["cwd"], "a.txt")
    agent.update("tool_call", toolCallId="1", title="Edit a.txt", kind="edit", status="pending")
    asked, _ = agent.ask("session/request_permission",
                         toolCall={"toolCallId": "1", "kind": "edit", "title": "Edit a.txt"}, options=[
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"}])
    if asked["outcome"].get("optionId") == "yes":
        before, _ = agent.ask("fs/read_text_file", path=path)
        agent.ask("fs/write_text_file", path=path, content=before["content"].upper())
    agent.update("tool_call_update", toolCallId="1", status="completed")
    agent.update("plan", entries=[{"content": "change a.txt", "priority": "high", "status": "completed"}])
    agent.update("usage_update", used=150, size=1000, cost={"amount": 0.25, "currency": "USD"})
    agent.say(f"Done: {prompt}")
    return "end_turn"


def outside(agent, _):
    for method, params in (("fs/read_text_file", {"path": "/etc/passwd"}),
                           ("fs/write_text_file", {"path": "../out", "content": "x"}),
                           ("fs/read_text_file", {"path": 3}), ("no/such", {})):
        result, error = agent.ask(method, **params)
        agent.say(f"{method}: {error['code'] if error else result}\n")
    return "end_turn"


def commands(agent, _):
    for command in ("cat a.txt; exit 3", "nowhere", "sleep 600 >/dev/null 2>&1 & echo $!"):
        made, error = agent.ask("terminal/create", command=command)
        if error:
            agent.say(error["message"] + "\n")
            continue
        ended, _ = agent.ask("terminal/wait_for_exit", terminalId=made["terminalId"])
        shown, _ = agent.ask("terminal/output", terminalId=made["terminalId"])
        agent.say(f"{ended['exitCode']}: {shown['output']}")
    return "end_turn"


def hangs(agent, _):
    agent.say("I wait.")
    while agent.read().get("method") != "session/cancel":
        pass
    agent.say(" I stop.")
    return "cancelled"


def loads(agent, prompt):
    if not agent.loaded:
        open("begun", "w").close()
        time.sleep(600)
    agent.say(f"{agent.loaded}: {prompt}")
    return "end_turn"


def suicide(agent, _):
    agent.ask("terminal/create", command=f"kill -9 {os.getpid()}; sleep 0.5; echo out")


def sleeps(agent, _):
    agent.ask("terminal/create", command="touch begun; sleep 600")
    time.sleep(600)


def servers(agent, _):
    listed = agent.session["mcpServers"]
    agent.say(str([f"{one['type']} {one['name']} {one['url']} {one['headers']}" for one in listed]))
    return "end_turn"


def deaf(agent, _):
    agent.say("I hear nothing.")
    time.sleep(600)


def garbage(agent, _):
    sys.stdout.write("npm warn\n[1]\n{}\n\x00\xff\n{\"id\": 77, \"result\": {}}\n" + "{" * 100000 + "\n")
    agent.say("Still here.")
    return "end_turn"


def pieces(agent, _):  # a secret in pieces, where the step's output ends
    for words in ("x" * ((1 << 20) - 10), "a-token-of", "-the-job", "y" * 1000):
        agent.say(words)
    return "end_turn"


def floods(agent, _):
    while True:
        sys.stdout.write(json.dumps({"id": 1, "method": "no/such", "params": {}}) * 1 + "\n")


def one_line(_, __):
    for _ in range(1000):
        sys.stdout.write("x" * (1 << 20))


def forks(agent, _):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    agent.say("I left one.")
    return "end_turn"


if __name__ == "__main__":
    way = sys.argv[1]
    if way == "silent":
        time.sleep(600)
    if way == "leaves":
        print("no key", file=sys.stderr)
        sys.exit(3)
    if way == "refuses":
        Agent().serve(lambda *_: "refusal", {})
    models = {"models": {"availableModels": [{"modelId": "big", "name": "Big"}], "currentModelId": "big"}}
    Agent().serve(globals()[way], {"loadSession": way == "loads", "mcpCapabilities": {"http": way == "servers"}},
                  **models)
