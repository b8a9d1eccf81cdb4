-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua ways.lua MODULE FUNCTION ARGUMENT...: runs a job in this process, and prints which files of lua/sba
-- it goes through, and which of these calls into which: before the first call of that function ("first"), and from one
-- call of it to the next ("next").
local identity = require "native.identity"
local json = require "sba.util.json"

-- What comes by the clock is on no way.
require "sba.result.checkpoint".tick = function() end
require "sba.run.progress".tick = function() end
require "sba.result.checkpoint".hurry = require "sba.result.checkpoint".flush

-- The runner takes its own addresses out of the environment when it starts, and this is its second start.
local environment_of <const> = identity.environment
function identity.environment(names)
  local environment = environment_of(names)
  environment.OLLAMA_BASE_URL = environment.MODEL_SERVER
  return environment
end

local begins <const> = require(arg[1])[arg[2]]
local way, first, next_one = { files = {}, calls = {} }, nil, nil

local function file_at(level)
  local info = debug.getinfo(level + 1, "S")
  return info and info.source:match "sba/([%w_/]+)%.lua$"
end

debug.sethook(function()
  local file, from = file_at(2), file_at(3)
  if not file or file == "util/lazy" then return end -- once for each module
  if debug.getinfo(2, "f").func == begins then
    if first then next_one = way else first = way end
    way = { files = {}, calls = {} }
  end
  way.files[file] = true
  if from and from ~= file then way.calls[from .. " > " .. file] = true end
end, "c")
local status = require "sba.main" { [0] = "cynode-sba", table.unpack(arg, 3) }
debug.sethook()

local function sorted(set)
  local list = json.array {}
  for one in pairs(set) do list[#list + 1] = one end
  table.sort(list)
  return list
end

local function shown(one) return { files = sorted(one.files), calls = sorted(one.calls) } end

print(json.encode { status = status, first = shown(first), next = shown(next_one) })
