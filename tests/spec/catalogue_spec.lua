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
      ["returns no table"] = "text",
      ["calls itself 'other'"] = module { name = "other" },
      ["has no summary"] = module { summary = "" },
      ["has no function run"] = module { run = 1 },
      ["has no arguments schema of type object"] = module { arguments = {} },
      ["has a check that is no function"] = module { check = "x" },
      ["arguments: schema.additionalProps: is no known keyword"] = module { arguments = { type = "object", additionalProps = false } },
      ["result: schema.type: has the unknown type 'map'"] = module { result = { type = "map" } },
    } do
      local ok, message = pcall(catalogue_of({ test_step = wrong }).all)
      assert.is_false(ok)
      assert.are.equal("lua/sba/steps/test_step.lua " .. said, message)
    end
  end)
end)
