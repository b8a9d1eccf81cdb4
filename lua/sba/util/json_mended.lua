-- SPDX-License-Identifier: Apache-2.0
-- JSON as models write it: where it is not JSON but has one meaning, it is mended. The values of
-- Python and JavaScript, line ends in strings, commas and braces too many, a fence around it. A
-- text that holds anything else is refused.

local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local lpeg = require "lpeg"

local json_mended = {}

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Cmt, Cs = lpeg.C, lpeg.Cmt, lpeg.Cs
local Carg, Cp = lpeg.Carg, lpeg.Cp

local blank <const> = S " \t\n\v\f\r" ^ 0
local hex <const> = R("09", "af", "AF")
local letter <const> = R("az", "AZ") + S "_$"

-- Strings become JSON's. After its opening quote none can fail: it goes on to its end, or the
-- text's. So nothing is read twice.

local raw <const> = S "\n\r\t" / { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local escaped <const> = P "\\" * S '"\\/bfnrt' + "\\u" * hex * hex * hex * hex
local quote <const> = P "\\'" / "'"
-- A backslash that begins no escape is meant as one: "\d+", "C:\data". Before a line end it may
-- also join two lines, and stays a mistake.
local lone <const> = P "\\" / "\\\\" * #(P(1) - S "\n\r")
local part <const> = escaped + quote + lone + raw
local double <const> = '"' * (part + (1 - S '"\\')) ^ 0 * P '"' ^ -1
local single_mark <const> = P "'" / '"'
local single <const> = single_mark * (part + P '"' / '\\"' + (1 - S "'\\")) ^ 0 * single_mark ^ -1

local WORDS <const> = {
  True = "true", False = "false", None = "null", undefined = "null", NaN = "null",
}
local function mended_word(name, after)
  if after:sub(-1) == ":" then return '"' .. name .. '"' .. after end
  return (WORDS[name] or name) .. after
end
local word <const> = C(letter * (letter + R "09") ^ 0) * C(blank * P ":" ^ -1) / mended_word
local number <const> = (R "09" + S "+-.") * (R("09", "az", "AZ") + S "+-.") ^ 0
local spare_comma <const> = blank * (P "," / "") * #(blank * S "]}")

-- state: the marks that close what is open, the innermost last.
local function opened(_, _, mark, state)
  if state.is_over then return false end
  state[#state + 1] = mark == "{" and "}" or "]"
  return true
end

local function closed(_, _, state)
  state.is_over = #state == 1
  return table.remove(state) ~= nil
end

local comment <const> = ("//" * (1 - P "\n") ^ 0 + "/*" * (1 - P "*/") ^ 0 * P "*/" ^ -1) / ""
local token <const> = comment + (double + single + word + number) * spare_comma ^ -1 + (1 - S "{}[]")
local bracket <const> = Cmt(C(S "{[") * Carg(1), opened) + Cmt(S "}]" * Carg(1), closed) * spare_comma ^ -1
-- Up to the bracket that closes the first one.
local one <const> = Cs((token ^ 0 * bracket) ^ 1) * Cp()
local rest <const> = Cs(token ^ 0) * -1

local tag <const> = (R("az", "AZ", "09") + S "_:") ^ 1
local noise <const> = (S " \t\n\v\f\r}]);,`" + "<|" * tag * "|>" + "</" * tag * ">") ^ 0 * -1
local fence <const> = P "\u{FEFF}" ^ -1 * blank * ("```" * R("az", "AZ") ^ 0 * blank) ^ -1 * Cp()
local between <const> = S " \t\n\v\f\r,;" ^ 0 * Cp()

-- Returns the value as JSON, and where it ends.
local function mended_at(text, at, is_ended)
  local state = {}
  local mended, after = lpeg.match(one, text, at, state)
  if not mended or #state == 0 then return mended, after end
  local tail = is_ended and lpeg.match(rest, text, after)
  if not tail then return nil end
  return mended .. tail .. table.concat(state):reverse(), #text + 1
end

---@param text string JSON values one after the other; one that is not JSON but has one meaning is
---mended
---@param is_ended? boolean a mark stood behind the text, so that it is whole: what is still open is
---closed
---@return any[]? list
---@return sba.json.failure? failure
function json_mended.read(text, is_ended)
  local whole, failure = json_tolerant.decode(text)
  if not failure then return { whole } end
  local list, at = {}, lpeg.match(fence, text)
  while text:find("^[{%[]", at) do
    local mended, after = mended_at(text, at, is_ended)
    local value, still
    if mended then value, still = json_tolerant.decode(mended) end
    if not mended or still then return nil, failure end
    list[#list + 1], at = value, lpeg.match(between, text, after)
  end
  if #list == 0 or not lpeg.match(noise, text, at) then return nil, failure end
  return list
end

---@param text string one value, as above
---@return string? json
function json_mended.mended(text)
  local _, failure = json.decode(text)
  if not failure then return text end
  local at = lpeg.match(fence, text)
  if not text:find("^[{%[]", at) then return nil end
  local mended, after = mended_at(text, at)
  if mended and lpeg.match(noise, text, after) then return mended end
end

---@param text string one value, as above
---@return any value
---@return sba.json.failure? failure
function json_mended.decode(text)
  local list, failure = json_mended.read(text)
  if not list then return nil, failure end
  for i = 2, #list do
    if json.encode(list[i]) ~= json.encode(list[1]) then
      return nil, { message = ("there are %d values, and one is wanted"):format(#list) }
    end
  end
  return list[1]
end

return json_mended
