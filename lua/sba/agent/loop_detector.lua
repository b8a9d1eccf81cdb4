-- SPDX-License-Identifier: Apache-2.0
-- Notices that a model goes in circles: the same call with the same result, replies that cannot
-- be read or say nothing. One warning, then the end. Until then the temperature rises: what
-- repeats itself is often the likeliest reply.

local excerpt = require "sba.util.excerpt"
local json = require "sba.util.json"
local lpeg = require "lpeg"

local loop_detector = {}
loop_detector.__index = loop_detector

-- What a call weighs: one that took a second may have waited for something. So the third quick
-- call is warned and the fourth is the end.
local QUICK <const>, SLOW <const> = 3, 1
local LONG_MS <const> = 1000
local WARN_AT <const>, END_AT <const> = 9, 12
local MOST_IN_A_ROW <const> = 3
-- Replies in a row that are answered and do not count.
local MOST_MISTAKES <const> = 5
local RECENT <const> = 24 -- calls; circles of up to six are found
local COMPARED <const> = 16 * 1024 -- bytes of an answer
-- By repetitions; 0.8 and 1 are the usual ones.
local TEMPERATURES <const> = { 1.0, 1.2, 1.4 }

-- What differs from run to run although nothing else does: times, durations, ids and line numbers.

local P, R, S = lpeg.P, lpeg.R, lpeg.S
local digit, letter, hex_letter = R "09", R("az", "AZ"), R("af", "AF")
local alphanumeric, hex = digit + letter, digit + hex_letter
local blank = S " \t\n\v\f\r"
local two = digit * digit

local clock = two * ":" * two * ":" * two * (S ".," * digit ^ 1) ^ -1
local year, three = two * two, letter * letter * letter
local date = year * "-" * two * "-" * two
local offset = S "+-" * two * P ":" ^ -1 * two
local zone = offset + letter ^ 1
local iso = date * S "T " * clock * (P "Z" + P " " ^ -1 * offset) ^ -1
local of_date = three * " " * three * blank ^ 1 * digit ^ 1 * " " * clock
  * (" " * S "AP" * "M") ^ -1 * (" " * zone) ^ -1 * " " * year
local of_date_R = three * ", " * digit ^ 1 * " " * three * " " * year * " " * clock * " " * zone
local time = iso + of_date + of_date_R
local decimal = digit ^ 1 * ("." * digit ^ 0) ^ -1
local in_units = blank ^ -1 * ("second" * P "s" ^ -1 + S "mun" ^ -1 * "s") * -alphanumeric

--- Other numbers and words are passed over whole.
local function replaced(pattern) return lpeg.Cs((pattern + digit ^ 1 + letter ^ 1 + 1) ^ 0) end

local without_times = replaced(time / "<time>" + decimal / "<duration>" * in_units)

local LEAST_HEX <const> = 7 -- digits of a short commit id
-- Digits of seconds since 1970, and of what counts faster.
local LEAST_DECIMAL <const> = 9
local group = "-" * hex ^ 4
local uuid = hex ^ 8 * group * group * group * group
local hexadecimal = #(hex_letter ^ 0 * digit) * #(digit ^ 0 * hex_letter) * hex ^ LEAST_HEX
local id = "0x" * hex ^ 1 + uuid + hexadecimal + digit ^ LEAST_DECIMAL
local word = -lpeg.B(alphanumeric) * ((time + date + clock) / "<time>" + id / "<id>") * -alphanumeric
local process = (P "pid" + "PID" + "process") * S " =:#" ^ -2 * digit ^ 1
local temporary = "/tmp/" * (1 - (blank + S "/\"':,;()")) ^ 1
-- An edit that is made again and again stands in other lines each time.
local line_number = (-lpeg.B(1) + lpeg.B "\n") * digit ^ 1 * #P "\t"
local without_ids = replaced(
  line_number / "<line>" + word + process / "<process>" + temporary / "<temporary>"
    + decimal * in_units / "<duration>")

---@param words string
---@return string words without times and durations
function loop_detector.without_times(words) return lpeg.match(without_times, words) end

-- Circles

function loop_detector.new()
  local self = { recent = {}, changes = 0, repeated = 0, unreadable = 0, silent = 0, mistakes = 0 }
  return setmetatable(self, loop_detector)
end

-- Few calls are made twice; only the answers of those are read.
local function seen(entry)
  entry.seen = entry.seen or lpeg.match(without_ids, entry.answer)
  return entry.seen
end

--- How often a call with this answer is among the recent ones, and the weight of those since the
--- last change.
local function count(self, entry)
  local known, weight = 0, 0
  for _, one in ipairs(self.recent) do
    if one.call == entry.call and seen(one) == seen(entry) then
      known = known + 1
      if one.changes == self.changes then weight = weight + one.weight end
    end
  end
  return known, weight
end

---@param name string
---@param arguments table
---@param answer string as the model sees it
---@param about { changed?: boolean, duration_ms?: integer } changed: the workspace, perhaps; then earlier
---calls may be made again
---@return "warn"|"end"|nil
function loop_detector:answered(name, arguments, answer, about)
  local is_slow = (about.duration_ms or 0) >= LONG_MS
  local entry = {
    call = name .. "\n" .. json.encode(arguments), answer = excerpt.of(answer, COMPARED),
    weight = is_slow and SLOW or QUICK,
  }
  local known, before = count(self, entry)
  -- A change that was made before is none: two that take turns are a circle.
  if about.changed and known == 0 then self.changes = self.changes + 1 end
  entry.changes = self.changes
  table.insert(self.recent, entry)
  if #self.recent > RECENT then table.remove(self.recent, 1) end
  self.repeated = before // QUICK
  local weight = before + entry.weight
  if weight >= END_AT then return "end" end
  if weight >= WARN_AT and before < WARN_AT then return "warn" end
end

---Counts a reply by its flaw, nil: it has none. Some replies in a row whose calls are all
---mistaken are only answered; then they count as unreadable.
---@param flaw "unreadable"|"silent"|"mistaken"|nil
---@return boolean is_over there were too many in a row
function loop_detector:replied(flaw)
  if not flaw then self.mistakes = 0 end
  if flaw == "mistaken" then
    self.mistakes = self.mistakes + 1
    if self.mistakes > MOST_MISTAKES then flaw = "unreadable" end
  end
  self.unreadable = flaw == "unreadable" and self.unreadable + 1 or 0
  self.silent = flaw == "silent" and self.silent + 1 or 0
  return math.max(self.unreadable, self.silent) >= MOST_IN_A_ROW
end

---@return number? nil: the usual one
function loop_detector:temperature()
  local times = math.max(self.repeated, self.unreadable, self.silent)
  return TEMPERATURES[math.min(times, #TEMPERATURES)]
end

return loop_detector
