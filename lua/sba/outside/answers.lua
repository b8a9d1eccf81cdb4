-- SPDX-License-Identifier: Apache-2.0
-- What the runner itself reads in the answers of the gateway's tools: a text, under one of several
-- names; and why a tool failed.

local http = require "sba.util.http"
local json = require "sba.util.json"

local answers = {}

local WRAPPERS <const> = { "artifact", "skill", "result", "data" }

---@param value any
---@param names string[] of the text, the first first
---@param depth integer of wrappers that are looked into
---@return string? text, table? holder
function answers.find(value, names, depth)
  if not json.is_object(value) then return nil end
  for _, name in ipairs(names) do
    local found = value[name]
    if type(found) == "string" and found ~= "" then return found, value end
  end
  for _, name in ipairs(depth > 0 and WRAPPERS or {}) do
    local found, holder = answers.find(value[name], names, depth - 1)
    if found then return found, holder end
  end
end

---@param code string
---@param answer gateway.answer of a tool that failed
---@return http.failure
function answers.failure(code, answer)
  return http.failure(code, "the gateway says: " .. http.shown(answer.content))
end

return answers
