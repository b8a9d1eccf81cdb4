-- SPDX-License-Identifier: Apache-2.0
-- The model's turns, from the journal: what it said, what it called, what it cost.

local block = require "sba.report.block"
local html = require "sba.report.html"
local json = require "sba.util.json"
local format = require "sba.report.format"

local h = html.elements
local turns = {}

local MOST_TEXT <const> = 1024 * 1024 -- bytes of all turns together, about
local LARGEST_BLOCK <const> = 8 * 1024 -- bytes
local SMALLEST_BLOCK <const> = 200 -- bytes
local LONGEST_CALL <const> = 120 -- bytes

local function cost(used)
  local said = {}
  if (used.prompt_tokens or 0) > 0 then said[#said + 1] = format.count(used.prompt_tokens, "token") .. " read" end
  if (used.completion_tokens or 0) > 0 then said[#said + 1] = format.count(used.completion_tokens, "token") .. " written" end
  if (used.duration_ms or 0) > 0 then said[#said + 1] = format.duration(used.duration_ms) end
  return table.concat(said, " · ")
end

--- What a call is about: as a step would say it, else its arguments, unless its step shows them.
local function about(call)
  local what = format.about(call)
  if what == "" and not call.step then what = json.encode(call.arguments) end
  return format.shortened(what, LONGEST_CALL)
end

local function call_view(call)
  return h.li { h.code { call.name }, " ", h.span { class = "what", about(call) },
    call.step and { " → ", h.a { href = "#s" .. call.step, "step " .. call.step } } }
end

local function calls_view(calls)
  local items = {}
  for i, call in ipairs(calls) do items[i] = call_view(call) end
  return #items > 0 and h.ul { class = "calls", items }
end

local function first_line(turn)
  local said = turn.content:match("[^\n]+")
  if said then return said end
  local names = {}
  for i, call in ipairs(turn.calls) do
    local what = #turn.calls == 1 and about(call) or ""
    names[i] = what ~= "" and call.name .. " " .. what or call.name
  end
  return #names > 0 and table.concat(names, ", ") or "nothing said"
end

local function view(turn, number, limit)
  return h.details { class = "turn",
    h.summary {
      h.span { class = "number", number }, h.span { class = "what", first_line(turn) },
      h.span { class = "time", cost(turn) },
    },
    h.div { class = "inside", id = "t" .. number,
      turn.thinking ~= "" and block.view("Thinking", turn.thinking, limit),
      turn.content ~= "" and block.view("Said", turn.content, limit),
      #turn.calls > 0 and h.p { class = "label", "Called" },
      calls_view(turn.calls),
    },
  }
end

---@param source report.source
---@return html.element|false
function turns.view(source)
  local used, journal = source.result.inference, source.journal
  local list = journal and journal.turns or {}
  if not used and #list == 0 then return false end
  local limit = math.max(SMALLEST_BLOCK, math.min(LARGEST_BLOCK, MOST_TEXT // math.max(1, 2 * #list)))
  local views = {}
  for i, turn in ipairs(list) do views[i] = view(turn, i, limit) end
  return html.section("Model",
    used and h.p { h.code { used.model }, " · ", format.count(used.requests, "request"), cost(used) ~= "" and " · ", cost(used) },
    views)
end

return turns
