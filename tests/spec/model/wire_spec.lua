-- SPDX-License-Identifier: Apache-2.0
local answer = require "answer"
local json = require "sba.util.json"
local reply = require "sba.model.reply"
local wire = require "sba.model.wire"

local target <const> = wire.endpoint { base = "http://host", timeout = {} }

--- The values that a reader makes of lines, and its failure but for the missing end of a reply.
local function all(lines)
  local values, builder = {}, reply.new()
  local _, failure = target:read_reply(answer(lines), builder, function(_, value) values[#values + 1] = value end)
  return values, failure.message ~= "http://host: the reply was cut off" and failure or nil
end

describe("lines of JSON", function()
  it("gives the object of each line", function()
    assert.same({ { a = 1 }, { b = 2 } }, (all { '{"a":1}', "", "  ", '{"b":2}' }))
    assert.same({ { a = 1 } }, (all { '{"a":1}|' }))
  end)

  it("tells a cut line from one that is no JSON", function()
    for line, code in pairs {
      ['{"a":|'] = "cut_off", ['{"a":'] = "bad_answer", ["<html>"] = "bad_answer", ["[1]"] = "bad_answer",
      ["1"] = "bad_answer", [("["):rep(100)] = "bad_answer",
    } do
      local values, failure = all { '{"a":1}', line }
      assert.same({ 1, code, true }, { #values, failure.cause, failure.transient }, line)
    end
  end)

  it("passes a failure on", function()
    local values, failure = all { '{"a":1}', { code = "slow_answer", message = "slow" } }
    assert.same({ 1, "slow_answer" }, { #values, failure.cause })
  end)

  it("repairs what is not UTF-8", function()
    assert.same({ { a = "x\u{FFFD}y" } }, (all { '{"a":"x\xFFy"}' }))
  end)
end)

describe("events", function()
  it("gives the data of each event", function()
    assert.same({ { a = 1 }, { b = 2 } },
      (all { ": comment", "event: x", 'data: {"a":1}', "", "data: : x", "", 'data:{"b":2}', "id: 1", "", "id: 2", "" }))
  end)

  it("ends at its mark", function()
    assert.same({ { a = 1 } }, (all { 'data: {"a":1}', "", "data: [DONE]", "", 'data: {"b":2}', "" }))
  end)

  it("joins the lines of one event, and needs no blank line at the end", function()
    assert.same({ { a = { 1, 2 } } }, (all { 'data: {"a":[1,', "data: 2]}" }))
    assert.same({}, (all { "data: [DONE]|" }))
  end)

  it("ends with what stands in a field of errors", function()
    for line, words in pairs {
      ['error: {"message":"no"}'] = "no", ["error: gone"] = "gone",
      ["data: ConnectionError: gone"] = "ConnectionError: gone",
      ['data: {"choices":null,"error_type":"Bad","error_message":"too long"}'] = "too long",
    } do
      assert.matches("broke off its reply: " .. words, select(2, all { line, "" }).message, 1, true)
    end
  end)

  it("takes the status that the words of an error state", function()
    local failure = select(2, all { 'data: {"error":{"message":"Error code: 400 - filtered"}}', "" })
    assert.same({ 400, false }, { failure.status, failure.transient or false })
  end)

  it("does not look for its marks inside of text", function()
    assert.same({ { a = "data: [DONE]" } }, (all { 'data: {"a":"data: [DONE]"}', "" }))
  end)

  it("tells cut data from data that is none", function()
    assert.equal("cut_off", (select(2, all { 'data: {"a":1|' })).cause)
    assert.equal("bad_answer", (select(2, all { 'data: {"a":1', "" })).cause)
    assert.equal("slow", (select(2, all { 'data: {"a":1}', { code = "slow", message = "slow" } })).cause)
  end)
end)

describe("an answer of another form than was asked for", function()
  it("is of the first form that fits, as each example says", function()
    for i, form in ipairs(wire.forms) do
      local lines = {}
      for line in (form.example .. "\n"):gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
      for j = 1, i do assert.equal(j == i, wire.forms[j].fits(lines[1], true), form.name) end
      assert.is_truthy(all(lines)[1].a, form.name)
    end
  end)

  it("is known by its first line", function()
    assert.same({ { a = { 1 } } }, (all { "", " ", "{", '"a": [', "1]", "}" }))
    assert.same({ { a = 1 } }, (all { '\xEF\xBB\xBFdata: {"a":1}', "" }))
    assert.same({ { a = 1 }, { b = 2 } }, (all { ": comment", 'data: {"a":1}', 'data: {"b":2}' }))
    assert.same({ { a = 1 } }, (all { '{"a":1}' }))
    assert.matches("an HTML page", select(2, all { "<html>", "</html>" }).message)
    assert.matches("an HTML page", select(2, all { "<html></html>|" }).message)
    assert.equal("cut_off", select(2, all { '{"a":|' }).cause)
    assert.matches("what is not JSON: Unauthorized: no key", select(2, all { "Unauthorized: no key" }).message, 1, true)
  end)
end)

describe("an error in a reply", function()
  it("has the status of its code", function()
    for written, wanted in pairs {
      ['{"error":{"code":402,"message":"no credits"}}'] = { 402, false },
      ['{"error":{"code":"503","message":"busy"}}'] = { 503, true }, ['{"error":"gone"}'] = { nil, true },
      ['{"choices":[{"error":{"code":502,"message":"away"}}]}'] = { 502, true },
      ['{"object":"error","message":"long","code":400}'] = { 400, false },
      ['[{"error":{"code":400,"message":"no"}}]'] = { 400, false }, ['{"type":"error","message":"x"}'] = { nil, true },
      ['{"code":401,"msg":"no key"}'] = { 401, false }, ['{"error":{"code":7,"message":"x"}}'] = { nil, true },
      ['{"error":{"code":1,"message":"got Error code: 503 - x"}}'] = { 503, true },
      ['{"status_code":401,"error":{"message":"no key"}}'] = { 401, false },
    } do
      local _, failure = all { written }
      assert.same(wanted, { failure.status, failure.transient }, written)
      assert.is_true(failure.is_in_reply)
    end
    assert.matches('sent no reply: {"a":1}', select(2, all { '{"a":1}' }).message, 1, true)
    assert.equal("no", select(2, all { "event: error", 'data: {"message":"no"}', "" }).words)
  end)

  it("is none behind the end of the reply", function()
    local builder = reply.new()
    local function add(into, value)
      into:content(value.said)
      into:ended(value.reason)
    end
    local lines = { '{"said":"hello","reason":"stop"}', { code = "cut_off", message = "cut" } }
    assert.is_true(target:read_reply(answer(lines), builder, add))
    assert.is_true(target:read_reply(answer { '{"said":"x"}', "<html>" }, builder, add))
  end)
end)

describe("a list of models", function()
  it("is read in every form", function()
    local function names(value)
      local endpoint = wire.endpoint { base = "http://host", ask = function() return value end }
      local served, failure = endpoint:list "/models"
      if not served then return failure.cause end
      local list = {}
      for i, one in ipairs(served) do list[i] = one.name end
      return table.concat(list, " ")
    end
    assert.equal("a b", names { data = json.array { { id = "a" }, { id = "models/b" } } })
    assert.equal("a b c", names(json.array { { id = "a" }, "b", { name = "c", model = "" }, 7, {} }))
    assert.equal("a", names { models = json.array { { name = "a", model = "a" } } })
    assert.equal("", names(json.array {}))
    for _, none in ipairs { {}, { data = {} }, { data = 1 }, { data = json.null } } do
      assert.equal("no_list", names(none))
    end
  end)
end)

describe("a refusal", function()
  it("has the words of an error in every form", function()
    for _, case in ipairs {
      { 400, { error = "registry.ollama.ai/library/m:1 does not support tools" }, "does not support tools" },
      { 400, { error = '{"error":{"message":"too long","type":"exceed_context_size_error","n_ctx":7}}' }, "too long" },
      { 400, { error = { message = "x", code = "context_length_exceeded" } }, "x" },
      { 400, { object = "error", message = "This model's maximum context length is 2048 tokens", code = 400 }, "2048" },
      { 400, '[{"error":{"message":"Gemini"}}]', "Gemini" }, { 422, { detail = "no such field" }, "no such field" },
      { 401, { error = "unauthorized", signin_url = "x" }, "unauthorized" },
      { 429, { error = { message = "m" } }, "m" }, { 529, "overloaded", "overloaded" },
      { 502, "<html>\n</html>", "an HTML page" }, { 403, "", "an empty answer" },
      { 500, { error = { code = 1 } }, '{"error":{"code":1}}' },
    } do
      local failure = target:refusal(case[1], case[2])
      assert.is_truthy(failure.message:find(case[3], 1, true), failure.message)
      assert.equal("inference_unavailable", failure.code)
    end
  end)

  it("cuts a long answer, between characters", function()
    assert.is_true(#target:refusal(400, ("ü"):rep(10000)).message < 400)
  end)
end)
