-- SPDX-License-Identifier: Apache-2.0
-- One session of the Agent Client Protocol, with an agent that the spec plays.
local client = require "sba.acp.client"
local json = require "sba.util.json"

describe("a client of agents", function()
  local self, said, sent, opened, over

  local function hear(bytes)
    local answer
    answer, over = self:hear(bytes)
    for line in (answer or ""):gmatch "[^\n]+" do sent[#sent + 1] = json.decode(line) end
  end

  local function tell(message) hear(json.encode(message) .. "\n") end
  local function last() return sent[#sent] end

  local function assert_sent(method, params)
    assert.same({ method, params }, { last().method, last().params })
  end

  local function answer(result) tell { jsonrpc = "2.0", id = last().id, result = result } end
  local function update(fields) tell { method = "session/update", params = { sessionId = "s", update = fields } } end
  local function chunk(kind, words) update { sessionUpdate = kind, content = { type = "text", text = words } } end

  local function begin(fields)
    said, sent, opened = {}, {}, {}
    fields = fields or {}
    fields.directory, fields.prompt = "/w", "Do it."
    fields.opened = function(session) opened[#opened + 1] = session end
    fields.permissions = fields.permissions or {}
    fields.say = function(words) said[#said + 1] = words end
    fields.plan = fields.plan or function() end
    self = client.new(fields)
    hear ""
  end

  --- As far as the session, of which the agent says this.
  local function open(fields, session)
    begin(fields)
    answer { protocolVersion = 1 }
    session = session or {}
    session.sessionId = "s"
    answer(session)
  end

  it("introduces itself, opens a session and asks", function()
    begin()
    assert.same({ "initialize", 1 }, { last().method, last().params.protocolVersion })
    assert.is_true(last().params.clientCapabilities.terminal)
    answer { protocolVersion = 1 }
    assert.same({ "session/new", "/w" }, { last().method, last().params.cwd })
    assert.is_true(json.is_array(last().params.mcpServers))
    answer { sessionId = "s" }
    assert.same({ method = "session/prompt", id = 3, jsonrpc = "2.0",
      params = { sessionId = "s", prompt = json.array { { type = "text", text = "Do it." } } } }, last())
    chunk("agent_message_chunk", "First ")
    update { sessionUpdate = "tool_call", toolCallId = "c", title = "Edit a.c", kind = "edit", status = "in_progress" }
    chunk("agent_message_chunk", "It is ")
    hear "npm warn in the middle\n"
    chunk("agent_message_chunk", "done.")
    assert.is_false(over)
    answer { stopReason = "end_turn" }
    assert.same({ true, "It is done.", nil }, { over, self:last_message(), self.failure })
    assert.equal("First \n[edit] Edit a.c\nIt is \nnot understood: a line that is no message: npm warn in the middle\n"
      .. "done.", table.concat(said))
  end)

  it("sets the model and the mode in the way that the agent offers, and no other", function()
    local group <const> = { options = json.array { { value = "big" } } }
    local options <const> = json.array {
      { id = "m", category = "model", type = "select", options = json.array { group } },
    }
    local modes <const> = { availableModes = json.array { { id = "plan" } } }
    open({ model = "big", mode = "plan" }, { configOptions = options, modes = modes })
    assert_sent("session/set_config_option", { sessionId = "s", configId = "m", value = "big" })
    answer {}
    assert_sent("session/set_mode", { sessionId = "s", modeId = "plan" })
    answer {}
    assert.equal("session/prompt", last().method)
    local models <const> = { currentModelId = "small", availableModels = json.array { { modelId = "big" } } }
    open({ model = "big" }, { models = models })
    assert.equal("big", self.used_model)
    assert_sent("session/set_model", { sessionId = "s", modelId = "big" })
    open(nil, { models = models })
    assert.equal("small", self.used_model)
    open(nil, { configOptions = json.array { { id = "m", category = "model", currentValue = "small" } } })
    assert.equal("small", self.used_model)
    open({ model = "small" }, { configOptions = options })
    assert.is_true(over)
    assert.equal('the agent offers no model "small"; it offers big', self.failure.message)
  end)

  it("answers what the agent asks for by the policy", function()
    local options <const> = json.array {
      { optionId = "a", kind = "allow_always" }, { optionId = "o", kind = "allow_once" },
      { optionId = "r", kind = "reject_once" },
    }
    local function asked(kind, choice)
      local params <const> = { toolCall = { toolCallId = kind, kind = kind }, options = choice or options }
      tell { id = "q", method = "session/request_permission", params = params }
      return last().result.outcome
    end
    open { permissions = { execute = "deny" } }
    assert.same({ outcome = "selected", optionId = "o" }, asked "edit")
    assert.same({ outcome = "selected", optionId = "r" }, asked "execute")
    assert.same({ outcome = "cancelled" }, asked("execute", json.array {}))
    open { permissions = { default = "deny", read = "allow" } }
    assert.same({ "r", "o" }, { asked("fetch").optionId, asked("read").optionId })
  end)

  it("reads and writes files by the steps that do", function()
    local seen = {}
    open {
      read = function(arguments)
        seen[#seen + 1] = arguments
        return { path = "a", content = "b\n", encoding = arguments.path == "/w/bytes" and "base64" or "utf-8" }
      end,
      write = function(arguments)
        seen[#seen + 1] = arguments
        return nil, { code = "path_escape", message = "path escapes workspace" }
      end,
    }
    tell { id = 1, method = "fs/read_text_file", params = { sessionId = "s", path = "/w/a", line = 3, limit = 2 } }
    assert.same({ "b\n", { path = "/w/a", start_line = 3, end_line = 4 } }, { last().result.content, seen[1] })
    tell { id = 2, method = "fs/read_text_file", params = { path = "/w/bytes", line = json.null } }
    assert.equal("a is not text", last().error.message)
    tell { id = 3, method = "fs/write_text_file", params = { path = "/etc/x", content = "y" } }
    assert.equal("path escapes workspace", last().error.message)
    for _, params in ipairs { {}, { path = 1 }, { path = "a", content = 1 } } do
      tell { id = 4, method = "fs/write_text_file", params = params }
      assert.equal(-32602, last().error.code)
    end
  end)

  it("runs commands by the step that does", function()
    local ran
    open {
      run = function(arguments)
        ran = arguments
        if arguments.command == "nowhere" then return nil, { code = "not_found", message = "nowhere is not found" } end
        return { exit_code = 3, output = "one\ntwo\n", is_cut = false }
      end,
    }
    local function ask(method, params)
      tell { id = 1, method = "terminal/" .. method, params = params }
      return last().result or last().error.message
    end
    local make <const> = { command = "make", args = json.array { "test" }, cwd = "/w/src", outputByteLimit = 4 }
    assert.same({ terminalId = "t-1" }, ask("create", make))
    assert.same({ command = "make", args = { "test" }, working_dir = "/w/src", env = {} }, ran)
    local first <const>, ended <const> = { terminalId = "t-1" }, { exitCode = 3 }
    assert.same({ output = "two\n", truncated = true, exitStatus = ended }, ask("output", first))
    assert.same(ended, ask("wait_for_exit", first))
    assert.same({}, ask("release", first))
    ask("create", { command = "make test | tail", env = json.array { { name = "CI", value = "1" } } })
    assert.same({ shell = "make test | tail", env = { CI = "1" } }, ran)
    assert.equal("nowhere is not found", ask("create", { command = "nowhere" }))
    assert.equal("command must be a string", ask("create", {}))
    assert.equal("args must be strings", ask("create", { command = "make", args = json.array { "a", {} } }))
    ask("create", { command = "make", args = 1, env = json.array { 1, { name = "CI" }, { name = 1, value = "1" } } })
    assert.same({ command = "make", env = {} }, ran)
    for _, id in ipairs { "t-9", "x", 1 } do
      assert.equal("there is no such terminal", ask("output", { terminalId = id }))
    end
  end)

  it("keeps the outputs of the last commands only", function()
    open { run = function() return { exit_code = 0, output = "made\n", is_cut = false } end }
    for _ = 1, 17 do tell { id = 1, method = "terminal/create", params = { command = "make" } } end
    tell { id = 1, method = "terminal/output", params = { terminalId = "t-1" } }
    assert.same({ "", true }, { last().result.output, last().result.truncated })
    tell { id = 1, method = "terminal/output", params = { terminalId = "t-2" } }
    assert.same({ "made\n", false }, { last().result.output, last().result.truncated })
  end)

  it("does not pile up answers that the agent has not taken", function()
    local content, codes <const> = ("x"):rep(1 << 20), {}
    open { read = function() return { path = "a", content = content, encoding = "utf-8" } end }
    local line <const> = json.encode { id = 1, method = "fs/read_text_file", params = { path = "a" } } .. "\n"
    local answers <const> = self:hear(line:rep(40))
    assert.is_true(#answers < 20 << 20)
    for code in answers:gmatch '"code":(-?%d+)' do codes[#codes + 1] = code end
    assert.same({ 24, "-32603" }, { #codes, codes[1] })
    tell(json.decode(line))
    assert.equal(content, last().result.content)
  end)

  it("opens a new session where the agent cannot go on with that of an earlier run", function()
    begin { earlier = "old" }
    answer { protocolVersion = 1, agentCapabilities = { loadSession = true } }
    assert.same({ "session/load", "old" }, { last().method, last().params.sessionId })
    tell { id = last().id, error = { code = -32002, message = "not found" } }
    assert.same({ "session/new", nil }, { last().method, last().params.sessionId })
    open { earlier = "old" }
    assert.same({ "s" }, opened)
    assert.equal("Do it.", last().params.prompt[1].text)
  end)

  it("tells of the gateway only an agent that takes it", function()
    begin { server = { type = "http", name = "gateway", url = "http://g", headers = json.array {} } }
    answer { protocolVersion = 1 }
    assert.same({}, last().params.mcpServers)
    assert.matches("the agent has no gateway", said[1])
  end)

  it("says what it does not understand, and goes on", function()
    open()
    local count <const> = #sent
    hear "npm warn something\n[1, 2]\n\n{\"id\": 99, \"result\": 1}\n{\"jsonrpc\": \"2.0\"}\n{\"method\": \"session/"
    hear "update\", \"params\": {\"update\": {\"sessionUpdate\": \"new_thing\"}}}\n{\"method\": \"what/ever\"}\n"
    assert.equal(count, #sent)
    assert.equal(4, select(2, table.concat(said):gsub("not understood: ", "")))
    tell { id = 5, method = "terminal/what", params = {} }
    assert.equal(-32601, last().error.code)
    assert.is_false(over)
    hear(("x"):rep(5 * 1024 * 1024))
    assert.is_true(over)
    assert.matches("a line is longer than 4194304 bytes", self.failure.message)
  end)

  it("tells why there is no turn, and how one ended", function()
    local function ends(reason)
      open()
      answer { stopReason = reason }
      return self.failure and self.failure.code
    end
    for _, reason in ipairs { "refusal", "max_tokens", "max_turn_requests" } do
      assert.equal("agent_gave_up", ends(reason))
    end
    assert.equal("step_failed", ends "because")
    begin()
    answer { protocolVersion = 2 }
    assert.matches("speaks version 2 of the protocol, not 1", self.failure.message)
    begin()
    answer { protocolVersion = 1 }
    tell { id = last().id, error = { code = -32000, message = "log in" } }
    assert.equal("the agent opens no session: log in; give it its key in env or secrets", self.failure.message)
  end)

  it("takes the end of a turn that it has cancelled for the end of its time", function()
    for _, is_told in ipairs { true, false } do
      open()
      local asked = last()
      if is_told then self:cancel() end
      hear ""
      assert.equal(is_told and "session/cancel" or "session/prompt", last().method)
      tell { jsonrpc = "2.0", id = asked.id, result = { stopReason = "cancelled" } }
      assert.equal(is_told and "timeout" or "step_failed", self.failure.code)
    end
  end)
end)
