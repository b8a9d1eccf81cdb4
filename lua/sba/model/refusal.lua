-- SPDX-License-Identifier: Apache-2.0
-- What follows from a server's refusal. Rules in order; the first that applies decides. Status, words and what was sent
-- count, not a list of sentences: a server's words may change, what we sent is known.

local lpeg = require "lpeg"
local said_of = require "sba.model.said"
local sizes_in = require "sba.model.sizes"

local refusal = {}

local has, has_word = said_of.has, said_of.has_word

---@class model.sent what was asked
---@field fields table<string, any> of the body: the optional ones among them may be left out
---@field tools? model.tool[] as tools, not as text
---@field has_system? boolean a message of the system, first
---@field thinking_field? string a member that the server had sent, and that was not sent back
---@field max_tokens? integer
---@field may_fit? boolean the conversation may be made to fit: a shorter one, or a shorter reply
---@field others? string[] further models that may be asked
---@field tried table<string, true|integer> what was tried for this reply: "again", "shorter", "text"

---@class model.move
---@field act "drop"|"bound"|"send_back"|"system_first"|"fit"|"mend"|"text"|"tell"|"next_model"|"wait"|"again"|"give_up"
---@field rule string
---@field field? string of drop, send_back
---@field most? integer tokens, of bound
---@field sizes? model.sizes of fit
---@field tool? string of mend, for the log
---@field tools? string[] of mend

-- Optional fields

-- A field's own name, then others that words have for it.
local FIELDS <const> = {
  { "stream_options" },
  { "tool_choice", "tool choice" },
  { "response_format", "json_schema", "json schema", "structured output", "grammar" },
  { "format", "json schema", "grammar" },
  { "temperature" },
  { "think", "thinking" },
  { "reasoning_content" },
  { "reasoning" },
  { "keep_alive" },
  { "truncate" },
  { "num_ctx" },
}
local BOUNDS <const> = { "max_tokens", "max_completion_tokens", "num_predict" }
local CALLED <const> = { "max_new_tokens", "max_output_tokens", "maxoutputtokens", "allowed number of output tokens" }
local LEAST_BOUND <const> = 16 -- tokens; lesser numbers are none of a bound

local function was_sent(sent, name)
  local options = sent.fields.options
  return sent.fields[name] ~= nil or type(options) == "table" and options[name] ~= nil
end

local function names_field(said, field)
  for _, name in ipairs(field) do
    if has_word(said, name) then return true end
  end
  return false
end

-- Size

local OF_SIZE <const> = { "token", "context", "prompt", "input", "window", "message", "content", "conversation" }
local TOO_LARGE <const> = {
  "exceed", "too long", "too large", "too many", "larger", "longer", "greater", "limit", "maximum",
  "reduce the length", "<=", "overflow", "not enough", "range of",
}
local OF_RATE <const> = { "rate limit", "rate_limit", "quota", "throttl", "per minute", "per day", "per hour" }

local function speaks_of_size(case)
  local said = case.said
  if case.status == 413 then return true end
  return said_of.has_stem(said, OF_SIZE) and has(said, table.unpack(TOO_LARGE)) and not has(said, table.unpack(OF_RATE))
end

local function sizes_of(case)
  local sizes, details = sizes_in.of(case.words, case.sent.max_tokens), case.details
  sizes.window = math.tointeger(details.n_ctx) or sizes.window
  sizes.prompt = math.tointeger(details.n_prompt_tokens) or sizes.prompt
  return sizes
end

-- The rules. Each has an example, and its spec walks them: { status, words or error object, what was sent, what
-- follows }. `judge` says what follows, or nil: the rule does not apply. `of_request`: it applies where the status may
-- blame the request.

local function may_blame_request(status)
  return not status or status == 500 or status >= 400 and status < 500 and status ~= 429
end

local UNREAD <const> = { "pars", "syntax error", "unmarshal", "invalid character", "unexpected end", "does not match" }
local OF_REQUEST <const> = {
  "template", "jinja", "render", "grammar", "schema", "request", "messages", "tools", "body",
}
local OF_CALL <const> = { "call", "function", "parameter", "input", "output" }

-- The model's own call, which the server could not read. What the model wrote may follow the server's words, from a
-- bracket on: "Failed to parse input at pos 9: <tool_call>...".
local function is_unparsed_call(case)
  if has(case.said, "tool_use_failed") or case.details.failed_generation then return true end
  local may_be = case.is_in_reply or case.status == 500
  if not may_be or not has(case.words, table.unpack(UNREAD)) then return false end
  return has(case.words, table.unpack(OF_CALL)) and not has(case.words:match "^[^<{]*", table.unpack(OF_REQUEST))
end

-- The number among these that was sent, if the words name it, or any, where they name it as others do.
local function named_bound(case)
  local is_named = case.sent.max_tokens ~= nil and has(case.said, table.unpack(CALLED))
  for _, name in ipairs(BOUNDS) do
    if was_sent(case.sent, name) and (is_named or has_word(case.said, name)) then return name end
  end
  return is_named
end

-- The longest reply that a server allows.
local function judge_bound(case)
  local name, most = named_bound(case), 0
  if not name or sizes_of(case).prompt then return nil end
  for _, one in ipairs(sizes_in.numbers(case.words)) do
    if one.value < (case.sent.max_tokens or 0) and one.value >= LEAST_BOUND then most = math.max(most, one.value) end
  end
  if most > 0 then return { act = "bound", most = most } end
  return name ~= true and not speaks_of_size(case) and { act = "drop", field = name } or nil
end

local SYSTEM <const> = {
  "system role", "system message", "system prompt", "system instruction", "role 'system'", 'role "system"',
  "role: system", "developer instruction",
}

-- The number in "tools[7].function", "functions.7" or "function_declarations[7]".
local number <const> = (lpeg.R "az" + "_") ^ 0 * lpeg.S "[./" * (lpeg.R "09" ^ 1 / math.tointeger)

local function number_behind(said, word)
  local _, last = said:find(word, 1, true)
  while last do
    local found = lpeg.match(number, said, last + 1)
    if found then return found end
    _, last = said:find(word, last + 1, true)
  end
end

-- By its number, or by its name in quotes, or behind "function" or "tool".
local function named_tool(case)
  local tools = case.sent.tools
  local found = tools[(number_behind(case.said, "function") or number_behind(case.said, "tool") or -1) + 1]
  if found then return found.name end
  for _, tool in ipairs(tools) do
    local name = tool.name:lower()
    for _, form in ipairs { "'%s'", '"%s"', "`%s`", "function %s", "tool %s", "function: %s", "tool: %s" } do
      if case.said:find(form:format(name), 1, true) then return tool.name end
    end
  end
end

-- Names of those whose schemas are not ours, and not in words.
local function of_gateway(tools)
  local names = {}
  for _, tool in ipairs(tools) do
    if tool.exact and not tool.is_mended then names[#names + 1] = tool.name end
  end
  return names
end

local MISSING <const> = { "not found", "not exist", "no access", "unknown", "invalid model" }

local function may_be_text(sent) return sent.tools ~= nil and not sent.tried.text end

local SOON <const> = 2 -- equal answers, after which something else is tried

refusal.rules = {
  { name = "quota", example = { 402, "Insufficient credits. Add more", {}, { act = "give_up" } },
    judge = function(case)
      local is_spent = case.status == 402 or has(case.said, "insufficient_quota", "insufficient balance")
      return is_spent and { act = "give_up" }
    end },
  { name = "call_unparsed", example = { 500, "error parsing tool call: raw='{\"a', err=unexpected end of JSON input",
      { tools = { "f" } }, { act = "tell" } },
    judge = function(case, sent) return sent.tools and is_unparsed_call(case) and { act = "tell" } end },
  { name = "bound", of_request = true, judge = judge_bound,
    example = { 400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
      { max_tokens = 16384 }, { act = "bound", most = 8192 } } },
  { name = "optional", of_request = true,
    example = { 400, "Unrecognized request argument supplied: stream_options",
      { stream_options = {} }, { act = "drop", field = "stream_options" } },
    judge = function(case, sent)
      for _, field in ipairs(FIELDS) do
        if was_sent(sent, field[1]) and names_field(case.said, field) then return { act = "drop", field = field[1] } end
      end
    end },
  { name = "wanted_back", of_request = true,
    example = { 400, "The `reasoning_content` in the thinking mode must be passed back to the API.",
      { thinking_field = "reasoning_content" }, { act = "send_back", field = "reasoning_content" } },
    judge = function(case, sent)
      local field = sent.thinking_field
      return field and has_word(case.said, field) and { act = "send_back", field = field }
    end },
  { name = "system", of_request = true,
    example = { 400, "System role not supported", { has_system = true }, { act = "system_first" } },
    judge = function(case, sent)
      return sent.has_system and has(case.said, table.unpack(SYSTEM)) and { act = "system_first" }
    end },
  { name = "size", of_request = true,
    example = { 0, "prompt is too long: 8619 tokens > 7000 maximum",
      { may_fit = true }, { act = "fit", sizes = { window = 7000, prompt = 8619 } } },
    judge = function(case, sent)
      return speaks_of_size(case) and { act = sent.may_fit and "fit" or "give_up", sizes = sizes_of(case) }
    end },
  { name = "tool", of_request = true,
    example = { 400,
      { message = "Invalid schema for function 'tag': missing items.", param = "tools[1].function.parameters" },
      { tools = { "read_file", "tag" } }, { act = "mend", tool = "tag" } },
    judge = function(case, sent)
      if not sent.tools or has(case.said, "messages[") then return nil end
      local name = named_tool(case)
      if name then return { act = "mend", tool = name, tools = { name } } end
      local others = has(case.said, "schema") and of_gateway(sent.tools) or {}
      return #others > 0 and { act = "mend", tool = "of the gateway", tools = others }
    end },
  { name = "tools", of_request = true,
    example = { 400, "registry.ollama.ai/library/m does not support tools", { tools = { "f" } }, { act = "text" } },
    judge = function(case, sent)
      if case.is_in_reply and case.status == 500 then return nil end -- the request was taken
      return sent.tools and has(case.said, "tool", "function", "jinja", "template") and { act = "text" }
    end },
  { name = "model_missing", of_request = true,
    example = { 404, "model 'm' not found", { others = { "n" } }, { act = "next_model" } },
    judge = function(case, sent)
      local is_missing = case.status == 404 or has_word(case.said, "model") and has(case.said, table.unpack(MISSING))
      return is_missing and { act = sent.others and #sent.others > 0 and "next_model" or "give_up" }
    end },
  { name = "forbidden", example = { 401, "unauthorized", {}, { act = "give_up" } },
    judge = function(case) return (case.status == 401 or case.status == 403) and { act = "give_up" } end },
  -- What a server says the same way again is no passing cause, if something about the request may help.
  { name = "passing", example = { 503, "server busy, please try again.  maximum pending requests exceeded", {},
      { act = "wait" } },
    judge = function(case, sent)
      if not case.transient then return nil end
      local is_unclear = case.status == 500 or case.is_in_reply and not case.status
      if has(case.said, table.unpack(OF_RATE)) then is_unclear = false end
      local is_same = is_unclear and (sent.tried.same or 0) >= SOON
      return { act = is_same and may_be_text(sent) and "text" or "wait" }
    end },
  { name = "unexplained", example = { 400, "Bad Request", { tools = { "f" } }, { act = "again" } },
    judge = function(case, sent)
      if not case.status or case.status < 400 or case.status >= 500 then return nil end
      if not sent.tried.again then return { act = "again" } end
      if sent.may_fit and not sent.tried.shorter then return { act = "fit", sizes = { is_a_guess = true } } end
      return { act = may_be_text(sent) and "text" or "give_up" }
    end },
}

---@param failure model.failure
---@param sent model.sent
---@return model.move
function refusal.judge(failure, sent)
  local case = {
    status = failure.status, said = failure.said or "", details = failure.details or {},
    words = (failure.words or ""):lower(), sent = sent,
    is_in_reply = failure.is_in_reply, transient = failure.transient,
  }
  for _, rule in ipairs(refusal.rules) do
    local move = (not rule.of_request or may_blame_request(case.status)) and rule.judge(case, sent)
    if move then
      move.rule = rule.name
      return move
    end
  end
  return { act = "give_up", rule = failure.cause or "refused" }
end

return refusal
