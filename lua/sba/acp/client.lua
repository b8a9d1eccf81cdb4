-- SPDX-License-Identifier: Apache-2.0
-- A client of the Agent Client Protocol: one session with one prompt. What the agent says goes
-- in, what it is told comes out; what it did, and how it ended, is read here.
--
-- Source: schema/v1/schema.json of the protocol (agentclientprotocol.com, version 1). `models` and
-- session/set_model are from its unstable part: agents had them before configuration options.

local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_rpc = require "sba.acp.json_rpc"
local redact = require "native.secret".redact
local table_of = json.table_of
local text = require "native.text"
local version = require "native.bundle".version

local client = {}
client.__index = client

local VERSION <const> = 1
local LONGEST_ANSWER <const> = 1024 * 1024 -- bytes
local MOST_NOTES <const> = 20 -- of what is not understood
local MOST_CALLS <const> = 100000 -- tool calls that are followed
local MOST_OUTPUTS <const> = 16 -- of the last commands
local AUTHENTICATION <const>, NEEDS_KEY <const> = -32000, "; give it its key in env or secrets"
local INTERRUPTED <const> = "You were interrupted while you did this; look at what is there, "
  .. "and go on.\n\n"

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
---@field is_cancelled? boolean it was told to stop; set here, as all that follows
---@field stop_reason? string the turn is over
---@field failure? failure why there is no turn
---@field used_model? string as far as the agent says
---@field answer string[] the agent's last message, in pieces
---@field answer_size integer bytes
---@field usage table as a worker's report: prompt_tokens, completion_tokens, cost_usd
---@field calls table<string, { title: string, kind: string, status: string }> by id
---@field call_count integer

local function string_of(value) return type(value) == "string" and value or nil end

-- The elements of a list that are objects.
local function objects(list)
  local found = {}
  for _, one in ipairs(table_of(list)) do
    if type(one) == "table" then found[#found + 1] = one end
  end
  return found
end

local function text_of(block)
  block = table_of(block)
  if block.type == "text" then return string_of(block.text) or "" end
  return block.type and ("[%s]"):format(humanize.brief(tostring(block.type))) or ""
end

-- The first failure stays.
local function end_with(self, code, message)
  self.failure = self.failure or { code = code, message = message }
end

local function fail(self, message, ...) end_with(self, "step_failed", message:format(...)) end

-- Begins a new line for another kind of words.
local function say(self, kind, said)
  if said == "" then return end
  if self.saying and (self.saying ~= kind or kind == "call") then said = "\n" .. said end
  self.saying = kind
  self.say(said)
end

local function unread(self, why)
  self.notes = self.notes + 1
  if self.notes > MOST_NOTES then return end
  say(self, "call", "not understood: " .. humanize.brief(why))
end

-- A tool call is shown when it begins, and when it ends.
local function show_call(self, call)
  local status = call.status
  local is_open = status == "pending" or status == "in_progress"
  if status == call.shown or is_open and call.shown then return end
  call.shown = status
  local line = ("[%s] %s"):format(call.kind, call.title)
  if not is_open then line = line .. ": " .. status end
  say(self, "call", line)
end

local updates = {}

function updates.agent_message_chunk(self, update)
  local said = text_of(update.content)
  if not self.is_answering then self.answer, self.answer_size = {}, 0 end
  self.is_answering = true
  self.answer_size = self.answer_size + #said
  if self.answer_size <= LONGEST_ANSWER then table.insert(self.answer, said) end
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
  if type(id) ~= "string" then return unread(self, "a tool call without an id") end
  if not self.calls[id] then
    if self.call_count == MOST_CALLS then return end
    self.calls[id] = { title = "a tool", kind = "other", status = "pending" }
    self.call_count = self.call_count + 1
  end
  local call = self.calls[id]
  for name in pairs { title = true, kind = true, status = true } do
    if string_of(update[name]) then call[name] = humanize.brief(update[name]) end
  end
  self.is_answering = false
  show_call(self, call)
end
updates.tool_call_update = updates.tool_call

function updates.plan(self, update)
  local entries = {}
  for _, entry in ipairs(objects(update.entries)) do
    if string_of(entry.content) then entries[#entries + 1] = entry end
  end
  self.plan(entries)
end

function updates.usage_update(self, update)
  local cost = table_of(update.cost)
  local is_known = cost.currency == "USD" and type(cost.amount) == "number"
  if is_known then self.usage.cost_usd = cost.amount end
end

-- Commands, modes, titles and what a later version adds say nothing of the work.
local function take_update(self, params)
  if self.is_loading then return end -- what it said before
  local update = table_of(params.update)
  local read = updates[update.sessionUpdate]
  if read then read(self, update) end
end

-- What a permission is called, and the kinds of options that grant or deny it: the first that is
-- offered is taken.
local decisions <const> = {
  allow = { said = "allowed", kinds = { "allow_once", "allow_always" } },
  deny = { said = "denied", kinds = { "reject_once", "reject_always" } },
}

local function option_of(options, kinds)
  for _, kind in ipairs(kinds) do
    for _, option in ipairs(objects(options)) do
      if option.kind == kind and string_of(option.optionId) then return option.optionId end
    end
  end
end

local function judge_permission(self, params)
  local asked, permissions = table_of(params.toolCall), self.permissions
  if string_of(asked.toolCallId) then updates.tool_call(self, asked) end
  local call = self.calls[asked.toolCallId] or { kind = string_of(asked.kind) or "other" }
  local decision = decisions[permissions[call.kind] or permissions.default or "allow"]
  local option = option_of(params.options, decision.kinds)
  say(self, "call", ("%s: %s"):format(call.title or call.kind, decision.said))
  if option then return { outcome = { outcome = "selected", optionId = option } } end
  return { outcome = { outcome = "cancelled" } }
end

local function invalid(message)
  return nil, { code = json_rpc.INVALID_PARAMS, message = message }
end

local function failed(message)
  return nil, { code = json_rpc.INTERNAL_ERROR, message = message }
end

local function has_path(params) return type(params.path) == "string" and params.path ~= "" end

local NO_PATH <const> = "path must be a non-empty string"

local function read_file(self, params)
  if not has_path(params) then return invalid(NO_PATH) end
  local line, limit = math.tointeger(params.line), math.tointeger(params.limit)
  if limit and limit < 1 then return { content = "" } end
  local first = line and math.max(line, 1)
  local last = limit and (first or 1) + limit - 1
  local read, failure = self.read { path = params.path, start_line = first, end_line = last }
  if not read then return failed(failure.message) end
  if read.encoding ~= "utf-8" then return failed(read.path .. " is not text") end
  return { content = read.content }
end

local function write_file(self, params)
  local path, content = params.path, params.content
  if not has_path(params) then return invalid(NO_PATH) end
  if type(content) ~= "string" then return invalid "content must be a string" end
  local written, failure = self.write { path = path, content = content, encoding = "utf-8" }
  if not written then return failed(failure.message) end
  return {}
end

-- As run_command takes it, or nil and the mistake. Some agents give a whole command line in place
-- of a program.
local function command_of(params)
  local command, args, env = string_of(params.command), table_of(params.args), {}
  if not command then return nil, "command must be a string" end
  for _, word in ipairs(args) do
    if type(word) ~= "string" then return nil, "args must be strings" end
  end
  for _, variable in ipairs(objects(params.env)) do
    if string_of(variable.name) then env[variable.name] = string_of(variable.value) end
  end
  local arguments = { env = env, working_dir = string_of(params.cwd) }
  if #args > 0 then
    arguments.command, arguments.args = command, args
  elseif command:find "[%s|&;<>$]" then
    arguments.shell = command
  else
    arguments.command = command
  end
  return arguments
end

-- Runs the command to its end, at once: the agent waits for that anyhow, or asks for the output
-- until then.
local function create_terminal(self, params)
  local arguments, mistake = command_of(params)
  if not arguments then return invalid(mistake) end
  local ended, failure = self.run(arguments)
  if not ended then return failed(failure.message) end
  local most = math.max(0, math.tointeger(params.outputByteLimit) or LONGEST_ANSWER)
  ended.is_cut = ended.is_cut or #ended.output > most
  ended.output = text.tail(ended.output, most)
  local terminals = self.terminals
  local number = #terminals + 1
  terminals[number] = ended
  local old = terminals[number - MOST_OUTPUTS]
  if old then old.output, old.is_cut = "", true end
  return { terminalId = "t-" .. number }
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

local STOPPED <const> = "the agent stopped as it was told to: its time was nearly up"
local gave_up <const> = {
  refusal = "the agent refused to go on",
  max_tokens = "the agent's model came to its limit of tokens",
  max_turn_requests = "the agent came to its limit of requests",
}

-- One that stops because it was told to has used up its time, as one that does not hear.
local function judge_end(self, reason)
  local was_told = reason == "cancelled" and self.is_cancelled
  if was_told then return end_with(self, "timeout", STOPPED) end
  if gave_up[reason] then return end_with(self, "agent_gave_up", gave_up[reason]) end
  if reason ~= "end_turn" then fail(self, "the agent's turn ended with %s", self.stop_reason) end
end

local function take_end(self, result, failure)
  if failure then return fail(self, "the agent's turn failed: %s", failure.message) end
  result = table_of(result)
  -- `usage` is unstable.
  local used, reason = table_of(result.usage), string_of(result.stopReason)
  self.usage.prompt_tokens = math.tointeger(used.inputTokens)
  self.usage.completion_tokens = math.tointeger(used.outputTokens)
  if not reason then return fail(self, "the agent gave no reason for the end of its turn") end
  self.stop_reason = humanize.brief(reason)
  judge_end(self, reason)
end

local function ask(self)
  local prompt = json.array { { type = "text", text = self.prompt } }
  self.rpc:request("session/prompt", { sessionId = self.session, prompt = prompt },
    function(result, failure) take_end(self, result, failure) end)
end

-- Adds the values of a list of options, which may be in groups.
local function values_of(options, name, into)
  for _, option in ipairs(objects(options)) do
    if string_of(option[name]) then
      table.insert(into, option[name])
    else
      values_of(option.options, name, into)
    end
  end
  return into
end

-- How a session without configuration options offers and takes what is set.
local older <const> = {
  model = {
    list = "models", of = "availableModels", id = "modelId",
    by = "session/set_model", as = "modelId",
  },
  mode = {
    list = "modes", of = "availableModes", id = "id",
    by = "session/set_mode", as = "modeId",
  },
}

-- How a model or a mode is set: the request, and the values that are offered.
local function setting_of(self, offered, what)
  local way, params = older[what], { sessionId = self.session }
  for _, option in ipairs(objects(offered.configOptions)) do
    if option.type == "select" and (option.category == what or option.id == what) then
      params.configId, params.value = option.id, self[what]
      return "session/set_config_option", params, values_of(option.options, "value", {})
    end
  end
  params[way.as] = self[what]
  return way.by, params, values_of(table_of(offered[way.list])[way.of], way.id, {})
end

-- Sets one after the other, then asks.
local function set(self, offered, names)
  local what = table.remove(names, 1)
  if not what then return ask(self) end
  if not self[what] then return set(self, offered, names) end
  local wanted = humanize.quoted(self[what])
  local method, params, values = setting_of(self, offered, what)
  if not json.contains(values, self[what]) then
    local list = #values > 0 and humanize.brief(humanize.list(values, "and")) or "none"
    return fail(self, "the agent offers no %s %s; it offers %s", what, wanted, list)
  end
  self.rpc:request(method, params, function(_, failure)
    if not failure then return set(self, offered, names) end
    fail(self, "the %s %s cannot be set: %s", what, wanted, failure.message)
  end)
end

-- What the agent uses where nothing else is set.
local function model_of(offered)
  for _, option in ipairs(objects(offered.configOptions)) do
    local value = option.category == "model" and string_of(option.currentValue)
    if value then return value end
  end
  return string_of(table_of(offered.models).currentModelId)
end

local function go_on(self, session, offered)
  self.session, self.used_model = session, self.model or model_of(offered)
  self.opened(session)
  set(self, offered, { "model", "mode" })
end

local function open_session(self, where)
  self.rpc:request("session/new", where, function(result, failure)
    local offered, why = table_of(result), "it names none"
    if string_of(offered.sessionId) then return go_on(self, offered.sessionId, offered) end
    if failure then why = failure.message end
    if failure and failure.code == AUTHENTICATION then why = why .. NEEDS_KEY end
    fail(self, "the agent opens no session: %s", why)
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
    go_on(self, self.earlier, table_of(result))
  end)
end

-- A session of an earlier run goes on, if the agent can.
local function begin(self, capabilities)
  local servers, server = json.array {}, self.server
  if server and table_of(capabilities.mcpCapabilities).http == true then
    servers[1] = server
  elseif server then
    say(self, "call", "the agent has no gateway: it takes no MCP over HTTP")
  end
  local where = { cwd = self.directory, mcpServers = servers }
  local may_load = self.earlier and capabilities.loadSession == true
  local open = may_load and load_session or open_session
  open(self, where)
end

local CAPABILITIES <const> = { fs = { readTextFile = true, writeTextFile = true }, terminal = true }

local function introduce(self)
  self.rpc:request("initialize", {
    protocolVersion = VERSION,
    clientInfo = { name = "cynode-sba", version = version },
    clientCapabilities = CAPABILITIES,
  }, function(result, failure)
    if failure then return fail(self, "the agent cannot begin: %s", failure.message) end
    result = table_of(result)
    local spoken = result.protocolVersion
    if spoken == VERSION then return begin(self, table_of(result.agentCapabilities)) end
    spoken = humanize.brief(tostring(spoken))
    fail(self, "the agent speaks version %s of the protocol, not %d", spoken, VERSION)
  end)
end

---@param fields acp.client
---@return acp.client
function client.new(fields)
  local self = setmetatable(fields, client)
  self.answer, self.answer_size, self.usage = {}, 0, {}
  self.calls, self.call_count = {}, 0
  self.terminals, self.notes = {}, 0
  self.rpc = json_rpc.new {
    owner = self,
    requests = requests,
    notices = { ["session/update"] = take_update },
    unread = unread,
  }
  introduce(self)
  return self
end

---@return string the agent's last message, without secrets
function client:last_message()
  local cut = self.answer_size > LONGEST_ANSWER and "end" or "none"
  return redact(table.concat(self.answer), cut)
end

---Tells the agent to stop its turn.
function client:cancel()
  if not self.session or self.stop_reason then return end
  self.is_cancelled = true
  self.rpc:notify("session/cancel", { sessionId = self.session })
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
