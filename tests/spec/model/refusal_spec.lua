-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local refusal = require "sba.model.refusal"
local wire = require "sba.model.wire"

local endpoint = wire.endpoint { base = "http://host" }
local OWN <const> = { tools = true, has_system = true, thinking_field = true, may_fit = true,
  others = true, tried = true }

--- What was sent, as an example has it: names of tools, fields of the body.
local function sent_of(given)
  local sent = { fields = {}, members = {}, max_tokens = given.max_tokens, others = {} }
  for name, value in pairs(given) do
    if OWN[name] then sent[name] = value else sent.fields[name] = value end
  end
  sent.tried = { same = 0 }
  for name, value in pairs(given.tried or {}) do sent.tried[name] = value end
  for i, name in ipairs(given.tools or {}) do
    sent.tools = i == 1 and {} or sent.tools
    sent.tools[i] = { name = name, exact = name:find "^gw_" ~= nil }
  end
  return sent
end

--- The failure of an example, whose status 0 stands for an error in a reply.
local function failure_of(status, said)
  local body = type(said) == "table" and { error = said } or said
  local failure = endpoint:refusal(status == 0 and 502 or status, body)
  if status == 0 then failure.status, failure.is_in_reply = nil, true end
  return failure
end

local function fits(sizes) return { act = "fit", sizes = sizes } end
local TOOLS <const>, ROOM <const>, TOKENS <const> = { tools = { "f" } }, { may_fit = true }, { max_tokens = 16384 }

--- More examples, in the form that the rules have; a text is what is done.
local more <const> = {
  quota = {
    { 429, { message = "You exceeded your current quota", code = "insufficient_quota" }, {}, "give_up" },
    { 429, "Rate limit reached: limit 6000 tokens per minute, requested 8000", {}, "wait" },
    { 402, "More credits, or fewer max_tokens: at most 0. Ask for a higher monthly limit", TOKENS, "give_up" },
  },
  call_unparsed = {
    { 500, { message = "error parsing tool call: unexpected end of JSON input", type = "invalid_request_error" },
      TOOLS, "tell" },
    { 0, "XML syntax error on line 7: element <parameter> closed by </function>", TOOLS, "tell" },
    { 400, { message = "Failed to call a function.", code = "tool_use_failed" }, TOOLS, "tell" },
    { 500, "The model produced output that does not match the expected peg format", TOOLS, "tell" },
    { 0, "Failed to parse input at pos 212: <tool_call>{'content': 'the body of a request template'}", TOOLS, "tell" },
    { 400, "json: cannot unmarshal string into Go struct field", TOOLS, "again" },
    { 500, "unmarshal: invalid character 'I' looking for beginning of value", TOOLS, "wait" },
  },
  bound = {
    { 400, "`max_tokens` must be less than or equal to `8192`, the maximum value is less than the `context_window`",
      TOKENS, { act = "bound", most = 8192 } },
    { 400, "max_tokens is too large: 16384. This model supports at most 8192 completion tokens, whereas you provided "
      .. "16384.",
      TOKENS, { act = "bound", most = 8192 } },
    { 400, "max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
      TOKENS, { act = "bound", most = 4096 } },
    { 400, "Input validation error: `max_new_tokens` must be <= 4096. Given: 16384",
      TOKENS, { act = "bound", most = 4096 } },
    { 400, "Range of max_tokens should be [1, 8192]", TOKENS, { act = "bound", most = 8192 } },
    { 402, "More credits, or fewer max_tokens: at most 3919", TOKENS, { act = "bound", most = 3919 } },
    { 400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", TOKENS,
      { act = "drop", field = "max_tokens" } },
  },
  optional = {
    { 400, "invalid temperature: only 1 is allowed for this model",
      { temperature = 1.2 }, { act = "drop", field = "temperature" } },
    { 400, '"m" does not support thinking', { think = false }, { act = "drop", field = "think" } },
    { 400, "Failed to parse grammar: number of repetitions exceeds sane defaults",
      { format = {} }, { act = "drop", field = "format" } },
    { 400, "reasoning_content is not permitted in input",
      { reasoning_content = true }, { act = "drop", field = "reasoning_content" } },
    { 400, "messages: text content blocks must be non-empty", { content = true }, { act = "drop", field = "content" } },
    { 422, '{"detail":[{"loc":["messages",2,"content"],"msg":"should have at least 1 character"}]}',
      { content = true }, { act = "drop", field = "content" } },
    { 400, "invalid temperature", {}, "again" },
  },
  stream = { { 500, "stream error: reset by peer", { stream = true, tools = { "f" } }, "wait" } },
  system = {
    { 400, "Developer instruction is not enabled for models/gemma-3-27b-it", { has_system = true }, "system_first" },
    { 500, "jinja2.exceptions.TemplateError: System role not supported",
      { has_system = true, tools = { "f" } }, "system_first" },
    { 400, "System role not supported", {}, "again" },
  },
  size = {
    { 400, "This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your "
      .. "prompt contains at least 3841 input tokens, for a total of at least 4353 tokens.",
      { may_fit = true, max_tokens = 512 }, fits { window = 4096, prompt = 3841 } },
    { 400, "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (4000 in the "
      .. "messages, 8000 in the completion).",
      { may_fit = true, max_tokens = 8000 }, fits { window = 8192, prompt = 4000 } },
    { 400, "'max_tokens' is too large: 16384. This model's maximum context length is 16384 tokens and your request has "
      .. "3500 input tokens (16384 > 16384 - 3500).",
      { may_fit = true, max_tokens = 16384 }, fits { window = 16384, prompt = 3500 } },
    { 400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
      { may_fit = true, max_tokens = 20000 }, fits { window = 200000, prompt = 190000, may_be_sum = false } },
    { 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 `inputs` tokens "
      .. "and 512 `max_new_tokens`", { may_fit = true, max_tokens = 512 }, fits { window = 4096, prompt = 3900 } },
    { 400, "Prompt contains 8619 tokens and 0 draft tokens, too large for model with 7000 maximum context length",
      ROOM, fits { window = 7000, prompt = 8619 } },
    { 400, "Input length (8619 tokens) exceeds the maximum allowed length (7000 tokens).",
      ROOM, fits { window = 7000, prompt = 8619 } },
    { 400, "This model's maximum prompt length is 7000 but the request contains 8619 tokens.",
      ROOM, fits { window = 7000, prompt = 8619 } },
    { 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      ROOM, fits { window = 1048576, prompt = 1200000 } },
    { 400, { message = "too long", type = "exceed_context_size_error", n_ctx = 4096, n_prompt_tokens = 5000 },
      ROOM, fits { window = 4096, prompt = 5000 } },
    { 400, "prompt too long; exceeded max context length by 1619 tokens", ROOM, fits { excess = 1619 } },
    { 400, "Your input exceeds the context window of this model.", ROOM, fits { is_of_reply = false } },
    { 400, "invalid params, context window exceeds limit (2013)", ROOM, fits { is_of_reply = true } },
    { 400, "Range of input length should be [1, 30720]", ROOM, fits { window = 30720 } },
    { 400, { message = "<400> Algo.InvalidParameter: Range of input length should be [1, 30720]" },
      ROOM, fits { window = 30720 } },
    { 400, { message = "Provider returned error", metadata = { raw = '{"error":{"message":"prompt is too long: 8619 '
      .. 'tokens > 7000 maximum"}}' } }, ROOM, fits { window = 7000, prompt = 8619 } },
    { 400, "The token count exceeds your organization's quota", ROOM, "again" },
    { 400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
      .. "length of only 4096 tokens, which is not enough.", ROOM, fits { window = 4096 } },
    { 400, "Your request exceeded model token limit: 8192", ROOM, fits { window = 8192 } },
    { 413, "Request body too large for m model. Max size: 8000 tokens.", ROOM, fits { window = 8000 } },
    { 500, "Context size has been exceeded.", ROOM, fits {} },
    { 413, "an HTML page", ROOM, fits {} },
    { 400, "Your input exceeds the context window of this model.", {}, "give_up" },
    { 429, "Request too large: limit 6000 tokens per minute", ROOM, "wait" },
    { 429, "Too large for a minute: limit 6000, requested 8000", ROOM, fits { window = 6000, may_be_sum = true } },
    { 429, "Too many tokens per minute: limit 6000, used 5034, requested 1443", ROOM, "wait" },
    { 402, "Prompt tokens limit exceeded: 8000 > 6000", ROOM, fits { window = 6000, prompt = 8000 } },
  },
  tool = {
    { 400, "Invalid function name `read_file`",
      { tools = { "read_file", "tag" } }, { act = "mend", tool = "read_file" } },
    { 400, { message = "GenerateContentRequest.tools[0].function_declarations[1].name: maximum length of 64" },
      { tools = { "read_file", "tag" }, may_fit = true }, { act = "mend", tool = "tag" } },
    { 400, "Invalid 'tools.0.name'", { tools = { "read_file" } }, { act = "mend", tool = "read_file" } },
    { 400, "Invalid function name `read_file`",
      { tools = { "read_file" } }, { act = "mend", tools = { "read_file" } } },
    { 400, "the request could not finish", { tools = { "finish" } }, "again" },
    { 400, "tools.function.parameters is not a valid JSON schema: at properties.v",
      { tools = { "read_file", "gw_tag" } }, { act = "mend", tools = { "gw_tag" } } },
    { 400, "tools.function.parameters is not a valid JSON schema", { tools = { "read_file" } }, "text" },
  },
  tool_count = {
    { 400, "Too many tools: 5 are more than the limit of 2",
      { tools = { "a", "b", "c", "d", "finish" } }, { act = "fewer_tools", most = 2, tool = "b, c, d" } },
    { 400, "at most 5 tools are allowed", { tools = { "a", "b", "c", "d", "finish" } }, "text" },
    { 400, "function names have at most 3 characters", { tools = { "a", "b", "c", "d", "finish" } }, "text" },
    { 400, "at most 3 images are allowed", { tools = { "a", "b", "c", "d", "finish" } }, "again" },
  },
  tools = {
    { 400, '"auto" tool choice requires --enable-auto-tool-choice', TOOLS, "text" },
    { 500, "tools param requires --jinja flag", TOOLS, "text" },
    { 404, "No endpoints found that support tool use", TOOLS, "text" },
    { 404, 'Nobody here supports tool use. Try without "read_file"', { tools = { "read_file" } }, "text" },
    { 0, 'Error rendering prompt with jinja template: "Cannot call something that is not a function"', TOOLS, "text" },
    { 400, "function calling is not supported", {}, "again" },
  },
  model_missing = {
    { 400, "The model `m` does not exist or you do not have access to it.", { others = { "n" } }, "next_model" },
    { 404, "model 'm' not found", { others = {} }, "give_up" },
    { 404, "404 page not found", {}, "give_up" },
  },
  passing = {
    { 0, "llama runner process has terminated", {}, "wait" }, { 0, "an unknown error in the model", {}, "wait" },
    { 500, "Value is not callable: null at row 23", TOOLS, "wait" },
    { 500, "Value is not callable: null at row 23", { tools = { "f" }, tried = { same = 2 } }, "text" },
    { 500, "Value is not callable: null at row 23", { tools = { "f" }, tried = { same = 5, text = true } }, "wait" },
    { 500, "requests are throttled", { tools = { "f" }, tried = { same = 2 } }, "wait" },
    { 529, "overloaded", {}, "wait" }, { 501, "no", {}, "give_up" },
  },
  forbidden = { { 403, "", {}, "give_up" } },
  unexplained = {
    { 400, "Bad Request", { tools = { "f" }, may_fit = true, tried = { again = true } }, "fit" },
    { 400, "Bad Request", { tools = { "f" }, may_fit = true, tried = { again = true, fit = true } }, "text" },
    { 400, "Bad Request", { tools = { "f" }, tried = { again = true } }, "text" },
    { 400, "Bad Request", { tried = { again = true } }, "give_up" },
  },
}

local function examples_of(rule)
  return table.move(more[rule.name] or {}, 1, #(more[rule.name] or {}), 2, { rule.example })
end

local function holds(wanted, found, name)
  if type(wanted) == "string" then wanted = { act = wanted } end
  for key, value in pairs(wanted) do
    if type(value) == "table" then holds(value, found[key] or {}, name) else assert.equal(value, found[key], name) end
  end
end

describe("a refusal", function()
  it("is judged as the examples of each rule say", function()
    for _, rule in ipairs(refusal.rules) do
      for _, example in ipairs(examples_of(rule)) do
        local status, said = example[1], example[2]
        local sent, wanted = example[3], example[4]
        local name = ("%s: %s %s"):format(rule.name, status, type(said) == "table" and said.message or said)
        holds(wanted, refusal.judge(failure_of(status, said), sent_of(sent)), name)
      end
    end
  end)

  it("moves no field that was not sent, whatever it says", function()
    for _, rule in ipairs(refusal.rules) do
      for _, example in ipairs(examples_of(rule)) do
        local move = refusal.judge(failure_of(example[1], example[2]), sent_of {})
        assert.is_nil(move.field)
        assert.is_true(move.act == "again" or move.act == "give_up" or move.act == "wait", rule.name)
      end
    end
  end)

  it("names no window by what is no count", function()
    for _, count in ipairs { 0, -1, 1 << 60, 1.5, "x", json.null, {} } do
      local failure = failure_of(400, { message = "too long", type = "exceed_context_size_error", n_ctx = count })
      local move = refusal.judge(failure, sent_of(ROOM))
      assert.same({ "fit" }, { move.act, move.sizes.window })
    end
  end)

  it("of any words is judged", function()
    for _, said in ipairs { "", "\0", ("9"):rep(100000), ("1, "):rep(10000) .. "tokens exceed", ("tools["):rep(10000),
      "tools[9]" } do
      local sent = sent_of { tools = { "a.b" }, max_tokens = 512, may_fit = true, has_system = true, temperature = 1 }
      assert.is_string(refusal.judge(failure_of(400, said), sent).act)
    end
    assert.equal("give_up", refusal.judge({ code = "inference_unavailable", message = "x" }, sent_of {}).act)
    assert.is_string(json.encode(failure_of(400, "x").words))
  end)
end)
