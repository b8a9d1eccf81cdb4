-- SPDX-License-Identifier: Apache-2.0
-- What there is of step types, and what is said of modules that are none.
local catalogue = require "sba.catalogue"
local mistake_in = require "step_mistake"
local loaded = package.loaded

local function module(changes)
  local step = { name = "test_step", summary = "A test.", arguments = { type = "object" }, run = function() end }
  for key, value in pairs(changes) do step[key] = value end
  return step
end

local function without(field)
  local step = module {}
  step[field] = nil
  return step
end

local function mistake_of(step)
  loaded["sba.steps.test_step"] = step
  return mistake_in "test_step"
end

describe("the catalogue", function()
  it("has every step type, and nothing wrong with one", function()
    assert.equal(#catalogue.names(), #catalogue.all())
    for _, name in ipairs(catalogue.names()) do
      assert.equal(name, catalogue.get(name).name)
      assert.is_nil(mistake_in(name))
    end
    assert.is_nil(catalogue.get "other")
  end)
end)

describe("what a step does, in a few words", function()
  it("is said by the step type, or by the arguments", function()
    local read = catalogue.get "read_file"
    finally(function() read.what = nil end)
    local step = { type = "read_file", arguments = { path = "a" } }
    assert.equal("a", catalogue.what(step))
    function read.what(arguments, result) return (result and "has read " or "reads ") .. arguments.path end
    assert.same({ "reads a", "has read a" }, { catalogue.what(step), catalogue.what(step, {}) })
    for _, wrong in ipairs { error, function() end } do
      read.what = wrong
      assert.equal("a", catalogue.what(step))
    end
    read.what = function() return ("x"):rep(300) end
    assert.equal(("x"):rep(199) .. "…", catalogue.what(step))
  end)
end)

describe("a step type", function()
  after_each(function() loaded["sba.steps.test_step"] = nil end)

  it("may have mistakes, each of which is named", function()
    for said, wrong in pairs {
      ["does not return a table"] = "text",
      ["has no name"] = without "name",
      ["has no summary"] = without "summary",
      ["has no arguments"] = without "arguments",
      ["has no run"] = without "run",
      ["has the name 'other': name and file name must be the same"] = module { name = "other" },
      ["has an empty summary"] = module { summary = "" },
      ["has a run that is not a function"] = module { run = 1 },
      ["has arguments that are not a schema of type object"] = module { arguments = {} },
      ["has a check that is not a function"] = module { check = "x" },
      ["has the unknown field 'for_models'"] = module { for_models = false },
      ["has a mistake in its schema of arguments: schema.additionalProps: is no known keyword"] =
        module { arguments = { type = "object", additionalProps = false } },
      ["has a mistake in its schema of result: schema.type: has the unknown type 'map'"] =
        module { result = { type = "map" } },
    } do
      assert.equal(said, mistake_of(wrong))
    end
    assert.is_nil(mistake_of(module {}))
    assert.matches("^cannot be loaded: module 'sba.steps.nowhere' not found", mistake_in "nowhere")
  end)

  it("must not have the name of one of the agent's own tools", function()
    local list = require "sba.agent.tools".list { all = function() return {} end }
    assert.is_true(#list >= 4)
    for _, tool in ipairs(list) do
      loaded["sba.steps." .. tool.name] = module { name = tool.name }
      assert.equal("has a name that is taken by a tool of the agent", mistake_in(tool.name))
      loaded["sba.steps." .. tool.name] = nil
    end
  end)

  it("may have the fields that lua/types/step.lua tells authors of", function()
    local class
    for line in io.lines(arg[0]:match("^(.*)tests/") .. "lua/types/step.lua") do
      class = line:match("^%-%-%-@class (%S+)") or class
      local field = class == "sba.step" and line:match("^%-%-%-@field ([%w_]+)")
      if field then -- of no field's type: a known one is told so
        assert.matches(("^has a %s that is no"):format(field), mistake_of(module { [field] = io.stdout }))
      end
    end
  end)
end)
