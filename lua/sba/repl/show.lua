-- SPDX-License-Identifier: Apache-2.0
-- Values as a person reads them: nested, sorted, within bounds, harmless to a terminal. JSON arrays
-- stand in brackets. Nothing of a value is run but __tostring.

local json = require "sba.util.json"
local printable = require "sba.util.printable"
local text = require "native.text"

local show = {}

local DEEPEST <const> = 8
local MOST_VALUES <const> = 500 -- of all of it
local LONGEST_STRING <const> = 4096 -- bytes

local render

-- Numbers, then all else as text.
local function before(a, b)
  if type(a) == "number" and type(b) == "number" then return a < b end
  if type(a) ~= type(b) then return type(a) < type(b) end
  return tostring(a) < tostring(b)
end

-- Those of the list, then the others in order.
local function keys_of(value)
  local keys, others, length = {}, {}, rawlen(value)
  for i = 1, length do keys[i] = i end
  for key in next, value do
    if math.type(key) ~= "integer" or key < 1 or key > length then others[#others + 1] = key end
  end
  table.sort(others, before)
  return table.move(others, 1, #others, length + 1, keys), length
end

local function entries_of(state, value, depth)
  local entries, keys, length = {}, keys_of(value)
  for i, key in ipairs(keys) do
    if state.left <= 0 then
      entries[i] = ("... %d more"):format(#keys - i + 1)
      break
    end
    state.left = state.left - 1
    entries[i] = render(state, rawget(value, key), depth + 1)
    if i > length then
      local is_name = type(key) == "string" and key:find("^[%a_][%w_]*$")
      local name = is_name and key or "[" .. render(state, key, depth + 1) .. "]"
      entries[i] = name .. " = " .. entries[i]
    end
  end
  return entries
end

-- On one line where it fits, else a line for each entry.
local function render_table(state, value, depth)
  if state.open[value] then return "<the same again>" end
  local open, close = "{", "}"
  if json.is_array(value) then open, close = "[", "]" end
  if next(value) == nil then return open .. close end
  if depth >= DEEPEST then return open .. "..." .. close end
  state.open[value] = true
  local entries = entries_of(state, value, depth)
  state.open[value] = nil
  local line = table.concat(entries, ", ")
  if not line:find("\n", 1, true) and #line + 4 <= state.columns - 2 * depth then
    return open == "[" and open .. line .. close or open .. " " .. line .. " " .. close
  end
  for i, entry in ipairs(entries) do entries[i] = "  " .. entry:gsub("\n", "\n  ") end
  return open .. "\n" .. table.concat(entries, ",\n") .. "\n" .. close
end

function render(state, value, depth)
  local kind, metatable = type(value), debug.getmetatable(value)
  if value == json.null then return "null" end
  if kind == "string" then return printable.quoted(value, LONGEST_STRING) end
  local is_shown_by_itself = metatable and rawget(metatable, "__tostring")
  if kind == "table" and not is_shown_by_itself then return render_table(state, value, depth) end
  if kind == "nil" or kind == "boolean" or kind == "number" then return tostring(value) end
  local ok, words = pcall(tostring, value)
  return ok and "<" .. printable.line(words) .. ">" or "<its __tostring fails>"
end

---Several values: on one line where they fit, else each on its own. A text of several lines is
---shown as it is.
---@param values table as table.pack makes it
---@param columns integer
---@return string one line or more, without the last newline
function show.values(values, columns)
  local texts = {}
  for i = 1, values.n do
    local value = values[i]
    if type(value) == "string" and value:find("\n[^\n]") then
      texts[i] = printable.replace(text.repair(value), "%s")
    else
      texts[i] = render({ columns = columns, left = MOST_VALUES, open = {} }, value, 0)
    end
  end
  local line = table.concat(texts, ", ")
  local fits = #line <= columns and not line:find("\n", 1, true)
  if fits or #texts == 1 then return line end
  return table.concat(texts, "\n")
end

return show
