-- SPDX-License-Identifier: Apache-2.0
local call_reader = require "sba.inference.call_reader"
local json = require "sba.util.json"

describe("call_reader.arguments", function()
  it("takes an object, in whatever form it comes", function()
    for _, given in ipairs {
      { a = 1 }, '{"a":1}', ' {"a":1}\n', '```json\n{"a":1}\n```', '```\n{"a":1}```', json.encode '{"a":1}',
    } do
      assert.are.same({ a = 1 }, (call_reader.arguments(given)))
    end
    for _, given in ipairs { "", "  ", "{}", "null", json.null, json.array {}, {}, "[]" } do
      local arguments, mistake = call_reader.arguments(given)
      assert.are.equal("{}", json.encode(arguments))
      assert.is_nil(mistake)
    end
  end)

  it("keeps large integers", function()
    assert.are.same({ n = 9007199254740993 }, (call_reader.arguments '{"n":9007199254740993}'))
  end)

  it("says what is wrong with anything else", function()
    for given, words in pairs {
      ["{oops"] = "not JSON: line 1, column 2", ["[1]"] = "must be an object, not an array of 1",
      ["1"] = "must be an object, not the number 1",
      ["true"] = "not true", ['"text"'] = "a string, not an object", [1] = "the number 1",
      [true] = "true", ['{"a":1'] = "the end of the text",
    } do
      local arguments, mistake = call_reader.arguments(given)
      assert.is_nil(arguments)
      assert.is_truthy(mistake:find(words, 1, true), mistake)
      assert.is_nil(mistake:find "\n")
    end
  end)
end)

describe("call_reader.name", function()
  local names = call_reader.names {
    { name = "read_file", exact = false }, { name = "run_command", called = { "bash", "run_shell" } }, { name = "finish" },
    { name = "artifact_put", exact = true },
  }

  it("finds what is meant", function()
    for given, name in pairs {
      read_file = "read_file", ReadFile = "read_file", ["read-file"] = "read_file", ["functions.read_file"] = "read_file",
      [" read_file\n"] = "read_file", ["read_file()"] = "read_file", redfile = "read_file", Finish = "finish",
      bash = "run_command", Bash = "run_command", runShell = "run_command", ["functions.run-shell"] = "run_command",
    } do
      assert.are.equal(name, call_reader.name(given, names), given)
    end
  end)

  it("finds a gateway's tool by the gateway's name", function()
    assert.are.equal("artifact_put", call_reader.name("artifact.put", names))
  end)

  it("guesses only those that may be guessed", function()
    assert.is_nil(call_reader.name("artifact_pu", names))
    assert.are.equal("finish", call_reader.name("finnish", names))
  end)

  it("prefers a tool that has the name", function()
    local both = call_reader.names { { name = "run_command", called = { "bash" } }, { name = "bash", exact = true } }
    assert.are.equal("bash", call_reader.name("bash", both))
  end)

  it("guesses nothing else", function()
    for _, given in ipairs { "", "delete", "rea", "x", ("read_file"):rep(100), (" "):rep(1000000), 1, {} } do
      assert.is_nil(call_reader.name(given, names))
    end
  end)
end)

describe("call_reader.normal", function()
  it("gives each call an id of its own", function()
    local session = { calls = 0, ids = {} }
    local given = {
      { id = "a", name = "x" }, { id = "a", name = "x" }, { id = "", name = "x" }, { id = 7, name = "x" }, { id = "call_4", name = "x" },
    }
    local seen = {}
    for _ = 1, 2 do
      for _, call in ipairs((call_reader.normal(given, call_reader.names { { name = "x" } }, session))) do
        assert.is_nil(seen[call.id])
        seen[call.id] = true
      end
    end
    assert.is_true(seen.a)
  end)

  it("keeps an unknown name, for the caller to refuse", function()
    local given = { { name = "nothing_like_it" }, { name = json.null } }
    local list, notes = call_reader.normal(given, call_reader.names { { name = "x_y" } }, { calls = 0, ids = {} })
    assert.are.same({ "nothing_like_it", "(no name)" }, { list[1].name, list[2].name })
    assert.are.same({}, notes)
  end)
end)
