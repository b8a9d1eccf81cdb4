-- SPDX-License-Identifier: Apache-2.0
local array = require "sba.util.json".array
local prompt = require "sba.agent.prompt"

local function context(fields)
  local all = { requirements = array {}, acceptance_criteria = array {}, checks = {}, skill_ids = array {}, skills = {} }
  for name, value in pairs(fields) do all[name] = value end
  return all
end

local full = context {
  baseline_context = "BASE", project_context = "PROJ", task_context = "TASK", requirements = array { "REQ" },
  acceptance_criteria = array { "CRIT" }, preferences = { style = "PREF", b = 1, a = 2 }, additional_context = "ADD",
  skills = { { name = "S", text = "SKILL" } },
}

local function both(job, given, more)
  return prompt.system(job, given, more) .. "\n" .. prompt.opening(given, more)
end

describe("the prompt", function()
  it("holds every block, in the contract's order", function()
    local text, from = both({ persona = { title = "TITLE", description = "DESC" } }, full), 1
    for _, word in ipairs { "TITLE", "DESC", "BASE", "PROJ", "TASK", "REQ", "CRIT", "PREF", "ADD", "SKILL" } do
      from = assert(text:find(word, from, true), word .. " is missing or out of order")
    end
  end)

  it("tells the task to the model as the user's words, for templates that leave out the system text", function()
    assert.is_nil(prompt.system({}, full):find("TASK", 1, true))
    assert.matches("TASK", prompt.opening(full), 1, true)
    assert.matches("BASE.*TASK.*SKILL", prompt.question({}, full, {}, nil, "STATUS"))
  end)

  it("is the same every time", function()
    local first = both({}, full)
    for _ = 1, 20 do assert.equal(first, both({}, full)) end
    assert.matches('{"a":2,"b":1,"style":"PREF"}', first, 1, true)
  end)

  it("has a baseline of its own where none is given", function()
    assert.matches("sandbox", prompt.system({}, context {}))
    assert.is_nil(prompt.system({}, full):find("sandbox", 1, true))
  end)

  it("tells the facts once, before the project and the task, and how to work", function()
    local text, from = both({}, full, { facts = "FACTS", agents_md = "AGENTS" }), 1
    for _, word in ipairs { "BASE", "Every reply calls a tool", "Call finish", "FACTS", "PROJ", "AGENTS", "TASK" } do
      from = assert(text:find(word, from, true), word .. " is missing or out of order")
    end
    assert.is_nil(text:find("FACTS", from, true))
    assert.matches("## Project\n\nAGENTS", prompt.system({}, context {}, { agents_md = "AGENTS" }), 1, true)
    assert.is_nil(prompt.question({}, full, {}, nil, "STATUS"):find("Call finish", 1, true))
  end)

  it("speaks of the todo list only where there is one", function()
    assert.matches("todo list", prompt.system({}, full, { facts = "FACTS", has_todo = true }), 1, true)
    assert.is_nil(prompt.system({}, full, { facts = "FACTS" }):find("todo", 1, true))
    assert.equal("Time left: no limit.", prompt.status(nil, nil))
  end)

  it("says what is nearly used up", function()
    assert.matches("Less than a fifth of the job's tokens is left", prompt.status(20, nil, "tokens"), 1, true)
    assert.is_nil(prompt.status(20, {}):find("fifth", 1, true))
  end)

  it("ends with the schema of the answer", function()
    assert.matches('schema: {"type":"object"}$', prompt.opening(full, { answer_schema = { type = "object" } }))
  end)

  it("names skills that could not be fetched", function()
    assert.matches("skill%-7 could not be fetched", prompt.opening(full, { missing_skills = { "skill-7" } }))
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
