-- SPDX-License-Identifier: Apache-2.0
-- Notices that a model goes round in circles: the same call with the same result, replies that cannot be read, replies that
-- say nothing. One warning, then the end.

local json = require "sba.util.json"
local text = require "native.text"

local stuck = {}
stuck.__index = stuck

local WARN_AT <const> = 3
local END_AT <const> = 4
local MOST_IN_A_ROW <const> = 3

function stuck.new()
  return setmetatable({ seen = {}, unreadable = 0, silent = 0 }, stuck)
end

---A call was answered.
---@param name string
---@param arguments table
---@param answer string as the model sees it
---@param changed boolean whether it changed the workspace: then the same call may well give the same again
---@return "warn"|"end"|nil
function stuck:answered(name, arguments, answer, changed)
  local key = text.sha256(name .. "\n" .. json.encode(arguments) .. "\n" .. answer)
  local times = (self.seen[key] or 0) + 1
  if changed and times == 1 then self.seen = {} end
  self.seen[key] = times
  return times >= END_AT and "end" or times == WARN_AT and "warn" or nil
end

---A reply could be read.
function stuck:was_read()
  self.unreadable, self.silent = 0, 0
end

---A reply could not be read (broken arguments, an unknown tool, cut off).
---@return boolean over whether that was once too often
function stuck:could_not_read()
  self.unreadable, self.silent = self.unreadable + 1, 0
  return self.unreadable >= MOST_IN_A_ROW
end

---A reply held neither text nor a call.
---@return boolean over
function stuck:said_nothing()
  self.silent, self.unreadable = self.silent + 1, 0
  return self.silent >= MOST_IN_A_ROW
end

return stuck
