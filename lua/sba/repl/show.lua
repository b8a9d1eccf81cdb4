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

local function is_name(key)
  return type(key) == "string" and key:find("^[%a_][%w_]*$") ~= nil
end

local function before(a, b)
  if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
  return type(a) .. tostring(a) < type(b) .. tostring(b)
end

--- The keys that are not of the list, in order.
local function other_keys(value, length)
  local keys = {}
  for key in next, value do
    if math.type(key) ~= "integer" or key < 1 or key > length then keys[#keys + 1] = key end
  end
  table.sort(keys, before)
  return keys
end

local function entries_of(state, value, depth)
  local length, entries = rawlen(value), {}
  local function add(text, item)
    state.left = state.left - 1
    entries[#entries + 1] = text .. render(state, item, depth + 1)
  end
  local function full() return #entries >= MOST_ENTRIES or state.left <= 0 end
  for i = 1, length do
    if full() then break end
    add("", rawget(value, i))
  end
  local keys = other_keys(value, length)
  for _, key in ipairs(keys) do
    if full() then break end
    add((is_name(key) and key or "[" .. render(state, key, depth + 1) .. "]") .. " = ", rawget(value, key))
  end
  local more = length + #keys - #entries
  if more > 0 then entries[#entries + 1] = ("... %d more"):format(more) end
  return entries
end

--- The entries on one line where they fit, else each on its own.
local function laid_out(state, entries, depth, open, close)
  if #entries == 0 then return open .. close end
  local line = table.concat(entries, ", ")
  local room = state.columns - 2 * depth
  if not line:find("\n", 1, true) and printable.width(line) + 4 <= room then
    return open == "[" and open .. line .. close or open .. " " .. line .. " " .. close
  end
  for i, entry in ipairs(entries) do entries[i] = "  " .. entry:gsub("\n", "\n  ") end
  return open .. "\n" .. table.concat(entries, ",\n") .. "\n" .. close
end

--- The words of a value that has its own, or nil.
local function own_words(value)
  local metatable = debug.getmetatable(value)
  if type(metatable) ~= "table" or not rawget(metatable, "__tostring") then return nil end
  local ok, words = pcall(tostring, value)
  return "<" .. (ok and printable.line(words) or "its __tostring fails") .. ">"
end

local function render_table(state, value, depth)
  local words = own_words(value)
  if words then return words end
  if state.open[value] then return "<the same again>" end
  local open, close = "{", "}"
  if json.is_array(value) then open, close = "[", "]" end
  if depth >= DEEPEST and next(value) ~= nil then return open .. "..." .. close end
  state.open[value] = true
  local entries = entries_of(state, value, depth)
  state.open[value] = nil
  return laid_out(state, entries, depth, open, close)
end

local function render_function(value)
  local info = debug.getinfo(value, "S")
  if info.what == "C" then return "<function in C>" end
  return ("<function %s:%d>"):format(printable.line(info.short_src), info.linedefined)
end

local function render_userdata(value)
  local metatable = debug.getmetatable(value)
  local name = type(metatable) == "table" and rawget(metatable, "__name")
  return value == json.null and "null" or own_words(value) or ("<%s>"):format(printable.line(tostring(name or "userdata")))
end

local renderers = {
  table = render_table,
  string = function(_, value) return printable.quoted(value, LONGEST_STRING) end,
  ["function"] = function(_, value) return render_function(value) end,
  userdata = function(_, value) return render_userdata(value) end,
  thread = function(_, value) return ("<coroutine, %s>"):format(coroutine.status(value)) end,
}

function render(state, value, depth)
  local renderer = renderers[type(value)]
  return renderer and renderer(state, value, depth) or tostring(value)
end

---@param value any
---@param columns? integer default 80
---@return string one line or more, without the last newline
function show.value(value, columns)
  return render({ columns = columns or 80, left = MOST_VALUES, open = {} }, value, 0)
end

---Several values: on one line where they fit, else each on its own.
---@param values table as table.pack makes it
---@param columns? integer
---@return string
function show.values(values, columns)
  local texts = {}
  for i = 1, values.n do texts[i] = show.value(values[i], columns) end
  local line = table.concat(texts, ", ")
  if #texts == 1 or (#line <= (columns or 80) and not line:find("\n", 1, true)) then return line end
  return table.concat(texts, "\n")
end

return show
