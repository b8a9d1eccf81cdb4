-- SPDX-License-Identifier: Apache-2.0
-- Parts of a JSON text as they are written there. A decoded object has lost the order of its keys.

local lpeg = require "lpeg"

local json_text = {}

local P, S, V, C, Cp = lpeg.P, lpeg.S, lpeg.V, lpeg.C, lpeg.Cp

local blank <const> = S " \t\r\n" ^ 0
local quoted <const> = '"' * ((1 - S '"\\') ^ 1 + "\\" * P(1)) ^ 0 * '"'
local nested <const> = P { S "{[" * (quoted + V(1) + (1 - S '{}[]"') ^ 1) ^ 0 * S "}]" }
local value <const> = quoted + nested + (1 - S ',:{}[]" \t\r\n') ^ 1
local opening <const> = { object = blank * "{" * blank * Cp(), array = blank * "[" * blank * Cp() }
local member <const> = C(quoted) * blank * ":" * blank * C(value) * blank * P "," ^ -1 * blank * Cp()
local element <const> = C(value) * blank * P "," ^ -1 * blank * Cp()

local function of_object(text, name)
  local at, wanted = lpeg.match(opening.object, text), '"' .. name .. '"'
  while at do
    local key, found, after = lpeg.match(member, text, at)
    if key == wanted then return found end
    at = after
  end
end

local function of_array(text, index)
  local at, found = lpeg.match(opening.array, text), nil
  for _ = 1, index do
    if not at then return nil end
    found, at = lpeg.match(element, text, at)
  end
  return found
end

---The text of a value within a value.
---@param text string JSON that was decoded without a mistake, at most 64 levels deep
---@param ... string|integer names of members and places in arrays (from 1), from the outermost on
---@return string? nil where there is none, or a name is written with escapes
function json_text.part(text, ...)
  for _, step in ipairs { ... } do
    text = (type(step) == "string" and of_object or of_array)(text, step)
    if not text then return nil end
  end
  return text
end

return json_text
