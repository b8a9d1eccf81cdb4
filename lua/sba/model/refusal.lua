-- SPDX-License-Identifier: Apache-2.0
-- What follows from a server's refusal. Rules in order; the first that applies decides. Status, words and what was sent
-- count, not a list of sentences: a server's words may change, what we sent is known. Each rule has examples, which its
-- spec walks: { status, words or error object, what was sent, what follows }.

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
---@field tool? string of mend

-- Optional fields

-- Names of a field in words, if they are not its own. A field with `least` holds a number that may be lowered.
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
local OF_RATE <const> = { "rate limit", "rate_limit", "per minute", "per day", "per hour" }

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

-- The rules

local function can_be_judged(case)
  local status = case.status
  if not status or status == 500 then return true end
  return status >= 400 and status < 500 and status ~= 429
end

local rules <const> = {}
refusal.rules = rules

local function rule(name, fields)
  fields.name = name
  rules[#rules + 1] = fields
end

rule("quota", {
  examples = {
    { 402, "Insufficient credits. Add more", {}, { act = "give_up" } },
  },
  applies = function(case)
    return case.status == 402 or has(case.said, "insufficient_quota", "insufficient balance")
  end,
  move = function() return { act = "give_up" } end,
})

local UNREAD <const> = { "pars", "syntax error", "unmarshal", "invalid character", "unexpected end", "does not match" }
local OF_REQUEST <const> = { "template", "jinja", "render", "grammar", "schema", "request", "messages", "body" }

-- The model's own call, which the server could not read: the model is told.
rule("call_unparsed", {
  examples = {
    { 500, "error parsing tool call: raw='{\"a', err=unexpected end of JSON input",
      { tools = { "f" } }, { act = "tell" } },
  },
  applies = function(case)
    if not case.sent.tools then return false end
    if has(case.said, "tool_use_failed") or case.details.failed_generation then return true end
    local may_be = case.is_in_reply or case.status == 500
    return may_be and has(case.words, table.unpack(UNREAD)) and not has(case.words, table.unpack(OF_REQUEST))
  end,
  move = function() return { act = "tell" } end,
})

-- The longest reply that a server allows.
rule("bound", {
  examples = {
    { 400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
      { max_tokens = 16384 }, { act = "bound", most = 8192 } },
  },
  applies = function(case)
    if not can_be_judged(case) then return false end
    local is_named = case.sent.max_tokens ~= nil and has(case.said, table.unpack(CALLED))
    for _, name in ipairs(BOUNDS) do
      is_named = is_named or was_sent(case.sent, name) and has_word(case.said, name)
    end
    return is_named and not sizes_of(case).prompt
  end,
  move = function(case)
    local most, sent = 0, case.sent
    for _, one in ipairs(sizes_in.numbers(case.words)) do
      if one.value < (sent.max_tokens or 0) and one.value >= LEAST_BOUND then most = math.max(most, one.value) end
    end
    if most > 0 then return { act = "bound", most = most } end
    for _, name in ipairs(BOUNDS) do
      if was_sent(sent, name) then return not speaks_of_size(case) and { act = "drop", field = name } or nil end
    end
  end,
})

rule("optional", {
  examples = {
    { 400, "Unrecognized request argument supplied: stream_options",
      { stream_options = {} }, { act = "drop", field = "stream_options" } },
  },
  applies = can_be_judged,
  move = function(case)
    for _, field in ipairs(FIELDS) do
      local is_named = was_sent(case.sent, field[1]) and names_field(case.said, field)
      if is_named then return { act = "drop", field = field[1] } end
    end
  end,
})

rule("wanted_back", {
  examples = {
    { 400, "The `reasoning_content` in the thinking mode must be passed back to the API.",
      { thinking_field = "reasoning_content" },
      { act = "send_back", field = "reasoning_content" } },
  },
  applies = function(case) return can_be_judged(case) and case.sent.thinking_field ~= nil end,
  move = function(case)
    local field = case.sent.thinking_field
    return has_word(case.said, field) and { act = "send_back", field = field } or nil
  end,
})

local SYSTEM <const> = {
  "system role", "system message", "system prompt", "system instruction", "role 'system'", 'role "system"',
  "role: system", "developer instruction",
}

rule("system", {
  examples = {
    { 400, "System role not supported", { has_system = true }, { act = "system_first" } },
  },
  applies = function(case)
    return can_be_judged(case) and case.sent.has_system and has(case.said, table.unpack(SYSTEM))
  end,
  move = function() return { act = "system_first" } end,
})

rule("size", {
  examples = {
    { 0, "prompt is too long: 8619 tokens > 7000 maximum",
      { may_fit = true }, { act = "fit", sizes = { window = 7000, prompt = 8619 } } },
  },
  applies = function(case) return can_be_judged(case) and speaks_of_size(case) end,
  move = function(case)
    local sizes = sizes_of(case)
    if not case.sent.may_fit then return { act = "give_up", sizes = sizes } end
    return { act = "fit", sizes = sizes }
  end,
})

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

rule("tool", {
  examples = {
    { 400, { message = "Invalid schema for function 'tag': missing items.", param = "tools[1].function.parameters" },
      { tools = { "read_file", "tag" } }, { act = "mend", tool = "tag" } },
  },
  applies = function(case) return can_be_judged(case) and case.sent.tools and not has(case.said, "messages[") end,
  move = function(case)
    local name = named_tool(case)
    return name and { act = "mend", tool = name } or nil
  end,
})

rule("tools", {
  examples = {
    { 400, "registry.ollama.ai/library/m does not support tools", { tools = { "f" } }, { act = "text" } },
  },
  applies = function(case)
    return can_be_judged(case) and case.sent.tools and has(case.said, "tool", "function", "jinja", "template")
  end,
  move = function() return { act = "text" } end,
})

local MISSING <const> = { "not found", "not exist", "no access", "unknown", "invalid model" }

rule("model_missing", {
  examples = {
    { 404, "model 'm' not found", { others = { "n" } }, { act = "next_model" } },
  },
  applies = function(case)
    local is_said = has_word(case.said, "model") and has(case.said, table.unpack(MISSING))
    return case.status == 404 or can_be_judged(case) and is_said
  end,
  move = function(case)
    local has_more = case.sent.others and #case.sent.others > 0
    return { act = has_more and "next_model" or "give_up" }
  end,
})

rule("forbidden", {
  examples = { { 401, "unauthorized", {}, { act = "give_up" } }, { 403, "", {}, { act = "give_up" } } },
  applies = function(case) return case.status == 401 or case.status == 403 end,
  move = function() return { act = "give_up" } end,
})

local function may_be_text(case) return case.sent.tools ~= nil and not case.sent.tried.text end

local SOON <const> = 2 -- equal answers, after which something else is tried

-- What a server says the same way again is no passing cause, if something about the request may help.
rule("passing", {
  examples = {
    { 503, "server busy, please try again.  maximum pending requests exceeded", {}, { act = "wait" } },
  },
  applies = function(case) return case.transient end,
  move = function(case)
    local is_unclear = case.status == 500 or case.is_in_reply and not case.status
    if is_unclear and (case.sent.tried.same or 0) >= SOON and may_be_text(case) then return { act = "text" } end
    return { act = "wait" }
  end,
})

rule("unexplained", {
  examples = {
    { 400, "Bad Request", { tools = { "f" } }, { act = "again" } },
  },
  applies = function(case) return case.status and case.status >= 400 and case.status < 500 end,
  move = function(case)
    local sent, tried = case.sent, case.sent.tried
    if not tried.again then return { act = "again" } end
    if sent.may_fit and not tried.shorter then return { act = "fit", sizes = { is_a_guess = true } } end
    return { act = may_be_text(case) and "text" or "give_up" }
  end,
})

---@param failure model.failure
---@param sent model.sent
---@return model.move
function refusal.judge(failure, sent)
  local case = {
    status = failure.status, said = failure.said or (failure.message or ""):lower(), details = failure.details or {},
    words = (failure.words or ""):lower(), sent = sent,
    is_in_reply = failure.is_in_reply, transient = failure.transient,
  }
  for _, one in ipairs(rules) do
    local is_asked = failure.said or one.name == "passing" -- which also judges what is no refusal
    local move = is_asked and one.applies(case) and one.move(case)
    if move then
      move.rule = one.name
      return move
    end
  end
  return { act = "give_up", rule = failure.cause or "refused" }
end

return refusal
