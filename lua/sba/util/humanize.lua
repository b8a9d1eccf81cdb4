-- SPDX-License-Identifier: Apache-2.0
-- Values, names, schemas and steps in words, for messages.

local json = require "sba.util.json"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local text = require "native.text"

local humanize = {}

-- Bytes of a value or name in a message.
local SHOWN <const> = 60
-- Bytes of a name for which a near one is looked for.
local LONGEST_NAME <const> = 64

local function shortened(bytes) return printable.cut(redact(bytes), SHOWN) end

---@param value string
---@return string quoted and cut
function humanize.quoted(value) return (json.encode(shortened(value)):gsub("\x7F", "\\u007f")) end

local type_names <const> = {
  string = "a string", integer = "an integer", number = "a number", boolean = "true or false",
  array = "an array", object = "an object", null = "null",
}

---@param list string[]
---@param conjunction "and"|"or"
---@return string "a, b and c"
function humanize.list(list, conjunction)
  if #list < 2 then return list[1] or "nothing" end
  return table.concat(list, ", ", 1, #list - 1) .. " " .. conjunction .. " " .. list[#list]
end

---@param values any[]
---@return string '"a", "b" or 1'
function humanize.alternatives(values)
  local list = {}
  for i, value in ipairs(values) do list[i] = json.encode(value) end
  return humanize.list(list, "or")
end

---@param value any
---@return string "the number 1", "an array of 3"
function humanize.value(value)
  local kind = json.kind(value)
  if value == "" then return "an empty string" end
  if kind == "string" then return "the string " .. humanize.quoted(value) end
  if kind == "number" then return "the number " .. json.encode(value) end
  if kind == "long number" then
    return "the number " .. shortened(json.encode(value)) .. ", which has more digits than a double holds"
  end
  if kind ~= "array" then return kind == "object" and "an object" or json.encode(value) end
  return #value == 0 and "an empty array" or "an array of " .. #value
end

---@param wanted table a schema
---@return string "an integer from 1"
function humanize.schema(wanted)
  if wanted.const ~= nil then return json.encode(wanted.const) end
  local kind, enum = wanted.type, wanted.enum
  if enum then return (#enum > 1 and "one of " or "") .. humanize.alternatives(enum) end
  if type(kind) == "table" then
    local list = {}
    for i, name in ipairs(kind) do list[i] = type_names[name] end
    return humanize.list(list, "or")
  end
  if kind == "string" and wanted.minLength == 1 then return "a non-empty string" end
  if kind == "array" and (wanted.minItems or 0) > 0 then
    return wanted.minItems == 1 and "a non-empty array" or "an array of at least " .. wanted.minItems
  end
  local phrase, upper = type_names[kind] or "a value", " up to "
  if wanted.exclusiveMinimum then phrase = phrase .. " above " .. wanted.exclusiveMinimum end
  if wanted.minimum then phrase, upper = phrase .. " from " .. wanted.minimum, " to " end
  return wanted.maximum and phrase .. upper .. wanted.maximum or phrase
end

---@param count integer
---@param noun string in the singular
---@return string "1 file", "2 files"
function humanize.counted(count, noun)
  return ("%d %s%s"):format(count, noun, count == 1 and "" or "s")
end

local MINUTE <const>, HOUR <const> = 60000, 3600000 -- milliseconds

---@param ms integer
---@return string "< 1 ms", "12 ms", "3.4 s", "2 min 05 s", "1 h 02 min"
function humanize.duration(ms)
  if ms < 1 then return "< 1 ms" end
  if ms < 1000 then return ("%d ms"):format(ms) end
  if ms < MINUTE then return (("%.1f s"):format(ms / 1000):gsub("%.0", "")) end
  if ms < HOUR then return ("%d min %02d s"):format(ms // MINUTE, ms % MINUTE // 1000) end
  return ("%d h %02d min"):format(ms // HOUR, ms % HOUR // MINUTE)
end

---Not os.time, which takes a time for a local one.
---@param year integer|string this and the others may be digits
---@param month integer|string from 1
---@param day integer|string from 1
---@param hour integer|string
---@param minute integer|string
---@param second number|string
---@return integer milliseconds since 1970-01-01, in UTC
function humanize.utc(year, month, day, hour, minute, second)
  year, month = math.tointeger(year), math.tointeger(month)
  -- The year begins in March, so that a leap day is its last. From there five months have 153 days.
  -- The sum is 719469 for 1970-01-01.
  if month <= 2 then year, month = year - 1, month + 12 end
  local leap_days = year // 4 - year // 100 + year // 400
  local days = 365 * year + leap_days + (153 * (month - 3) + 2) // 5 + day - 719469
  return math.floor((days * 86400 + hour * 3600 + minute * 60 + second) * 1000 + 0.5)
end

---@param bytes integer
---@return string "12 bytes", "3.4 KiB"
function humanize.size(bytes)
  if bytes < 1024 then return humanize.counted(bytes, "byte") end
  local value, unit, units = bytes / 1024, 1, { "KiB", "MiB", "GiB", "TiB" }
  while value >= 1024 and unit < #units do
    value, unit = value / 1024, unit + 1
  end
  return ("%.1f %s"):format(value, units[unit])
end

-- How many letters must be changed, or change places with the next: "tmieout" is one from "timeout".
-- Texts whose lengths differ by more than the limit are not compared.
local function distance(a, b, limit)
  if math.abs(#a - #b) > limit then return limit + 1 end
  local row, above = {}, nil
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local two_above = above
    above, row = row, { [0] = i }
    for j = 1, #b do
      local cost = above[j - 1] + (a:byte(i) == b:byte(j) and 0 or 1)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        cost = math.min(cost, two_above[j - 2] + 1)
      end
      row[j] = math.min(cost, above[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

---@param name string
---@return string without its case, blanks, "_" and "-"
function humanize.plain(name) return (name:lower():gsub("[_%- ]", "")) end

-- timeout_seconds for timeout.
local function only_longer(name, names)
  local found
  for _, candidate in ipairs(names) do
    if type(candidate) == "string" and candidate:sub(1, #name + 1) == name .. "_" then
      if found then return nil end
      found = candidate
    end
  end
  return found
end

---@param name string not among names
---@param names any[] other than strings are ignored
---@return string? near the same but for case and underscores, at most two letters away, or the only
---one that begins with name and "_"
function humanize.near(name, names)
  if #name > LONGEST_NAME then return nil end
  local plain, best, best_distance = humanize.plain(name), nil, math.min(2, #name // 2) + 1
  for _, candidate in ipairs(names) do
    if type(candidate) == "string" then
      local is_same = humanize.plain(candidate) == plain
      local away = is_same and 0 or distance(name, candidate, 2)
      if away < best_distance then best, best_distance = candidate, away end
    end
  end
  return best or only_longer(name, names)
end

-- Steps

local outcomes <const> = {
  { "success", "succeeded" }, { "failure", "failed" }, { "timeout", "timed out" },
  { "interrupted", "interrupted" }, { "running", "running" }, { "skipped", "skipped" },
}

---@param counts table<string, integer> of steps, by status
---@param tolerated? integer how many of these failures are none of the job's
---@return string "7 steps: 5 succeeded, 2 failed; tolerated: 1"
function humanize.outcomes(counts, tolerated)
  local total, list = 0, {}
  for _, outcome in ipairs(outcomes) do
    local count = counts[outcome[1]] or 0
    if count > 0 then list[#list + 1] = ("%d %s"):format(count, outcome[2]) end
    total = total + count
  end
  local told = humanize.counted(total, "step")
  if total > 0 then told = told .. ": " .. table.concat(list, ", ") end
  if tolerated then told = ("%s; tolerated: %d"):format(told, tolerated) end
  return told
end

---@param arguments { argv?: string[], command?: string, args?: string[] } args may be too many for
---table.unpack
---@return string[] argv
function humanize.command(arguments)
  local args = arguments.args or {}
  return arguments.argv or table.move(args, 1, #args, 2, { arguments.command })
end

local LONGEST <const> = 200 -- characters
local MOST_FILES <const> = 3 -- of a diff that are named
-- Bytes of a diff, and of a line of it, that are looked at.
local MOST_DIFF <const>, LONGEST_LINE <const> = 256 * 1024, 4096

-- A first word with "=" would be a variable.
local function shell_word(word, is_first)
  local is_plain = word:find "^[%w%-_./:=@,+%%]+$" and not (is_first and word:find("=", 1, true))
  return is_plain and word or "'" .. word:gsub("'", [['\'']]) .. "'"
end

local function joined(command)
  local list = {}
  for i, word in ipairs(command) do list[i] = shell_word(tostring(word), i == 1) end
  return table.concat(list, " ")
end

---@param settings { job: string, result: string, workspace: string } paths
---@return string a command line for a shell that goes on with that job
function humanize.resume(settings)
  return joined {
    "cynode-sba", "--resume", "--job", settings.job, "--result", settings.result,
    "--workspace", settings.workspace,
  }
end

-- "src/a.c, src/b.c and 3 more", by the beginning of the diff.
local function files_of(diff)
  local names, seen, lines = {}, {}, "\n" .. text.cut(diff, MOST_DIFF)
  local mark = lines:find("\n*** Begin", 1, true) and "\n*** " or "\n+++ "
  local at = lines:find(mark, 1, true)
  -- By plain searches, which are fast; a pattern would be tried at each byte.
  while at do
    local path = lines:match("^[^\t\r\n]*", at + #mark)
    local above = path == "/dev/null" and lines:sub(math.max(1, at - LONGEST_LINE), at)
    local old = above and above:match ".*\n%-%-%- ([^\t\r\n]+)" -- bounded: LONGEST_LINE
    if mark == "\n*** " then
      path = path:match "^%u%l+ File: (.+)$"
    else
      path = (old or path):gsub("^[ab]/", "")
    end
    if path and not seen[path] then names[#names + 1], seen[path] = path, true end
    at = lines:find(mark, at + 1, true)
  end
  local more = #names - MOST_FILES
  local list = table.concat(names, ", ", 1, math.min(#names, MOST_FILES))
  return more > 0 and ("%s and %d more"):format(list, more) or list
end

---@param what string
---@return string without secrets, cut to so much as the log and a list have of a step
function humanize.brief(what)
  what = redact(what)
  if not utf8.offset(what, LONGEST + 2) then return what end
  return what:sub(1, utf8.offset(what, LONGEST) - 1) .. "…"
end

---@param step { arguments: table }
---@param is_whole? boolean not cut
---@return string its command line, pattern, path, ...
function humanize.step(step, is_whole)
  local arguments = step.arguments
  local what = arguments.shell
  if not what and (arguments.argv or arguments.command) then
    what = joined(humanize.command(arguments))
  end
  what = what or arguments.pattern or arguments.path or arguments.tool or arguments.prompt
  if not what then what = arguments.diff and files_of(arguments.diff) or "" end
  return is_whole and redact(what) or humanize.brief(what)
end

return humanize
