-- SPDX-License-Identifier: Apache-2.0
-- A client of the Agent Client Protocol: one session with one prompt. What the agent says goes in, what it is told
-- comes out; what it did, and how it ended, is read here.
--
-- Source: schema/v1/schema.json of the protocol (agentclientprotocol.com, version 1). `models` and session/set_model
-- are from its unstable part: agents had them before configuration options.

local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_rpc = require "sba.util.json_rpc"
local text = require "native.text"
local version = require "native.bundle".version

local client = {}
client.__index = client

local VERSION <const> = 1
local LONGEST_ANSWER <const>, LONGEST_TITLE <const> = 1024 * 1024, 200 -- bytes
local MOST_NOTES <const>, MOST_CALLS <const> = 20, 100000 -- of what is not understood; of tool calls that are followed
local AUTHENTICATION <const> = -32000
local INTERRUPTED <const> = "You were interrupted while you did this; look at what is there, and go on.\n\n"

---@class acp.client
---@field directory string absolute; where the agent works
---@field prompt string
---@field model? string
---@field mode? string
---@field permissions table<string, "allow"|"deny"> by kind of tool call; default: of the rest
---@field server? table an MCP server that it is told of, if it takes HTTP
---@field earlier? string a session that an earlier run has opened
---@field opened fun(session: string)
---@field run fun(arguments: table): table?, failure? as the step run_command
---@field read fun(arguments: table): table?, failure? as the step read_file
---@field write fun(arguments: table): table?, failure? as the step write_file
---@field say fun(said: string) for the log and the result
---@field plan fun(entries: { content: string, status: string }[])
---@field unread fun(why: string) set here, as all that follows
---@field stop_reason? string the turn is over
---@field failure? failure why there is no turn
---@field used_model? string as far as the agent says
---@field answer string[] the agent's last message, in pieces
---@field answer_size integer bytes
---@field usage table as a worker's report: prompt_tokens, completion_tokens, cost_usd
---@field calls table<string, { title: string, kind: string, status: string }> by id
---@field call_count integer

local function text_of(block)
  block = json.table_of(block)
  if block.type == "text" then return type(block.text) == "string" and block.text or "" end
  return block.type and ("[%s]"):format(humanize.brief(tostring(block.type))) or ""
end

local function fail(self, message, ...)
  self.failure = self.failure or { code = "step_failed", message = message:format(...) }
end

-- Begins a new line for another kind of words.
local function say(self, kind, said)
  if said == "" then return end
  if self.saying and (self.saying ~= kind or kind == "call") then said = "\n" .. said end
  self.saying = kind
  self.say(said)
end

local function show_call(self, call)
  local before, status = call.shown, call.status
  local is_new = status == "pending" or status == "in_progress"
  call.shown = status
  if status == before or is_new and before then return end
  say(self, "call", ("[%s] %s%s"):format(call.kind, call.title, is_new and "" or ": " .. status))
end

local updates = {}

function updates.agent_message_chunk(self, update)
  local said = text_of(update.content)
  if not self.is_answering then self.answer, self.answer_size = {}, 0 end
  self.is_answering, self.answer_size = true, self.answer_size + #said
  if self.answer_size <= LONGEST_ANSWER then self.answer[#self.answer + 1] = said end
  say(self, "message", said)
end

function updates.agent_thought_chunk(self, update)
  local said = text_of(update.content)
  self.is_answering = false
  if self.saying ~= "thought" then said = "(thinks) " .. said end
  say(self, "thought", said)
end

function updates.tool_call(self, update)
  local id = update.toolCallId
  if type(id) ~= "string" then return self.unread "a tool call without an id" end
  if not self.calls[id] then
    if self.call_count == MOST_CALLS then return end
    self.calls[id] = { title = "a tool", kind = "other", status = "pending" }
    self.call_count = self.call_count + 1
  end
  local call = self.calls[id]
  if type(update.title) == "string" then call.title = text.cut(humanize.brief(update.title), LONGEST_TITLE) end
  if type(update.kind) == "string" then call.kind = humanize.brief(update.kind) end
  if type(update.status) == "string" then call.status = humanize.brief(update.status) end
  self.is_answering = false
  show_call(self, call)
end
updates.tool_call_update = updates.tool_call

function updates.plan(self, update)
  local entries = {}
  for _, entry in ipairs(json.table_of(update.entries)) do
    if type(json.table_of(entry).content) == "string" then entries[#entries + 1] = entry end
  end
  self.plan(entries)
end

function updates.usage_update(self, update)
  local cost = json.table_of(update.cost)
  if cost.currency == "USD" and type(cost.amount) == "number" then self.usage.cost_usd = cost.amount end
end

-- Commands, modes, titles and what a later version adds say nothing of the work.
local function take_update(self, params)
  if self.is_loading then return end -- what it said before
  local update = json.table_of(params.update)
  local read = updates[update.sessionUpdate]
  if read then read(self, update) end
end

-- The first option of the kinds that are wanted.
local function option_of(options, kinds)
  for _, kind in ipairs(kinds) do
    for _, option in ipairs(json.table_of(options)) do
      if json.table_of(option).kind == kind and type(option.optionId) == "string" then return option.optionId end
    end
  end
end

local said_of <const> = { allow = "allowed", deny = "denied" }
local answers <const> = { allow = { "allow_once", "allow_always" }, deny = { "reject_once", "reject_always" } }

local function judge_permission(self, params)
  local asked = json.table_of(params.toolCall)
  if type(asked.toolCallId) == "string" then updates.tool_call(self, asked) end
  local known = self.calls[asked.toolCallId]
  local kind = known and known.kind or "other"
  if type(asked.kind) == "string" then kind = asked.kind end
  local decision = self.permissions[kind] or self.permissions.default or "allow"
  local option = option_of(params.options, answers[decision])
  say(self, "call", ("%s: %s"):format(known and known.title or kind, said_of[decision]))
  if option then return { outcome = { outcome = "selected", optionId = option } } end
  return { outcome = { outcome = "cancelled" } }
end

local function invalid(message) return nil, { code = json_rpc.INVALID_PARAMS, message = message } end

local function failed(message) return nil, { code = json_rpc.INTERNAL_ERROR, message = message } end

local function read_file(self, params)
  if type(params.path) ~= "string" or params.path == "" then return invalid "path must be a non-empty string" end
  local line, limit = math.tointeger(params.line), math.tointeger(params.limit)
  local first = line and math.max(line, 1)
  if limit and limit < 1 then return { content = "" } end
  local read, failure = self.read {
    path = params.path, start_line = first, end_line = limit and (first or 1) + limit - 1,
  }
  if not read then return failed(failure.message) end
  if read.encoding ~= "utf-8" then return failed(read.path .. " is not text") end
  return { content = read.content }
end

local function write_file(self, params)
  if type(params.path) ~= "string" or params.path == "" then return invalid "path must be a non-empty string" end
  if type(params.content) ~= "string" then return invalid "content must be a string" end
  local written, failure = self.write { path = params.path, content = params.content, encoding = "utf-8" }
  if not written then return failed(failure.message) end
  return {}
end

-- Some agents give a whole command line in place of a program.
local function command_of(params)
  local args = json.table_of(params.args)
  if #args == 0 and params.command:find "[%s|&;<>$]" then return { shell = params.command } end
  return { command = params.command, args = #args > 0 and args or nil }
end

-- Runs the command to its end, at once: the agent waits for that anyhow, or asks for the output until then.
local function create_terminal(self, params)
  if type(params.command) ~= "string" then return invalid "command must be a string" end
  local arguments = command_of(params)
  arguments.env, arguments.working_dir = {}, type(params.cwd) == "string" and params.cwd or nil
  for _, variable in ipairs(json.table_of(params.env)) do
    local name, value = variable.name, variable.value
    if type(name) == "string" and type(value) == "string" then arguments.env[name] = value end
  end
  local ended, failure = self.run(arguments)
  if not ended then return failed(failure.message) end
  local most = math.max(0, math.tointeger(params.outputByteLimit) or LONGEST_ANSWER)
  ended.is_cut, ended.output = ended.is_cut or #ended.output > most, text.tail(ended.output, most)
  self.terminals[#self.terminals + 1] = ended
  return { terminalId = ("t-%d"):format(#self.terminals) }
end

local function of_terminal(answer)
  return function(self, params)
    local ended = self.terminals[tonumber(tostring(params.terminalId):match "^t%-(%d+)$")]
    if not ended then return invalid "there is no such terminal" end
    return answer(ended)
  end
end

local function status_of(ended) return { exitCode = ended.exit_code, signal = ended.signal } end

local requests <const> = {
  ["session/request_permission"] = judge_permission,
  ["fs/read_text_file"] = read_file,
  ["fs/write_text_file"] = write_file,
  ["terminal/create"] = create_terminal,
  ["terminal/output"] = of_terminal(function(ended)
    return { output = ended.output, truncated = ended.is_cut, exitStatus = status_of(ended) }
  end),
  ["terminal/wait_for_exit"] = of_terminal(status_of),
  ["terminal/kill"] = of_terminal(function() return {} end),
  ["terminal/release"] = of_terminal(function(ended)
    ended.output = ""
    return {}
  end),
}

local stops <const> = {
  refusal = "the agent refused to go on", max_tokens = "the agent's model came to its limit of tokens",
  max_turn_requests = "the agent came to its limit of requests",
  cancelled = "the agent stopped as it was asked to: its time was nearly up",
}

local function take_end(self, result, failure)
  if failure then return fail(self, "the agent's turn failed: %s", failure.message) end
  local used = json.table_of(json.table_of(result).usage) -- unstable
  self.usage.prompt_tokens = math.tointeger(used.inputTokens)
  self.usage.completion_tokens = math.tointeger(used.outputTokens)
  local reason = json.table_of(result).stopReason
  if type(reason) ~= "string" then return fail(self, "the agent gave no reason for the end of its turn") end
  self.stop_reason = humanize.brief(reason)
  if reason == "end_turn" then return end
  fail(self, "%s", stops[reason] or "the agent's turn ended with " .. self.stop_reason)
  self.failure.code = stops[reason] and "agent_gave_up" or "step_failed"
end

local function ask(self)
  self.rpc:request("session/prompt", {
    sessionId = self.session, prompt = json.array { { type = "text", text = self.prompt } },
  }, function(result, failure) take_end(self, result, failure) end)
end

-- The values of a list of options, which may be in groups.
local function values_of(options, name, into)
  for _, option in ipairs(json.table_of(options)) do
    option = json.table_of(option)
    if type(option[name]) == "string" then into[#into + 1] = option[name] else values_of(option.options, name, into) end
  end
  return into
end

-- How a model or a mode is set: the request, and the values that are offered.
local function setting_of(self, offered, what)
  local wanted, params = self[what], { sessionId = self.session }
  for _, option in ipairs(json.table_of(offered.configOptions)) do
    option = json.table_of(option)
    if option.type == "select" and (option.category == what or option.id == what) then
      params.configId, params.value = option.id, wanted
      return "session/set_config_option", params, values_of(option.options, "value", {})
    end
  end
  if what == "mode" then
    params.modeId = wanted
    return "session/set_mode", params, values_of(json.table_of(offered.modes).availableModes, "id", {})
  end
  params.modelId = wanted
  return "session/set_model", params, values_of(json.table_of(offered.models).availableModels, "modelId", {})
end

-- Sets one after the other, then asks.
local function set(self, offered, names)
  local what = table.remove(names, 1)
  if not what then return ask(self) end
  local wanted = self[what]
  if not wanted then return set(self, offered, names) end
  local method, params, values = setting_of(self, offered, what)
  if not humanize.has(values, wanted) then
    local list = #values > 0 and humanize.list(values, "and") or "none"
    return fail(self, "the agent offers no %s %s; it offers %s", what, humanize.quoted(wanted), humanize.brief(list))
  end
  self.rpc:request(method, params, function(_, failure)
    if failure then return fail(self, "the %s %s cannot be set: %s", what, humanize.quoted(wanted), failure.message) end
    set(self, offered, names)
  end)
end

-- What the agent uses where nothing else is set.
local function model_of(offered)
  for _, option in ipairs(json.table_of(offered.configOptions)) do
    option = json.table_of(option)
    if option.category == "model" and type(option.currentValue) == "string" then return option.currentValue end
  end
  local current = json.table_of(offered.models).currentModelId
  return type(current) == "string" and current or nil
end

local function go_on(self, session, offered)
  self.session, self.used_model = session, self.model or model_of(offered)
  self.opened(session)
  set(self, offered, { "model", "mode" })
end

local function open_session(self, where)
  self.rpc:request("session/new", where, function(result, failure)
    if failure then
      local help = failure.code == AUTHENTICATION and "; give it its key in env or secrets" or ""
      return fail(self, "the agent opens no session: %s%s", failure.message, help)
    end
    local offered = json.table_of(result)
    if type(offered.sessionId) ~= "string" then return fail(self, "the agent opens no session: it names none") end
    go_on(self, offered.sessionId, offered)
  end)
end

-- A session of an earlier run that cannot be had again is replaced by a new one.
local function load_session(self, where)
  self.is_loading = true
  where.sessionId = self.earlier
  self.rpc:request("session/load", where, function(result, failure)
    self.is_loading, where.sessionId = false, nil
    if failure then return open_session(self, where) end
    self.prompt = INTERRUPTED .. self.prompt
    go_on(self, self.earlier, json.table_of(result))
  end)
end

local function begin(self, capabilities)
  local takes_http = json.table_of(capabilities.mcpCapabilities).http == true
  local where = { cwd = self.directory, mcpServers = json.array { takes_http and self.server or nil } }
  if self.server and not takes_http then say(self, "call", "the agent has no gateway: it takes no MCP over HTTP") end
  if self.earlier and capabilities.loadSession == true then load_session(self, where) else open_session(self, where) end
end

local function introduce(self)
  self.rpc:request("initialize", {
    protocolVersion = VERSION, clientInfo = { name = "cynode-sba", version = version },
    clientCapabilities = { fs = { readTextFile = true, writeTextFile = true }, terminal = true },
  }, function(result, failure)
    local spoken = json.table_of(result).protocolVersion
    if failure then return fail(self, "the agent cannot begin: %s", failure.message) end
    if spoken == VERSION then return begin(self, json.table_of(result.agentCapabilities)) end
    fail(self, "the agent speaks version %s of the protocol, not %d", humanize.brief(tostring(spoken)), VERSION)
  end)
end

---@param fields acp.client
---@return acp.client
function client.new(fields)
  local self = setmetatable(fields, client)
  self.answer, self.answer_size, self.usage = {}, 0, {}
  self.calls, self.call_count = {}, 0
  self.terminals, self.notes = {}, 0
  self.unread = function(why)
    self.notes = self.notes + 1
    if self.notes <= MOST_NOTES then say(self, "call", "not understood: " .. humanize.brief(why)) end
  end
  local bound = {}
  for method, respond in pairs(requests) do bound[method] = function(params) return respond(self, params) end end
  self.rpc = json_rpc.new {
    unread = self.unread, requests = bound,
    notices = { ["session/update"] = function(params) take_update(self, params) end },
  }
  introduce(self)
  return self
end

---@return string the agent's last message
function client:last_message() return table.concat(self.answer) end

---Tells the agent to stop its turn.
function client:cancel()
  if self.session and not self.stop_reason then self.rpc:notify("session/cancel", { sessionId = self.session }) end
end

---@param bytes string what the agent said; may be empty
---@return string? answer bytes for it
---@return boolean is_over the turn is over, or cannot be had
function client:hear(bytes)
  local ok, message = self.rpc:receive(bytes)
  if not ok then fail(self, "what the agent says cannot be read: %s", message) end
  return self.rpc:take(), self.failure ~= nil or self.stop_reason ~= nil
end

return client
