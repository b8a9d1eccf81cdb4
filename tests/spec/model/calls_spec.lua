-- SPDX-License-Identifier: Apache-2.0
local calls = require "sba.model.calls"
local json = require "sba.util.json"

describe("calls.arguments", function()
  it("takes an object, in whatever form it comes", function()
    for _, given in ipairs {
      { a = 1 }, '[{"a":1}]', '{"a":1}', ' {"a":1}\n', '{"a":1}{"a":1}',
      json.encode '{"a":1}', json.encode(json.encode '{"a":1}'), '{"a":1,}}',
    } do
      assert.same({ a = 1 }, (calls.arguments(given)))
    end
    for _, given in ipairs { "", "  ", "{}", "null", json.null, json.array {}, {}, "[]" } do
      local arguments, mistake = calls.arguments(given)
      assert.equal("{}", json.encode(arguments))
      assert.is_nil(mistake)
    end
  end)

  it("says what is wrong with anything else", function()
    for given, words in pairs {
      ["{oops"] = "not JSON: line 1, column 2", ["[1]"] = "must be an object, not an array of 1",
      ["1"] = "must be an object, not the number 1", ["true"] = "not true", ['"text"'] = "not JSON: line 1",
      [1] = "the number 1", [true] = "true", ['{"a":1'] = "the end of the text",
    } do
      local arguments, mistake = calls.arguments(given)
      assert.is_nil(arguments)
      assert.is_truthy(mistake:find(words, 1, true), mistake)
      assert.is_nil(mistake:find "\n")
    end
  end)
end)

describe("calls.name", function()
  local names = {
    { name = "read_file", exact = false }, { name = "run_command", called = { "bash", "run_shell" } },
    { name = "finish" }, { name = "artifact_put", exact = true },
  }

  it("finds what is meant", function()
    for given, name in pairs {
      read_file = "read_file", ReadFile = "read_file", ["read-file"] = "read_file",
      ["functions.read_file"] = "read_file", [" read_file\n"] = "read_file", ["read_file()"] = "read_file",
      redfile = "read_file", Finish = "finish", finnish = "finish",
      bash = "run_command", Bash = "run_command", runShell = "run_command", ["functions.run-shell"] = "run_command",
      ["read_file<|channel|>commentary"] = "read_file",
      ["artifact.put"] = "artifact_put", -- as the gateway calls it
    } do
      assert.equal(name, calls.name(given, names), given)
    end
    local both = { { name = "run_command", called = { "bash" } }, { name = "bash", exact = true } }
    assert.equal("bash", calls.name("bash", both), "a tool that has the name comes first")
  end)

  it("guesses nothing else", function()
    for _, given in ipairs {
      'read_file(path="a")', "", "delete", "rea", "x", "artifact_pu", ("read_file"):rep(100), (" "):rep(1000000), 1, {},
    } do
      assert.is_nil(calls.name(given, names))
    end
  end)
end)

describe("calls.normal", function()
  it("gives each call an id of its own", function()
    local session = { calls = 0, ids = {} }
    local given = {}
    for i, id in ipairs { "a", "a", "", 7, "call_4" } do given[i] = { id = id, name = "x" } end
    local seen = {}
    for _ = 1, 2 do
      for _, call in ipairs((calls.normal(given, { { name = "x" } }, session))) do
        assert.is_nil(seen[call.id])
        seen[call.id] = true
      end
    end
    assert.is_true(seen.a)
  end)

  it("keeps the arguments as they were written, where that is JSON", function()
    local session, names = { calls = 0, ids = {} }, { { name = "x" } }
    for given, written in pairs { ['{"a" :1}'] = '{"a" :1}', ['{"a":1,}'] = false, ['"{}"'] = false } do
      assert.equal(written, calls.normal({ { name = "x", arguments = given } }, names, session)[1].written or false)
    end
  end)

  it("keeps an unknown name, for the caller to refuse", function()
    local given = { { name = "nothing_like_it" }, { name = json.null } }
    local list = calls.normal(given, { { name = "x_y" } }, { calls = 0, ids = {} })
    assert.same({ "nothing_like_it", "(no name)" }, { list[1].name, list[2].name })
  end)
end)
