-- SPDX-License-Identifier: Apache-2.0
local stream = require "sba.model.stream"

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

local function all(next_value)
  local values = {}
  while true do
    local value, failure = next_value()
    if not value then return values, failure end
    values[#values + 1] = value
  end
end

describe("stream.ndjson", function()
  it("gives the object of each line", function()
    assert.are.same({ { a = 1 }, { b = 2 } }, (all(stream.ndjson(source { '{"a":1}', "", "  ", '{"b":2}' }))))
    assert.are.same({ { a = 1 } }, (all(stream.ndjson(source { '{"a":1}|' }))))
  end)

  it("tells a cut line from one that is no JSON", function()
    for line, code in pairs {
      ['{"a":|'] = "cut_off", ['{"a":'] = "bad_answer", ["<html>"] = "bad_answer", ["[1]"] = "bad_answer",
      ["1"] = "bad_answer", [("["):rep(100)] = "bad_answer",
    } do
      local values, failure = all(stream.ndjson(source { '{"a":1}', line }))
      assert.are.same({ 1, code }, { #values, failure.code }, line)
    end
  end)

  it("refuses what is too large before it is read", function()
    local line = '{"a":[' .. ("0,"):rep(5000000) .. "0]}"
    assert.are.equal("too_large", (select(2, all(stream.ndjson(source { line })))).code)
    assert.are.equal("too_large", (select(2, all(stream.events(source { "data: " .. line, "" })))).code)
  end)

  it("passes a failure on", function()
    local values, failure = all(stream.ndjson(source { '{"a":1}', { code = "cut_off" } }))
    assert.are.same({ 1, "cut_off" }, { #values, failure.code })
  end)

  it("repairs what is not UTF-8", function()
    assert.are.same({ { a = "x\u{FFFD}y" } }, (all(stream.ndjson(source { '{"a":"x\xFFy"}' }))))
  end)
end)

describe("stream.events", function()
  local function events(lines) return all(stream.events(source(lines))) end

  it("gives the data of each event", function()
    assert.are.same({ { a = 1 }, { b = 2 } },
      (events { ": comment", "event: x", 'data: {"a":1}', "", "", 'data:{"b":2}', "id: 1", "", "id: 2", "" }))
  end)

  it("ends at its mark", function()
    assert.are.same({ { a = 1 } }, (events { 'data: {"a":1}', "", "data: [DONE]", "", 'data: {"b":2}', "" }))
  end)

  it("joins the lines of one event, and needs no blank line at the end", function()
    assert.are.same({ { a = { 1, 2 } } }, (events { 'data: {"a":[1,', "data: 2]}" }))
    assert.are.same({}, (events { "data: [DONE]|" }))
  end)

  it("does not look for its marks inside of text", function()
    assert.are.same({ { a = "data: [DONE]" } }, (events { 'data: {"a":"data: [DONE]"}', "" }))
  end)

  it("tells of errors beside the data", function()
    assert.are.same({ { error = { code = 500 } } }, (events { 'error: {"code":500}', "" }))
    assert.are.same({ { error = "oops" } }, (events { "error: oops", "" }))
  end)

  it("tells cut data from data that is none", function()
    assert.are.equal("cut_off", (select(2, events { 'data: {"a":1|' })).code)
    assert.are.equal("bad_answer", (select(2, events { 'data: {"a":1', "" })).code)
    assert.are.equal("cut_off", (select(2, events { 'data: {"a":1}', { code = "cut_off" } })).code)
  end)
end)
