-- SPDX-License-Identifier: Apache-2.0
-- JSON, strictly as RFC 8259 has it: whatever the runner reads or writes as JSON goes through here.
--
-- Values: objects are tables with string keys, arrays carry the array mark, null is json.null. A number without fraction and
-- exponent is an integer, or a float where it is beyond 64 bits. Objects and arrays keep apart even when empty.

local lpeg = require "lpeg"
local native = require "native.json"
local text = require "native.text"

local json = { null = native.null, encode = native.encode }

local MAX_VALUES = 8 * 1024 * 1024 -- about 700 MB of memory; and LPeg grows its captures one by one from some 13 million on
local LIMITS = { size = 64 * 1024 * 1024, depth = 64 }

---Marks a table as an array.
---@generic T: table
---@param list T
---@return T
function json.array(list)
  return setmetatable(list, native.array_metatable)
end

---Whether a decoded value is an array.
---@param value any
---@return boolean
function json.is_array(value)
  return type(value) == "table" and getmetatable(value) == native.array_metatable
end

---The JSON type of a decoded value.
---@param value any
---@return "null"|"boolean"|"number"|"string"|"array"|"object"
function json.kind(value)
  if value == json.null then return "null" end
  if type(value) == "table" then return json.is_array(value) and "array" or "object" end
  return type(value)
end

-- What stops a decode is raised as a table of this mark and caught by json.decode.
local stop_mark = {}

-- The decode that is going on.
local subject, depth, max_depth = "", 0, 0

local function stop(fields)
  error(setmetatable(fields, stop_mark), 0)
end

local function open(_, position)
  depth = depth + 1
  if depth > max_depth then
    stop { offset = position - 2, code = "too_deep", message = ("nested deeper than %d levels"):format(max_depth) }
  end
  return true
end

local function close()
  depth = depth - 1
  return true
end

local function add_member(object, position, name, value)
  if object[name] ~= nil then
    stop { offset = position - 1, message = ("the member name %s is there twice"):format(native.encode(name)) }
  end
  object[name] = value
  return object
end

local function number(position, digits)
  local value = tonumber(digits)
  if value == math.huge or value == -math.huge then
    stop { offset = position - 1, message = "the number " .. digits:sub(1, 40) .. " is too large" }
  end
  return value
end

local function unescape(from, to)
  local value, bad = native.unescape(subject, from, to - 1)
  if bad then stop { offset = bad, message = "\\u wants four hex digits, and surrogates only in pairs" } end
  return value
end

local constants = { ["true"] = true, ["false"] = false, null = json.null }

-- The grammar. It checks everything but UTF-8 (checked before) and what follows \u (checked by unescape), and builds the
-- value on the way. The text is LL(1), so what does not match after its first character is an error at that place. Few
-- patterns: each one costs every start of the runner a microsecond.
local function build_grammar()
  local P, R, S, V, C, Cp, Ct = lpeg.P, lpeg.R, lpeg.S, lpeg.V, lpeg.C, lpeg.Cp, lpeg.Ct

  local function or_refuse(pattern, what)
    return pattern + P(function(_, position) stop { offset = position - 1, expected = what } end)
  end

  local space, digits, value = S " \t\r\n" ^ 0, R "09" ^ 1, V "value"
  local plain = R(" !", "#[", "]\255") ^ 0
  local escaped = Cp() * (plain * "\\" * S '"\\/bfnrtu') ^ 0 * plain * Cp() / unescape
  local real = P "-" ^ -1 * ("0" + R "19" * R "09" ^ 0) * ("." * digits) ^ -1 * (S "eE" * S "+-" ^ -1 * digits) ^ -1
  local comma = "," * space
  local member = lpeg.Cg(Cp() * or_refuse(V "string", "a member name in double quotes") * space * or_refuse(":", "':'") * space * value)
  local members = lpeg.Cf(Ct(true) * member * (comma * member) ^ 0, add_member) * or_refuse("}", "',' or '}'")
  local elements = Ct(value * (comma * value) ^ 0) * or_refuse("]", "',' or ']'")
  return P {
    space * value * or_refuse(-P(1), "the end of the text"),
    value = or_refuse(V "string" + Cp() * C(real) / number + (P "true" + "false" + "null") / constants
      + "{" * P(open) * space * (Ct "}" + members) * P(close)
      + "[" * P(open) * space * ((Ct "]" + elements) / json.array) * P(close), "a value") * space,
    string = '"' * (C(plain) * '"' + escaped * or_refuse('"', 'a character, an escape or the closing "')),
  }
end

local grammar

-- What stands at a place, for people.
local function found(bytes, offset)
  local at = offset + 1
  if at > #bytes then return "the end of the text" end
  local word = bytes:match("^[%w_.+-]+", at)
  if word then return "'" .. text.cut(word, 20) .. "'" end
  local byte = bytes:byte(at)
  if byte < 0x20 or byte == 0x7F then return ("the control character U+%04X"):format(byte) end
  return "'" .. bytes:match("^" .. utf8.charpattern, at) .. "'"
end

-- Line and column (in characters) of a place, from 1.
local function place(bytes, offset)
  local line, line_start, from = 1, 1, 1
  while true do
    local newline = bytes:find("\n", from, true)
    if not newline or newline > offset then break end
    line, line_start, from = line + 1, newline + 1, newline + 1
  end
  return line, 1 + (utf8.len(bytes, line_start, offset) or offset - line_start + 1)
end

local function failure_at(bytes, stopped)
  local line, column = place(bytes, stopped.offset)
  local message = stopped.message or ("expected %s, found %s"):format(stopped.expected, found(bytes, stopped.offset))
  return {
    code = stopped.code or "invalid_json",
    message = ("line %d, column %d: %s"):format(line, column, message),
    line = line, column = column, offset = stopped.offset,
  }
end

-- What is wrong with a text before its grammar is asked, or nil.
local function refuse_bytes(bytes, max_size)
  if #bytes > max_size then
    return { code = "too_large", offset = max_size, message = ("larger than %d bytes"):format(max_size) }
  end
  if #bytes > MAX_VALUES and native.count(bytes) > MAX_VALUES then
    return { code = "too_large", offset = 0, message = ("holds more than %d values"):format(MAX_VALUES) }
  end
  if bytes:find("^\xEF\xBB\xBF") then return { offset = 0, message = "begins with a byte order mark; remove it" } end
  if not text.is_utf8(bytes) then
    local _, bad = utf8.len(bytes)
    return { offset = bad - 1, message = ("the byte 0x%02X is not UTF-8"):format(bytes:byte(bad)) }
  end
end

---Reads a JSON text of at most 8 million values. A failure's code is invalid_json, too_deep or too_large; its message names
---line and column (in characters, from 1), what was expected and what is there; offset is in bytes, from 0.
---@param bytes string
---@param limits? { size?: integer, depth?: integer } bytes, levels; default 64 MiB, 64
---@return any value, { code: string, message: string, line: integer, column: integer, offset: integer }? failure value is nil then
function json.decode(bytes, limits)
  limits = limits or LIMITS
  local refused = refuse_bytes(bytes, limits.size or LIMITS.size)
  if refused then return nil, failure_at(bytes, refused) end
  grammar = grammar or build_grammar()
  subject, depth, max_depth = bytes, 0, limits.depth or LIMITS.depth
  local ok, value = pcall(lpeg.match, grammar, bytes)
  subject = ""
  if ok then return value end
  if getmetatable(value) ~= stop_mark then error(value, 0) end
  return nil, failure_at(bytes, value)
end

---Spreads compact JSON over lines, two spaces a level; arrays of plain values stay on one line.
---@param compact string as json.encode writes it
---@return string
function json.indent(compact)
  local P, R, S = lpeg.P, lpeg.R, lpeg.S
  local level = 0
  local function line()
    return "\n" .. ("  "):rep(level)
  end
  local function begin(bracket)
    level = level + 1
    return bracket .. line()
  end
  local function finish(bracket)
    level = level - 1
    return line() .. bracket
  end
  local string = '"' * ("\\" * P(1) + (1 - S '\\"')) ^ 0 * '"'
  local plain = string + (R("09", "az", "AZ") + S "+-.") ^ 1
  local flat = "[" * (plain * (P "," / ", " * plain) ^ 0) ^ -1 * "]"
  local token = plain + flat + "{}" + S "{[" / begin + S "}]" / finish + P "," / function() return "," .. line() end + P ":" / ": "
  return lpeg.Cs(token ^ 0):match(compact)
end

return json
