-- SPDX-License-Identifier: Apache-2.0
-- What follows from a server's refusal. Rules in order; the first that applies decides. Status,
-- words and what was sent count, not a list of sentences: a server's words may change, what we sent
-- is known.

local lpeg = require "lpeg"
local said_of = require "sba.util.said"
local sizes_in = require "sba.model.sizes"
local wire = require "sba.model.wire"

local refusal = {}

local has, has_word = said_of.has, said_of.has_word

---@alias model.act
---| "drop" | "bound" | "send_back" | "system_first" | "fit" | "mend" | "fewer_tools" | "text" | "tell"
---| "next_model" | "wait" | "again" | "give_up"

---@class model.move
---@field act model.act
---@field rule string
---@field field? string of drop, send_back
---@field most? integer tokens, of bound; tools, of fewer_tools
---@field sizes? model.sizes of fit, and of give_up by the rule "size"
---@field tool? string of mend and fewer_tools, for the log
---@field tools? string[] of mend

-- Optional fields

local function was_sent(sent, name)
  local options = sent.fields.options or {}
  return sent.fields[name] ~= nil or options[name] ~= nil or sent.members[name] ~= nil
end

-- A field's own name, then others that words have for it. with: what else the words have. (A content
-- is optional beside calls, where it is empty.)
local FIELDS <const> = {
  { "stream_options" }, { "temperature" }, { "keep_alive" }, { "truncate" }, { "num_ctx" },
  { "response_format", "json_schema", "json schema", "structured output", "grammar" },
  { "format", "json schema", "grammar" },
  { "think", "thinking" }, { "reasoning_content" }, { "reasoning" }, { "reasoning_details" },
  { "content", with = { "empty", "at least 1 char" } },
}
local OF_TOOLS <const> = { "tool", "function", "jinja", "template" }

-- The first of the fields that was sent and is named.
local function named_of(fields, failure, sent)
  for _, names in ipairs(fields) do
    local is_named = was_sent(sent, names[1]) and has_word(failure.said, names)
    if is_named and (not names.with or has(failure.said, names.with)) then return names[1] end
  end
end

local function judge_field(failure, sent)
  local field = named_of(FIELDS, failure, sent)
  if field then return "drop", { field = field } end
end

-- Where no stream is given. What a connection failed of has the word as well.
local function judge_stream(failure, sent)
  if failure.is_in_reply or not has_word(failure.said, { "stream", "streaming" }) then return nil end
  if failure.status == 500 and not has(failure.said, OF_TOOLS) then return nil end
  if was_sent(sent, "stream") then return "drop", { field = "stream" } end
end

-- Size

local OF_SIZE <const> = { "token", "context", "prompt", "input", "window", "message", "content", "conversation" }
local TOO_LARGE <const> = {
  "exceed", "too long", "too large", "too many", "larger", "longer", "greater", "limit", "maximum",
  "reduce the length", "<=", "overflow", "not enough", "range of",
}
local OF_RATE <const> = {
  "rate limit", "rate_limit", "quota", "throttl", "per minute", "per day", "per hour", "credit",
}

-- What a refusal says of sizes: model.sizes, and what follows from them.
local function sizes_of(failure, sent)
  local sizes, details, said = sizes_in.of(failure.words:lower(), sent.max_tokens), failure.details, failure.said
  sizes.window = wire.tokens(details.n_ctx) or sizes.window
  sizes.prompt = wire.tokens(details.n_prompt_tokens) or sizes.prompt
  -- A limit of tokens, of a minute or of an account, that no waiting lets this request pass.
  local prompt, window = sizes.prompt or 0, sizes.window or math.huge
  sizes.is_above = sent.may_fit and prompt > window
  local is_named = said_of.has_stem(said, OF_SIZE) and has(said, TOO_LARGE) and not has(said, OF_RATE)
  sizes.are_refused = sizes.is_above or is_named or failure.status == 413
  return sizes
end

-- Bounds of the reply

local OTHERS <const> = { -- by which their servers call them
  "max_new_tokens", "max_output_tokens", "maxoutputtokens", "allowed number of output tokens",
}
local BOUNDS <const> = {}
for i, name in ipairs { "max_tokens", "max_completion_tokens", "num_predict" } do
  BOUNDS[i] = { name, table.unpack(OTHERS) }
end
local LEAST_BOUND <const> = 16 -- tokens; lesser numbers are none of a bound

-- The longest reply that a server allows: the largest number that is less than what was asked for.
-- For example, 8,192 of "the valid range of max_tokens is [1, 8192]". Without one the field is left
-- out, unless the account has no credit for so many tokens (402), or the prompt is what is too long.
local function judge_bound(failure, sent, sizes)
  local named = named_of(BOUNDS, failure, sent)
  if not named or sizes.prompt then return nil end
  local most = 0
  for _, one in ipairs(sizes_in.numbers(failure.words)) do
    if one.value < sent.max_tokens then most = math.max(most, one.value) end
  end
  if most >= LEAST_BOUND then return "bound", { most = most } end
  if failure.status ~= 402 and not sizes.are_refused then return "drop", { field = named } end
end

-- Tools

local UNREAD <const> = {
  "pars", "syntax error", "unmarshal", "invalid character", "unexpected end", "does not match",
}
local OF_REQUEST <const> = {
  "template", "jinja", "render", "grammar", "schema", "request", "messages", "tools", "body",
}
local OF_CALL <const> = { "call", "function", "parameter", "input", "output" }

-- The model's own call, which the server could not read. What the model wrote may follow the
-- server's words, from a bracket on: "Failed to parse input at pos 9: <tool_call>...".
local function is_unparsed_call(failure)
  local words = failure.words:lower()
  if failure.details.failed_generation or has(failure.said, { "tool_use_failed" }) then return true end
  if not failure.is_in_reply and failure.status ~= 500 then return false end
  if not has(words, UNREAD) or not has(words, OF_CALL) then return false end
  return not has(words:match "^[^<{]*", OF_REQUEST)
end

-- The number in "tools[7].function", "functions.7" or "function_declarations[7]".
local number = (lpeg.R "az" + "_") ^ -16 * lpeg.S "[./" * (lpeg.R "09" ^ 1 / math.tointeger)
local function first_behind(word) return (1 - lpeg.P(word) * number) ^ 0 * word * number end
local behind_function, behind_tool = first_behind "function", first_behind "tool"

local NAMED <const> = { "'%s'", '"%s"', "`%s`", "function %s", "tool %s", "function: %s", "tool: %s" }

-- By its number, or by its name in quotes, or behind "function" or "tool"; else those of the gateway,
-- whose schemas are not ours, and not in words yet.
local function judge_tool(failure, sent)
  local tools, said, others = sent.tools or {}, failure.said, {}
  if has(said, { "messages[", "tool use" }) then return nil end
  local from_0 = lpeg.match(behind_function, said) or lpeg.match(behind_tool, said) or -1
  local named = tools[from_0 + 1]
  for _, tool in ipairs(tools) do
    local forms = {}
    for i, form in ipairs(NAMED) do forms[i] = form:format(tool.name:lower()) end
    if not named and has(said, forms) then named = tool end
    if tool.exact and not tool.is_mended then others[#others + 1] = tool.name end
  end
  if named then return "mend", { tool = named.name, tools = { named.name } } end
  if not others[1] or not has(said, { "schema" }) then return nil end
  return "mend", { tool = "of the gateway", tools = others }
end

local TOO_MANY <const> = {
  "too many", "too long", "too large", "more than", "at most", "up to", "maximum", "max ", "exceed", "limit",
}
local LEAST_TOOLS <const> = 2 -- one, and finish

-- The server takes fewer tools: the largest number that is less than how many were sent. A number of
-- characters is about something else.
local function judge_tool_count(failure, sent)
  local tools, said, most = sent.tools or {}, failure.said, 0
  if not has(said, { "tool", "function" }) or not has(said, TOO_MANY) or has(said, { "character" }) then return nil end
  for _, one in ipairs(sizes_in.numbers(failure.words)) do
    if one.value < #tools then most = math.max(most, one.value) end
  end
  if most < LEAST_TOOLS then return nil end
  local left_out = {}
  for i = most, #tools - 1 do left_out[#left_out + 1] = tools[i].name end
  return "fewer_tools", { most = most, tool = table.concat(left_out, ", ") }
end

local function may_be_text(sent) return sent.tools ~= nil and not sent.tried.text end

-- Rules. Each has an example, and its spec walks them: { status, words or error object, what was
-- sent, what follows }; a status of 0 is an error in a reply. `judge` gives the act and the move's
-- other fields, or nothing: the rule does not apply.

local SPENT <const> = { "insufficient_quota", "insufficient balance" }
local SYSTEM <const> = {
  "system role", "system message", "system prompt", "system instruction", "role 'system'",
  'role "system"', "role: system", "developer instruction",
}
local MISSING <const> = { "not found", "not exist", "no access", "unknown model", "invalid model" }
local SOON <const> = 2 -- equal answers, after which something else is tried

---@class model.rule
---@field name string
---@field of_request? boolean it applies only where the status may blame the request
---@field example table
---@field judge fun(failure: model.failure, sent: model.ask, sizes: model.sizes): act: model.act?, move: table?
---@type model.rule[]
refusal.rules = {
  { name = "call_unparsed",
    example = { 500, "error parsing tool call: raw='{\"a', err=unexpected end of JSON input",
      { tools = { "f" } }, { act = "tell" } },
    judge = function(failure, sent) return sent.tools and is_unparsed_call(failure) and "tell" end },
  { name = "bound", of_request = true, judge = judge_bound,
    example = { 400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
      { max_tokens = 16384 }, { act = "bound", most = 8192 } } },
  { name = "optional", of_request = true, judge = judge_field,
    example = { 400, "Unrecognized request argument supplied: stream_options",
      { stream_options = {} }, { act = "drop", field = "stream_options" } } },
  { name = "stream", of_request = true, judge = judge_stream,
    example = { 500, "Cannot use tools with stream", { stream = true, tools = { "f" } },
      { act = "drop", field = "stream" } } },
  { name = "wanted_back", of_request = true,
    example = { 400, "The `reasoning_content` in the thinking mode must be passed back to the API.",
      { thinking_field = "reasoning_content" },
      { act = "send_back", field = "reasoning_content" } },
    judge = function(failure, sent)
      local field = not sent.tried.send_back and sent.thinking_field -- it was not sent, or "optional" had applied
      if field and has_word(failure.said, { field }) then return "send_back", { field = field } end
    end },
  { name = "system", of_request = true,
    example = { 400, "System role not supported", { has_system = true }, { act = "system_first" } },
    judge = function(failure, sent) return sent.has_system and has(failure.said, SYSTEM) and "system_first" end },
  { name = "size", of_request = true, example = { 0, "prompt is too long: 8619 tokens > 7000 maximum",
      { may_fit = true }, { act = "fit", sizes = { window = 7000, prompt = 8619 } } },
    judge = function(_, sent, sizes)
      if not sizes.are_refused then return nil end
      return sent.may_fit and "fit" or "give_up", { sizes = sizes }
    end },
  { name = "quota", example = { 402, "Insufficient credits. Add more", {}, { act = "give_up" } },
    judge = function(failure) return (failure.status == 402 or has(failure.said, SPENT)) and "give_up" end },
  { name = "tool", of_request = true, judge = judge_tool,
    example = { 400, { message = "Invalid schema for function 'tag': missing items.",
        param = "tools[1].function.parameters" },
      { tools = { "read_file", "tag" } }, { act = "mend", tool = "tag" } } },
  { name = "tool_count", of_request = true, judge = judge_tool_count,
    example = { 400, "Invalid 'tools': array too long. Expected an array with maximum length 3, but got an array with "
      .. "length 5 instead.",
      { tools = { "a", "b", "gw_c", "gw_d", "finish" } }, { act = "fewer_tools", most = 3, tool = "gw_c, gw_d" } } },
  { name = "tools", of_request = true, example = { 400, "registry.ollama.ai/library/m does not support tools",
      { tools = { "f" } }, { act = "text" } },
    judge = function(failure, sent)
      local is_taken = failure.is_in_reply and failure.status == 500
      return sent.tools and not is_taken and has(failure.said, OF_TOOLS) and "text"
    end },
  { name = "model_missing", of_request = true,
    example = { 404, "model 'm' not found", { others = { "n" } }, { act = "next_model" } },
    judge = function(failure, sent)
      local is_said = has_word(failure.said, { "model" }) and has(failure.said, MISSING)
      if failure.status ~= 404 and not is_said then return nil end
      return sent.others[1] and "next_model" or "give_up"
    end },
  { name = "forbidden", example = { 401, "unauthorized", {}, { act = "give_up" } },
    judge = function(failure) return (failure.status == 401 or failure.status == 403) and "give_up" end },
  -- What a server says the same way again is no passing cause, if something about the request may
  -- help.
  { name = "passing", example = { 503, "server busy, please try again.  maximum pending requests exceeded", {},
      { act = "wait" } },
    judge = function(failure, sent)
      if not failure.transient then return nil end
      local is_unclear = not has(failure.said, OF_RATE) and (failure.status or 500) == 500
      local is_same = is_unclear and sent.tried.same >= SOON
      if is_same and may_be_text(sent) then return "text" end
      return "wait"
    end },
  { name = "unexplained", example = { 400, "Bad Request", { tools = { "f" } }, { act = "again" } },
    judge = function(failure, sent)
      if not failure.status or failure.status < 400 or failure.status >= 500 then return nil end
      if not sent.tried.again then return "again" end
      if sent.may_fit and not sent.tried.fit then return "fit", { sizes = { is_a_guess = true } } end
      return may_be_text(sent) and "text" or "give_up"
    end },
}

local function may_blame_request(status, sizes)
  if not status or status == 500 then return true end
  if status == 429 then return sizes.is_above end
  return status >= 400 and status < 500
end

---@param failure model.failure
---@param sent model.ask
---@return model.move
function refusal.judge(failure, sent)
  -- There was no answer: a connection failed, a reply broke off, ...
  if not failure.said then
    return { act = failure.transient and "wait" or "give_up", rule = "no_answer" }
  end
  local sizes = sizes_of(failure, sent)
  local is_of_request = may_blame_request(failure.status, sizes)
  for _, rule in ipairs(refusal.rules) do
    if is_of_request or not rule.of_request then
      local act, move = rule.judge(failure, sent, sizes)
      if act then
        move = move or {}
        move.act, move.rule = act, rule.name
        return move
      end
    end
  end
  return { act = "give_up", rule = "refused" }
end

return refusal
