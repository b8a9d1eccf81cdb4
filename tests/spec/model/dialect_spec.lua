-- SPDX-License-Identifier: Apache-2.0
-- What a server may send in place of what it should: the readers take it or refuse it, and never stumble over it.
local answer = require "answer"
local openai = require "sba.model.dialects.openai"
local json = require "sba.util.json"
local ollama = require "sba.model.dialects.ollama"
local reply = require "sba.model.reply"
local wire = require "sba.model.wire"

local endpoint = wire.endpoint { name = "OLLAMA_BASE_URL", base = "http://host", timeout = {} }
local tools = { { name = "read_file", parameters = { type = "object" } } }

local function read(dialect, lines)
  local builder = reply.new { tools = tools }
  local _, failure = endpoint:read_reply(answer(lines), builder, dialect.add)
  if failure then return nil, failure end
  return builder:finish { calls = 0, ids = {} }
end

local odd = {
  json.null, 0, -1.5, 1 << 62, "", "x", "\0", true, false, {}, { a = 1 },
  json.array {}, json.array { json.null }, json.array { 1, "x" },
}

--- Every value that differs from a given one in a single part.
local function each_odd(value, use)
  local function walk(part, rebuild)
    for _, other in ipairs(odd) do use(rebuild(other)) end
    if type(part) ~= "table" then return end
    for key, inner in pairs(part) do
      walk(inner, function(other)
        local copy = setmetatable({}, getmetatable(part))
        for k, v in pairs(part) do copy[k] = v end
        copy[key] = other
        return rebuild(copy)
      end)
    end
  end
  walk(value, function(other) return other end)
end

local function holds(result, failure)
  if not result then
    assert.equal("string", type(failure.message))
    assert.is_nil(failure.message:find "%c")
    return
  end
  for _, field in ipairs { "content", "thinking", "done_reason" } do assert.equal("string", type(result[field])) end
  for _, call in ipairs(result.tool_calls) do
    assert.same({ "string", "string", "table" }, { type(call.id), type(call.name), type(call.arguments) })
  end
  assert.is_truthy(json.decode(json.encode(result)))
end

local call = { id = "call_1", ["function"] = { index = 0, name = "read_file", arguments = { path = "a" } } }
local ollama_line = {
  message = { role = "assistant", content = "hello", thinking = "hm", tool_calls = json.array { call } },
  done = true, done_reason = "stop", prompt_eval_count = 3, eval_count = 4,
}
local fragment = {
  index = 0, id = "call_1", type = "function", ["function"] = { name = "read_file", arguments = '{"path":"a"}' },
}
local chunk = {
  choices = json.array { {
    index = 0, finish_reason = "tool_calls",
    delta = { content = "hello", reasoning = "hm", tool_calls = json.array { fragment },
      reasoning_details = json.array { { type = "reasoning.encrypted", data = "E" } } },
  } },
  usage = { prompt_tokens = 3, completion_tokens = 4 },
}

describe("a reader", function()
  it("of Ollama's lines stumbles over nothing", function()
    each_odd(ollama_line, function(line) holds(read(ollama, { json.encode(line) })) end)
  end)

  it("of events stumbles over nothing", function()
    each_odd(chunk, function(value)
      holds(read(openai, { "data: " .. json.encode(value), "", "data: [DONE]" }))
    end)
  end)

  it("of events takes the usage of a choice", function()
    local builder = reply.new()
    openai.add(builder, { choices = { { usage = { prompt_tokens = 5 } } } })
    assert.equal(5, builder.prompt_tokens)
  end)

  it("of refusals stumbles over nothing", function()
    each_odd({ error = { message = "m", type = "t", code = "c", n_ctx = 7 }, detail = "d" }, function(body)
      holds(nil, endpoint:refusal(400, body))
      holds(nil, endpoint:refusal(500, json.encode(body)))
    end)
  end)
end)

describe("a list or a description", function()
  --- An endpoint that answers every request with the same object.
  local function endpoint_with(value, base)
    return wire.endpoint { base = base, ask = function() return value end }
  end

  it("has the window that is loaded before the largest", function()
    local served = { name = "m", entry = { max_context_length = 9000, loaded_context_length = 7000 } }
    assert.equal(7000, openai.describe(endpoint_with({}, "http://host"), served).context_length)
  end)

  it("of anything stumbles over nothing", function()
    local tags = {
      models = json.array { { name = "m", model = "m", context_length = 7 } },
      data = json.array { { id = "m", owned_by = "llamacpp" } },
    }
    tags.model_info, tags.parameters = { ["general.architecture"] = "x", ["x.context_length"] = 7 }, "num_ctx 5\n"
    tags.capabilities, tags.default_generation_settings = json.array { "tools" }, { n_ctx = 7 }
    each_odd(tags, function(value)
      if type(value) ~= "table" or json.is_array(value) then return end
      for _, dialect in ipairs { ollama, openai } do
        local served, failure = dialect.list(endpoint_with(value, "http://host/v1"))
        assert.is_true(served ~= nil or type(failure.message) == "string")
        for _, one in ipairs(served or {}) do
          local description = dialect.describe(endpoint_with(value, "http://host"), one)
          assert.equal("integer", math.type(description.context_length))
        end
      end
    end)
  end)
end)
