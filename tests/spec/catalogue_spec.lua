-- SPDX-License-Identifier: Apache-2.0
-- What the catalogue says of modules that are no step types.
local loaded = package.loaded

-- A catalogue of its own that finds only these modules.
local function catalogue_of(modules)
  local kept, names = { bundle = loaded["native.bundle"], catalogue = loaded["sba.catalogue"] }, {}
  for name, module in pairs(modules) do
    names[#names + 1], loaded["sba.steps." .. name] = name, module
  end
  loaded["native.bundle"], loaded["sba.catalogue"] = { list = function() return names end }, nil
  local catalogue = require "sba.catalogue"
  loaded["native.bundle"], loaded["sba.catalogue"] = kept.bundle, kept.catalogue
  return catalogue
end

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

describe("the catalogue", function()
  after_each(function() loaded["sba.steps.test_step"] = nil end)

  it("takes a whole step type", function()
    local whole = module {}
    local catalogue = catalogue_of { test_step = whole }
    assert.are.equal(whole, catalogue.get "test_step")
    assert.are.same({ whole }, catalogue.all())
    assert.is_nil(catalogue.get "other")
  end)

  it("names the file of one that is not", function()
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
      ["has a mistake in its schema of result: schema.type: has the unknown type 'map'"] = module { result = { type = "map" } },
    } do
      local ok, message = pcall(catalogue_of({ test_step = wrong }).all)
      assert.is_false(ok)
      assert.are.equal("lua/sba/steps/test_step.lua " .. said, message)
    end
  end)

  it("says of a module what is wrong before it is used", function()
    assert.are.equal("has no summary", catalogue_of({ test_step = without "summary" }).mistake "test_step")
    assert.is_nil(catalogue_of({ test_step = module {} }).mistake "test_step")
    assert.matches("^cannot be loaded: module 'sba.steps.nowhere' not found", catalogue_of({}).mistake "nowhere")
  end)

  it("keeps the names of the agent's own tools", function()
    local list = require "sba.run.agent.tools".list { all = function() return {} end }
    assert.is_true(#list >= 4)
    for _, tool in ipairs(list) do
      loaded["sba.steps." .. tool.name] = module { name = tool.name }
      assert.are.equal("has a name that is taken by a tool of the agent", catalogue_of({}).mistake(tool.name))
      loaded["sba.steps." .. tool.name] = nil
    end
  end)

  it("knows the fields that lua/types/step.lua tells authors of", function()
    local class
    for line in io.lines(arg[0]:match("^(.*)tests/") .. "lua/types/step.lua") do
      class = line:match("^%-%-%-@class (%S+)") or class
      local field = class == "sba.step" and line:match("^%-%-%-@field ([%w_]+)")
      if field then -- of no field's type: a known one is told so
        local mistake = catalogue_of({ test_step = module { [field] = io.stdout } }).mistake "test_step"
        assert.matches(("^has a %s that is no"):format(field), mistake)
      end
    end
  end)
end)
