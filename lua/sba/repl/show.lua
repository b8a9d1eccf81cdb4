-- SPDX-License-Identifier: Apache-2.0
-- Values as a person reads them: nested, in the order of their keys, within bounds, and harmless to a terminal.
--
-- Tables marked as JSON arrays stand in brackets, others in braces; JSON's null is null. Nothing of a value is run but __tostring.

local json = require "sba.util.json"
local printable = require "sba.util.printable"

local show = {}

local DEEPEST <const> = 8
local MOST_ENTRIES <const> = 200 -- of one table
local MOST_VALUES <const> = 2000 -- of all of it
local LONGEST_STRING <const> = 4096 -- bytes

local render

local function before(a, b)
  if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
  return type(a) .. tostring(a) < type(b) .. tostring(b)
end

--- The keys of a table: those of its list, then the others in order.
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
    if i > MOST_ENTRIES or state.left <= 0 then
      entries[i] = ("... %d more"):format(#keys - i + 1)
      break
    end
    state.left = state.left - 1
    local is_name = type(key) == "string" and key:find("^[%a_][%w_]*$")
    local name = i > length and (is_name and key or "[" .. render(state, key, depth + 1) .. "]") .. " = " or ""
    entries[i] = name .. render(state, rawget(value, key), depth + 1)
  end
  return entries
end

--- The entries on one line where they fit, else each on its own.
local function laid_out(state, entries, depth, open, close)
  local line = table.concat(entries, ", ")
  if line == "" then return open .. close end
  if not line:find("\n", 1, true) and #line + 4 <= state.columns - 2 * depth then
    return open == "[" and open .. line .. close or open .. " " .. line .. " " .. close
  end
  for i, entry in ipairs(entries) do entries[i] = "  " .. entry:gsub("\n", "\n  ") end
  return open .. "\n" .. table.concat(entries, ",\n") .. "\n" .. close
end

--- The words of a value that has its own, or nil.
local function own_words(value)
  local metatable = debug.getmetatable(value)
  if type(metatable) ~= "table" then return nil end
  local ok, words = true, type(value) == "userdata" and rawget(metatable, "__name")
  if rawget(metatable, "__tostring") then ok, words = pcall(tostring, value) end
  if not ok then return "<its __tostring fails>" end
  return type(words) == "string" and "<" .. printable.line(words) .. ">" or nil
end

local renderers = {}

function renderers.table(state, value, depth)
  if state.open[value] then return "<the same again>" end
  local open, close = "{", "}"
  if json.is_array(value) then open, close = "[", "]" end
  if depth >= DEEPEST and next(value) ~= nil then return open .. "..." .. close end
  state.open[value] = true
  local entries = entries_of(state, value, depth)
  state.open[value] = nil
  return laid_out(state, entries, depth, open, close)
end

function renderers.string(_, value) return printable.quoted(value, LONGEST_STRING) end

renderers["function"] = function(_, value)
  local info = debug.getinfo(value, "S")
  if info.what == "C" then return "<function in C>" end
  return ("<function %s:%d>"):format(printable.line(info.short_src), info.linedefined)
end

function renderers.thread(_, value) return ("<coroutine, %s>"):format(coroutine.status(value)) end

function render(state, value, depth)
  if value == json.null then return "null" end
  local kind = type(value)
  local words = (kind == "table" or kind == "userdata") and own_words(value)
  if words then return words end
  return renderers[kind] and renderers[kind](state, value, depth) or tostring(value)
end

---Several values: on one line where they fit, else each on its own.
---@param values table as table.pack makes it
---@param columns integer
---@return string one line or more, without the last newline
function show.values(values, columns)
  local texts = {}
  for i = 1, values.n do texts[i] = render({ columns = columns, left = MOST_VALUES, open = {} }, values[i], 0) end
  local line = table.concat(texts, ", ")
  return (#texts == 1 or #line <= columns and not line:find("\n", 1, true)) and line or table.concat(texts, "\n")
end

return show
