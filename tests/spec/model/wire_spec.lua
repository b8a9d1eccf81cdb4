-- SPDX-License-Identifier: Apache-2.0
local wire = require "sba.model.wire"

--- A source of these lines; one that ends with "|" lacks its end. A table at the end is its failure.
local function source(lines)
  local i = 0
  return function()
    i = i + 1
    local line = lines[i]
    if type(line) ~= "string" then return nil, line end
    local whole = line:gsub("|$", "")
    return whole, whole == line
  end
end

local target <const> = wire.endpoint { base = "http://host" }

--- The values that a reader makes of lines, and its failure but for the missing end of a reply.
local function all(form, lines)
  local values = {}
  local _, failure = target:read(form(source(lines)), {}, function(_, value) values[#values + 1] = value end)
  return values, failure.message ~= "http://host: the reply was cut off" and failure or nil
end

describe("wire.ndjson", function()
  local function ndjson(lines) return all(wire.ndjson, lines) end

  it("gives the object of each line", function()
    assert.same({ { a = 1 }, { b = 2 } }, (ndjson { '{"a":1}', "", "  ", '{"b":2}' }))
    assert.same({ { a = 1 } }, (ndjson { '{"a":1}|' }))
  end)

  it("tells a cut line from one that is no JSON", function()
    for line, code in pairs {
      ['{"a":|'] = "cut_off", ['{"a":'] = "bad_answer", ["<html>"] = "bad_answer", ["[1]"] = "bad_answer",
      ["1"] = "bad_answer", [("["):rep(100)] = "bad_answer",
    } do
      local values, failure = ndjson { '{"a":1}', line }
      assert.same({ 1, code, true }, { #values, failure.cause, failure.transient }, line)
    end
  end)

  it("passes a failure on", function()
    local values, failure = ndjson { '{"a":1}', { code = "slow_answer", message = "slow" } }
    assert.same({ 1, "slow_answer" }, { #values, failure.cause })
  end)

  it("repairs what is not UTF-8", function()
    assert.same({ { a = "x\u{FFFD}y" } }, (ndjson { '{"a":"x\xFFy"}' }))
  end)
end)

describe("wire.events", function()
  local function events(lines) return all(wire.events, lines) end

  it("gives the data of each event", function()
    assert.same({ { a = 1 }, { b = 2 } },
      (events { ": comment", "event: x", 'data: {"a":1}', "", "", 'data:{"b":2}', "id: 1", "", "id: 2", "" }))
  end)

  it("ends at its mark", function()
    assert.same({ { a = 1 } }, (events { 'data: {"a":1}', "", "data: [DONE]", "", 'data: {"b":2}', "" }))
  end)

  it("joins the lines of one event, and needs no blank line at the end", function()
    assert.same({ { a = { 1, 2 } } }, (events { 'data: {"a":[1,', "data: 2]}" }))
    assert.same({}, (events { "data: [DONE]|" }))
  end)

  it("ends with what stands in a field of errors", function()
    for line, words in pairs { ['error: {"message":"no"}'] = "no", ["error: gone"] = "gone" } do
      assert.matches("broke off its reply: " .. words, select(2, events { line, "" }).message, 1, true)
    end
  end)

  it("does not look for its marks inside of text", function()
    assert.same({ { a = "data: [DONE]" } }, (events { 'data: {"a":"data: [DONE]"}', "" }))
  end)

  it("tells cut data from data that is none", function()
    assert.equal("cut_off", (select(2, events { 'data: {"a":1|' })).cause)
    assert.equal("bad_answer", (select(2, events { 'data: {"a":1', "" })).cause)
    assert.equal("slow", (select(2, events { 'data: {"a":1}', { code = "slow", message = "slow" } })).cause)
  end)
end)

describe("a refusal", function()
  it("finds the words of an error in every form, and its cause", function()
    for _, case in ipairs {
      { 400, { error = "registry.ollama.ai/library/m:1 does not support tools" }, "tools_unsupported", "does not support tools" },
      { 400, { error = '{"error":{"message":"too long","type":"exceed_context_size_error","n_ctx":4096}}' }, "context_cut", "too long" },
      { 400, { error = { message = "x", code = "context_length_exceeded" } }, "context_cut", "x" },
      { 400, { error = "the input length exceeds the context length" }, "context_cut", "input length" },
      { 400, { object = "error", message = "This model's maximum context length is 2048 tokens", code = 400 }, "context_cut", "2048" },
      { 422, { detail = "no such field" }, "refused", "no such field" },
      { 401, { error = "unauthorized", signin_url = "x" }, "refused", "unauthorized" },
      { 429, { error = { message = "m", code = "insufficient_quota" } }, "quota", "m" },
      { 529, "overloaded", "refused", "overloaded" },
      { 502, "<html>\n</html>", "refused", "an HTML page" },
      { 403, "", "refused", "an empty answer" }, { 507, "full", "refused", "full" },
      { 500, { error = { code = 1 } }, "refused", '{"error":{"code":1}}' },
    } do
      local failure = target:refusal(case[1], case[2])
      assert.equal(case[3], failure.cause)
      assert.is_truthy(failure.message:find(case[4], 1, true), failure.message)
      assert.equal(case[3] == "context_cut" and "context_cut" or "inference_unavailable", failure.code)
    end
  end)

  it("learns the window", function()
    assert.equal(2048, target:refusal(400, { message = "maximum context length is 2048 tokens" }).context_length)
    assert.equal(4096, target:refusal(400, { error = { type = "exceed_context_size_error", n_ctx = 4096 } }).context_length)
  end)

  it("cuts a long answer, between characters", function()
    assert.is_true(#target:refusal(400, ("ü"):rep(10000)).message < 400)
  end)
end)
