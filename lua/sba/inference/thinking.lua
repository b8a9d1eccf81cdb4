-- SPDX-License-Identifier: Apache-2.0
-- Keeps a model's thinking apart from what it says, where a server leaves both in one text: <think>...</think> at its beginning,
-- or no more than the </think> where the template itself opened it. Pieces come as they are streamed.

local lpeg = require "lpeg"
local text = require "native.text"

local thinking = {}
thinking.__index = thinking

local OPENINGS <const> = { "<think>", "<thinking>" }
local CLOSING <const> = "</think%a*>"
local blank <const>, letter <const> = lpeg.S " \t\n\v\f\r" ^ 0, lpeg.R("az", "AZ")
local opening <const>, closing <const> = "<think" * letter ^ 0 * ">", "</think" * letter ^ 0 * ">" * blank
local marked <const> = blank * opening * lpeg.C((1 - closing) ^ 0) * (closing + -1)
local unmarked <const> = lpeg.C((1 - (closing + "<think")) ^ 0) * closing -- the template itself opened it
local thinking_first <const> = (marked + unmarked) * lpeg.C(lpeg.P(1) ^ 0)
local LONGEST_MARK <const> = #"</thinking>"
local MOST_BLANKS <const> = 256 -- before a mark

---@param on_text? fun(piece: string) is given what the model says, without its thinking
function thinking.new(on_text)
  return setmetatable({ on_text = on_text or function() end, pieces = {}, held = "", state = "start" }, thinking)
end

--- How a text begins: with an opening mark (and which), perhaps with one, or with neither.
local function beginning(held)
  local start = held:sub(held:find("%S") or #held + 1)
  if start == "" and #held > MOST_BLANKS then return "text" end
  for _, mark in ipairs(OPENINGS) do
    if start:sub(1, #mark) == mark then return "thinking" end
    if mark:sub(1, #start) == start then return "start" end
  end
  return "text"
end

local states = {}

function states.start(self, piece)
  self.held = self.held .. piece
  self.state = beginning(self.held)
  if self.state == "start" then return end
  local held = self.held
  self.held = ""
  states[self.state](self, held)
end

function states.thinking(self, piece)
  self.held = self.held .. piece
  local _, last = self.held:find(CLOSING)
  if not last then
    self.held = self.held:sub(-LONGEST_MARK)
    return
  end
  self.state = "text"
  self.on_text((self.held:sub(last + 1):gsub("^%s+", "")))
end

function states.text(self, piece)
  self.on_text(piece)
end

---@param piece string of the content
function thinking:add(piece)
  self.pieces[#self.pieces + 1] = piece
  states[self.state](self, piece)
end

---What was said and what was thought, marks and the blanks around them left out.
---@return string content, string thought
function thinking:finish()
  local whole = table.concat(self.pieces)
  if self.state == "start" then self.on_text(self.held) end
  local thought, content = lpeg.match(thinking_first, whole)
  if not thought then return whole, "" end
  return content, text.trim(thought)
end

return thinking
