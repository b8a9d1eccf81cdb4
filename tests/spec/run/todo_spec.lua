-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local todo = require "sba.run.todo"

describe("the summary of a todo list", function()
  it("follows each change, and stays the same between two", function()
    local list = todo.new()
    local function status(position) return json.decode(list:summary().items[1])[position].status end
    list:fill({ steps = { { type = "list_tree", arguments = {} } } }, function() return "" end)
    assert.equal("pending", status(1))
    assert.equal(list:summary(), list:summary())
    list:set(list.steps[1], "done")
    assert.same({ "done", 1, 1 }, { status(1), list:summary().total, list:summary().done })
    assert(list:add "more")
    assert(list:update { id = "2", status = "in_progress", position = 1 })
    assert.same({ "in_progress", "done", 2 }, { status(1), status(2), list:summary().total })
  end)
end)

describe("the title of a requirement", function()
  it("is plain words also where the job has a structure", function()
    for requirement, title in pairs {
      ["[plain] words"] = "[plain] words", ["{a, b} are sorted"] = "{a, b} are sorted", ['["a","b"]'] = "a, b",
      ["{}"] = "{}", ['{"id":"R1","title":"Sort them","why":"x"}'] = "Sort them",
      ['{"id":"R1","must":{"hold":true},"of":["a",2]}'] = "id: R1, must: hold: true, of: a, 2",
    } do
      local list = todo.new()
      list:fill({ context = { requirements = { requirement } }, steps = {} }, function() return "" end)
      assert.equal(title, list.items[1].title)
    end
  end)
end)
