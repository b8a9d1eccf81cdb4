-- SPDX-License-Identifier: Apache-2.0
-- Colours in foreign text. Of its control sequences only SGR is understood (ECMA-48: "ESC [ 1 ; 31 m"), and of SGR what cannot
-- hide text: colours, bold, dim, italic, underlined, reversed. The other sequences stay text.

local lpeg = require "lpeg"

local sgr = {}

---@alias sgr.style table<string, string> "foreground", "background", "bold", ... -> its parameters: "31", "38;5;208"

sgr.plain = {} ---@type sgr.style

local MOST_PARAMETERS <const> = 32

local number <const> = lpeg.C(lpeg.R "09" ^ 0)
local parameters <const> = lpeg.Ct(number * (lpeg.S ";:" * number) ^ -(MOST_PARAMETERS - 1))
local start <const> = lpeg.P "\27["
-- Programs that colour their lines erase the rest of each: there is nothing to erase.
local erase <const> = start * lpeg.P "0" ^ -1 * "K"
local sequence <const> = start * parameters * "m"
local runs <const> = lpeg.Ct((sequence + erase + lpeg.C((1 - sequence - erase) ^ 1)) ^ 0)

local attributes <const> = { ["1"] = "bold", ["2"] = "dim", ["3"] = "italic", ["4"] = "underlined", ["7"] = "reversed" }
local ends <const> = {
  ["22"] = { "bold", "dim" }, ["23"] = { "italic" }, ["24"] = { "underlined" }, ["27"] = { "reversed" },
  ["39"] = { "foreground" }, ["49"] = { "background" },
}
local components <const> = { ["5"] = 1, ["2"] = 3 } -- after "38" or "48": of the palette, or red, green and blue

--- The colour of the 256, or of red, green and blue, that begins at list[i]; and the index of its last parameter.
local function long_colour(list, i)
  local count = components[list[i + 1] or ""]
  if not count then return nil, #list end -- what follows cannot be told
  local parts = { list[i], list[i + 1] }
  for k = i + 2, i + 1 + count do
    local value = math.tointeger(tonumber(list[k] or "")) or 0
    if value > 255 then return nil, i + 1 + count end
    parts[#parts + 1] = tostring(value)
  end
  return table.concat(parts, ";"), i + 1 + count
end

local function ground_of(code)
  local value = math.tointeger(tonumber(code)) or 0
  if value % 10 > 7 then return nil end
  local tens = value // 10
  return (tens == 3 or tens == 9) and "foreground" or (tens == 4 or tens == 10) and "background" or nil
end

local function apply(style, list)
  local new, i = {}, 1
  for name, value in pairs(style) do new[name] = value end
  while i <= #list do
    local code = list[i]
    if code == "" or code == "0" then
      new = {}
    elseif code == "38" or code == "48" then
      local colour
      colour, i = long_colour(list, i)
      if colour then new[code == "38" and "foreground" or "background"] = colour end
    elseif attributes[code] then
      new[attributes[code]] = code
    elseif ends[code] then
      for _, name in ipairs(ends[code]) do new[name] = nil end
    else
      local ground = ground_of(code)
      if ground then new[ground] = code end
    end
    i = i + 1
  end
  return new
end

---Splits a text where its style changes.
---@param text string
---@param style sgr.style at its beginning
---@return { text: string, style: sgr.style }[] runs
---@return sgr.style style at its end
function sgr.runs(text, style)
  local list = {}
  for _, part in ipairs(lpeg.match(runs, text)) do
    if type(part) == "table" then
      style = apply(style, part)
    else
      list[#list + 1] = { text = part, style = style }
    end
  end
  return list, style
end

local LEVELS <const> = { [0] = 0, 95, 135, 175, 215, 255 } -- of each component in the cube of the 256

--- The colour of the 16 that is nearest in hue.
local function nearest(red, green, blue)
  local most, least = math.max(red, green, blue), math.min(red, green, blue)
  local bright = most > 190 and 8 or 0
  if most < 64 then return 0 end
  if most - least < 40 then return most > 170 and 15 or most > 100 and 7 or 8 end
  local half = (most + least) / 2
  return (red > half and 1 or 0) + (green > half and 2 or 0) + (blue > half and 4 or 0) + bright
end

---The place of a colour among the 16 that every terminal has, 0 (black) to 15 (bright white), or the nearest one's.
---@param colour string a style's foreground or background
---@return integer
function sgr.sixteen(colour)
  local kind, values = colour:match("^[34]8;([25]);([%d;]*)$")
  if kind == "2" then
    local red, green, blue = values:match("^(%d+);(%d+);(%d+)$")
    return nearest(tonumber(red), tonumber(green), tonumber(blue))
  end
  local value = math.tointeger(tonumber(values or colour))
  if not kind then return value >= 90 and value % 10 + 8 or value % 10 end
  if value < 16 then return value end
  if value >= 232 then
    local grey = (value - 232) * 10 + 8
    return nearest(grey, grey, grey)
  end
  local cube = value - 16
  return nearest(LEVELS[cube // 36], LEVELS[cube // 6 % 6], LEVELS[cube % 6])
end

return sgr
