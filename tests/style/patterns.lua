-- SPDX-License-Identifier: Apache-2.0
-- lua5.4 patterns.lua [ROOT]: refuses Lua patterns in ROOT/lua/sba that can take more than linear time. string.find and
-- its kin never look at the deadline, so a pattern that backtracks over a long text holds the whole job.
--
-- A pattern is linear if each of its unbounded repetitions (*, +, - and %b) either ends the pattern, so that nothing
-- after it can fail, or has one way to match: the text is tried from one place (the pattern is anchored, or begins with
-- a character that the repetitions do not match), and what follows begins with a character that it does not match.
-- One repetition may have several ways if what follows it is of bounded length.
--
-- A line that ends with "-- bounded: REASON" is not judged: its text is short, or the pattern is judged elsewhere.
package.path = arg[0]:gsub("[^/]*$", "?.lua")
local files_below = require "files_below"
local lpeg = require "lpeg"

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Ct, Cg = lpeg.C, lpeg.Ct, lpeg.Cg
local Cc, Cp = lpeg.Cc, lpeg.Cp
local root = arg[1] or arg[0]:match("^(.*)/tests/style/") or "."

-- The items of a pattern.

local set = "[" * P "^" ^ -1 * P(1) * ("%" * P(1) + (1 - P "]")) ^ 0 * "]"
local class = C("%" * P(1) + set + 1)
local item = Ct(Cg(P "%b" * 2 / "%0", "balanced")
  + P "%f" * Cg(set / "%0", "class") * Cg(Cc "", "count")
  + Cg(class, "class") * Cg(C(S "*+-?" ^ -1), "count"))
local begins, ends = Cg(P "^" * Cc(true), "anchored"), P "$" * -1 * Cg(Cc(true), "ends")
local items_of = Ct(begins ^ -1 * (S "()" + ends + item) ^ 0 * -1)

local function is_unbounded(one) return one.balanced or one.count:find("^[*+-]$") ~= nil end

--- Whether some byte fits both classes.
local function overlap(a, b)
  for byte = 0, 255 do
    local character = string.char(byte)
    if character:find("^" .. a .. "$") and character:find("^" .. b .. "$") then return true end
  end
  return false
end

local function is_optional(one) return not one.balanced and one.count ~= "" and one.count ~= "+" end

--- Whether the items from the one of that number on can fail to match.
local function can_fail(items, from)
  local last = items[#items]
  if items.ends and not (last.class == "." and (last.count == "*" or last.count == "+")) then return true end
  for i = from, #items do
    if not is_optional(items[i]) then return true end
  end
  return false
end

--- Whether what follows an item can begin with a character that the item matches.
local function has_several_ways(items, number)
  local one = items[number]
  if one.balanced then return false end
  for i = number + 1, #items do
    if items[i].balanced or overlap(one.class, items[i].class) then return true end
    if not is_optional(items[i]) then return false end
  end
  return false
end

--- Whether tries from different places cannot go over the same text.
local function tries_once(items)
  if items.anchored then return true end
  local first = items[1]
  if not first or first.balanced or first.count ~= "" or first.class:find("^[%[.]") then return false end
  for _, one in ipairs(items) do
    if is_unbounded(one) and (one.balanced or overlap(one.class, first.class)) then return false end
  end
  return true
end

---@return string? reason why a pattern is not known to be linear
local function mistake(pattern)
  local items = lpeg.match(items_of, pattern)
  if not items then return "cannot be read" end
  local several
  for i, one in ipairs(items) do
    if one.class and one.class:find("^%%%d") then return "holds a back reference" end
    if one.balanced or is_unbounded(one) and can_fail(items, i + 1) then
      if not tries_once(items) then return "is tried at every place, and goes over the same text again" end
      if several then return "can match in many ways" end
      several = has_several_ways(items, i)
    end
  end
end

-- The calls in a source. A pattern is a literal, or a local constant of the file, or utf8.charpattern.

local space, letter = S " \t\r\n" ^ 0, R("az", "AZ", "09") + "_"
local quoted = P '"' * ("\\" * P(1) + (1 - S '"\n')) ^ 0 * '"' + P "'" * ("\\" * P(1) + (1 - S "'\n")) ^ 0 * "'"
local long = lpeg.Cmt("[" * C(P "=" ^ 0) * "[", function(source, at, level)
  local _, last = source:find("]" .. level .. "]", at, true)
  return last and last + 1
end) / 0
local comment = "--" * (long + (1 - P "\n") ^ 0)
local name = (R("az", "AZ") + "_") * (letter + ".") ^ 0
local verb = P "find" + "match" + "gmatch" + "gsub"
local method = ":" * C(verb) * -letter * space * P "(" ^ -1 * space
local library = "string." * C(verb) * space * "(" * space * (name + quoted) * space * "," * space
local argument = C(quoted) * #(space * (S "),;\n" + -P(1) + ":" + letter)) + C(name) * #(space * S ",)") + Cc "?"
local call = Ct((library + method) * Cp() * argument)
local declared = "local" * S " " ^ 1 * Cg(name, "name") * (space * "<const>") ^ -1
local constant = Ct(declared * space * "=" * space * Cg(quoted, "value") * -(space * ".."))
local tokens = Ct((comment + call + constant + quoted + long + name + 1) ^ 0)

local function value_of(literal) return load("return " .. literal)() end

--- The pattern of a call; nil where only the running program knows it.
local function pattern_of(word, constants)
  if word:find("^[\"']") then return value_of(word) end
  return word == "utf8.charpattern" and utf8.charpattern or constants[word]
end

local failures = 0

local function judge(path, source)
  local constants, line, counted = {}, 1, 1
  for _, token in ipairs(lpeg.match(tokens, source)) do
    if token.name then
      constants[token.name] = value_of(token.value)
    else
      local verb_used, at, word = table.unpack(token)
      line, counted = line + select(2, source:sub(counted, at - 1):gsub("\n", "")), at
      local rest = source:match("^[^\n]*", at)
      local plain = verb_used == "find" and rest:find("^[^\n]-, true%)")
      local pattern = pattern_of(word, constants)
      local reason = not pattern and "is known only when the program runs" or mistake(pattern)
      if reason and not plain and not rest:find("%-%- bounded: %S") then
        failures = failures + 1
        print(("%s:%d: the pattern %s %s"):format(path, line, word, reason))
      end
    end
  end
end

for _, path in ipairs(files_below(root .. "/lua/sba", "*.lua")) do
  local handle <close> = assert(io.open(root .. "/lua/sba/" .. path))
  judge("lua/sba/" .. path, handle:read("a"))
end
os.exit(failures == 0)
