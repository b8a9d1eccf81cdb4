-- SPDX-License-Identifier: Apache-2.0
local catalogue = require "sba.catalogue"
local confine = require "native.confine"
local confinement = require "sba.run.confinement"
local workspace = require "native.workspace"

--- Below which paths commands may write, by the rules of a job.
local function writable(types, acceptance)
  local abi, set_rules, given = confine.abi, confine.set_rules, nil
  local steps = types and {}
  for i, type in ipairs(types or {}) do steps[i] = { type = type } end
  confine.abi = function() return 7 end
  confine.set_rules = function(paths) given = paths return true end
  local state = confinement.begin {
    steps = steps, record = { acceptance = acceptance }, catalogue = catalogue, environment = {},
    settings = { confine = "auto" }, workspace = assert(workspace.open "/tmp"),
  }
  confine.abi, confine.set_rules = abi, set_rules
  assert.same({ "/tmp", "/var/tmp", "/dev", "/proc" }, state.writable)
  return given
end

describe("the rules for commands", function()
  it("let them write where the job may", function()
    local places <const> = { "/tmp", "/var/tmp", "/dev", "/proc" }
    for _, types in ipairs { { "run_command" }, { "write_file", "run_agent" }, { "list_tree" } } do
      assert.same(places, writable(types))
    end
    assert.same(places, writable({}, {}))
    assert.same(places, writable(nil))
  end)

  it("let them write nowhere in a job that has none", function()
    for _, types in ipairs { {}, { "write_file" }, { "read_file", "replace_in_file" } } do
      assert.same({}, writable(types))
    end
  end)
end)
