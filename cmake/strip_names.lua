-- SPDX-License-Identifier: Apache-2.0
-- Bytecode of Lua 5.4 without the names of local variables and upvalues: they make a quarter of it, each costs a start
-- the making of a string, and only the debug library reads them. Lines and chunk names stay, unlike with
-- string.dump(chunk, true), so that a traceback still says where.

local HEADER <const> = 4 + 1 + 1 + 6 + 3 + 8 + 8 -- signature, version, format, data, sizes, an integer, a number
local INSTRUCTION <const>, UPVALUE <const> = 4, 3 -- bytes
local NONE <const> = "\x80" -- a list of nothing
local EIGHT_BYTES <const> = { [0x03] = true, [0x13] = true } -- tags of constants: integer, float
local STRING <const> = { [0x04] = true, [0x14] = true } -- short, long

---@param bytecode string as string.dump(chunk) gives it
---@return string
return function(bytecode)
  local at, kept_from, kept = HEADER + 2, 1, {} -- a byte after the header: the count of upvalues

  local function number() -- seven bits a byte, the highest first; the last byte has its top bit set
    local value = 0
    repeat
      local byte = bytecode:byte(at)
      value, at = value << 7 | byte & 0x7f, at + 1
    until byte & 0x80 ~= 0
    return value
  end

  local function skip(size) at = at + size end

  local function skip_string()
    local size = number() -- one more than it has bytes; 0: there is none
    if size > 0 then skip(size - 1) end
  end

  local function skip_each(one)
    for _ = 1, number() do one() end
  end

  local function skip_constant()
    local tag = bytecode:byte(at)
    skip(1)
    if EIGHT_BYTES[tag] then skip(8) elseif STRING[tag] then skip_string() end
  end

  local function drop(one)
    kept[#kept + 1] = bytecode:sub(kept_from, at - 1)
    skip_each(one)
    kept[#kept + 1] = NONE
    kept_from = at
  end

  local function walk()
    skip_string() -- chunk name
    number() number() -- first and last line
    skip(3) -- parameters, whether varargs, registers
    skip(number() * INSTRUCTION)
    skip_each(skip_constant)
    skip(number() * UPVALUE)
    skip_each(walk)
    skip(number()) -- lines, one byte an instruction
    skip_each(function() number() number() end) -- lines at some instructions
    drop(function() skip_string() number() number() end) -- local variables
    drop(skip_string) -- names of upvalues
  end

  walk()
  assert(at == #bytecode + 1, "this is not the bytecode of Lua 5.4")
  kept[#kept + 1] = bytecode:sub(kept_from)
  return table.concat(kept)
end
