-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua known.lua STEPS NAME: prints what the model is told of a step type. It ends with an error where the model is not
-- shown it, or STEPS, which --schema steps printed, does not list it.
local catalogue = require "sba.catalogue"
local json = require "sba.util.json"
local tools = require "sba.agent.tools"

local file, name = arg[1], arg[2]
local handle = assert(io.open(file))
assert(json.decode(handle:read("a")).properties[name], "--schema steps does not list it")
handle:close()

local _, by_name = tools.list(catalogue)
local tool = assert(by_name[name], "the model is not shown it")
print(("   %s: %s"):format(tool.name, tool.description))
