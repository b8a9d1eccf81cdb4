-- SPDX-License-Identifier: Apache-2.0
-- Parts of a text: its lines, its head and tail where it is too long, and what is left where it
-- holds base64.

local lpeg = require "lpeg"
local text = require "native.text"

local excerpt = {}

local NOTE <const> = "\n[... %d of %d bytes left out%s ...]\n"
-- Bytes of NOTE without its hint.
local NOTE_ROOM <const> = 80
local HINT_ROOM <const> = 120 -- bytes
local LINES_NOTE <const> = "[... lines %d to %d of %d left out (%d bytes)%s ...]\n"
-- Bytes of LINES_NOTE without its hint.
local LINES_ROOM <const> = 120

local function next_line(bytes, from)
  if from > #bytes then return nil end
  local newline = bytes:find("\n", from, true)
  local last = newline or #bytes
  return last + 1, bytes:sub(from, newline and last - 1 or last), newline ~= nil, from
end

---`for after, line, is_whole, at in lines(bytes)`, in linear time. after: where the next line
---begins; is_whole: its newline, which line lacks, is there; at: where it begins.
---@param bytes string
---@return fun(bytes: string, from: integer): integer?, string, boolean, integer
---@return string bytes, integer from
function excerpt.lines(bytes) return next_line, bytes, 1 end

---A head and a tail, with a note between them of how many bytes are left out.
---@param head string UTF-8
---@param tail string UTF-8; may overlap with the head
---@param total integer bytes of the whole text
---@param limit integer bytes
---@param hint? fun(offset: integer): string how to read on from that byte
---@return string
function excerpt.join(head, tail, total, limit, hint)
  if limit <= NOTE_ROOM then return text.cut(head, limit) end
  if limit <= NOTE_ROOM + HINT_ROOM then hint = nil end
  local room = limit - NOTE_ROOM - (hint and HINT_ROOM or 0)
  head, tail = text.cut(head, room // 2), text.tail(tail, room - room // 2)
  local advice = hint and "; " .. hint(#head) or ""
  return head .. NOTE:format(total - #head - #tail, total, advice) .. tail
end

---@param bytes string UTF-8
---@param limit integer bytes
---@param hint? fun(offset: integer): string as of join
---@return string, boolean is_cut
function excerpt.of(bytes, limit, hint)
  if #bytes <= limit then return bytes, false end
  return excerpt.join(bytes, bytes, #bytes, limit, hint), true
end

---As excerpt.of, but of whole lines, unless one would take more than half of the head or the tail.
---@param bytes string UTF-8
---@param limit integer bytes
---@param hint fun(offset: integer, line?: integer): string as of join; the line begins there
---@return string
function excerpt.of_lines(bytes, limit, hint)
  if #bytes <= limit then return bytes end
  local room, count = math.max(0, limit - LINES_ROOM - HINT_ROOM), text.count_lines
  local head, tail = text.cut(bytes, room // 2), text.tail(bytes, room - room // 2)
  local back, on = head:reverse():find("\n", 1, true), tail:find("\n", 1, true)
  local has_lines = back and on and back <= #head // 2 and on <= #tail // 2
  if not has_lines then return (excerpt.of(bytes, limit, hint)) end
  head, tail = head:sub(1, #head - back + 1), tail:sub(on + 1)
  local total, first, left_out = count(bytes), count(head) + 1, #bytes - #head - #tail
  local advice = "; " .. hint(#head, first)
  local note = LINES_NOTE:format(first, total - count(tail), total, left_out, advice)
  return head .. note .. tail
end

---What a terminal shows of a line with carriage returns.
---@param line string
---@return string
function excerpt.overwritten(line) return (text.trim_end(line, "\r"):gsub("^.*\r", "")) end

---@param bytes string
---@param most integer
---@return string[] lines, boolean more there are others before them
function excerpt.last_lines(bytes, most)
  -- A ring of `most` lines: of an output of megabytes no more are kept at a time.
  local ring, count, list = {}, 0, {}
  for _, line in excerpt.lines(bytes) do ring[count % most], count = line, count + 1 end
  for i = math.max(0, count - most), count - 1 do
    list[#list + 1] = excerpt.overwritten(ring[i % most])
  end
  return list, count > most
end

-- Base64, which models cannot read

-- Characters of base64 that is left out; shorter words may be names or keys.
local LEAST <const> = 256
-- Characters of a line of wrapped base64 (PEM's; MIME has 76).
local LINE <const> = 64
local LEAST_LINES <const> = 4 -- of wrapped base64

---@param base64 string line breaks may be escaped, as in JSON
---@return integer bytes
function excerpt.base64_size(base64)
  local letters = base64:gsub("\\[rn]", ""):gsub("[^%w+/_-]", "")
  return #letters * 3 // 4
end

--- A run without digits, or with letters of one case only, is something else and stays.
local function named(run)
  local is_base64 = run:find "%d" and run:find "%u" and run:find "%l"
  return is_base64 and ("[base64, %d bytes]"):format(excerpt.base64_size(run)) or run
end

local function make_grammar()
  local P, R, S = lpeg.P, lpeg.R, lpeg.S
  local letter = R("AZ", "az", "09") + S "+/_-" + "\\/"
  local line = letter ^ LINE * (P "\r\n" + "\n" + "\\r\\n" + "\\n")
  local run = (letter ^ LEAST + line ^ LEAST_LINES * letter ^ 0) * P "=" ^ -2
  return lpeg.Cs((run / named + letter ^ 1 + (1 - letter)) ^ 0)
end

-- Made when it is first needed: that takes milliseconds.
local grammar

---@param words string
---@return string with "[base64, 300 bytes]" in place of base64
function excerpt.without_base64(words)
  if #words < LEAST then return words end
  grammar = grammar or make_grammar()
  return lpeg.match(grammar, words)
end

return excerpt
