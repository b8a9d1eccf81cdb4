-- SPDX-License-Identifier: Apache-2.0
local array = require "sba.util.json".array
local prompt = require "sba.agent.prompt"

local function context(fields)
  local all = { requirements = array {}, acceptance_criteria = array {}, checks = {}, skills = {} }
  for name, value in pairs(fields) do all[name] = value end
  return all
end

local full = context {
  baseline_context = "BASE", project_context = "PROJ", task_context = "TASK", requirements = array { "REQ" },
  acceptance_criteria = array { "CRIT" }, preferences = { style = "PREF", b = 1, a = 2 }, additional_context = "ADD",
  skills = { { name = "S", text = "SKILL" } },
}

local function both(job)
  return prompt.system(job, {}) .. "\n" .. prompt.opening(job, {})
end

describe("the prompt", function()
  it("holds every block, in the contract's order", function()
    local job = { persona = { title = "TITLE", description = "DESC" }, context = full }
    for _, text in ipairs { both(job) .. "BRIEF STATUS", prompt.question(job, {}, "BRIEF", "STATUS") } do
      local from = 1
      for word in ("TITLE DESC BASE PROJ TASK REQ CRIT PREF ADD SKILL BRIEF STATUS"):gmatch "%u+" do
        from = assert(text:find(word, from, true), word .. " is missing or out of order")
      end
    end
  end)

  it("tells the task to the model as the user's words, for templates that leave out the system text", function()
    assert.is_nil(prompt.system({ context = full }, {}):find("TASK", 1, true))
    assert.matches("TASK", prompt.opening({ context = full }, {}), 1, true)
  end)

  it("is the same every time", function()
    local first = both { context = full }
    for _ = 1, 20 do assert.equal(first, both { context = full }) end
    assert.matches('{"a":2,"b":1,"style":"PREF"}', first, 1, true)
  end)

  it("has a baseline of its own where none is given", function()
    assert.matches("sandbox", prompt.system({ context = context {} }, {}))
    assert.is_nil(prompt.system({ context = full }, {}):find("sandbox", 1, true))
  end)

  it("ends with time left and the todo list", function()
    local null = require "sba.util.json".null
    local text = prompt.status(59.9, {
      { id = "1", title = "look", status = "done", parent = null, note = null },
      { id = "2", title = "do", status = "pending", parent = "1", note = "soon" },
    })
    assert.equal("Time left: 59 seconds.\n\nTodo list:\n[x] 1 look\n  [ ] 2 do (soon)", text)
    assert.matches("(empty)", prompt.status(nil, {}), 1, true)
  end)
end)
