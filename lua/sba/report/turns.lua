-- SPDX-License-Identifier: Apache-2.0
-- The model's turns, from the journal: what it said, what it called, which steps came of that, what it cost.

local html = require "sba.report.html"
local json = require "sba.util.json"
local parts = require "sba.report.parts"
local text = require "native.text"
local words = require "sba.util.words"

local h = html.elements
local turns = {}

local MOST_TEXT <const> = 1024 * 1024 -- bytes of all turns together, about
local LARGEST_BLOCK <const>, SMALLEST_BLOCK <const> = 8 * 1024, 200 -- bytes
local LONGEST_CALL <const> = 120 -- bytes

local function cost(used)
  local said = {}
  if (used.prompt_tokens or 0) > 0 then said[#said + 1] = words.counted(used.prompt_tokens, "token") .. " read" end
  if (used.completion_tokens or 0) > 0 then said[#said + 1] = words.counted(used.completion_tokens, "token") .. " written" end
  if (used.duration_ms or 0) > 0 then said[#said + 1] = words.duration(used.duration_ms) end
  return table.concat(said, " · ")
end

--- What a call is about: as a step would say it, else its arguments.
local function about(call)
  local what = parts.about(call)
  if what == "" then what = json.encode(call.arguments) end
  return #what > LONGEST_CALL and text.cut(what, LONGEST_CALL) .. "…" or what
end

local function view(exchange, number, steps, limit)
  local reply, calls = exchange.reply, exchange.reply.tool_calls or {}
  local content, thinking, items, links = reply.content or "", reply.thinking or "", {}, {}
  for i, call in ipairs(calls) do items[i] = h.li { h.code { call.name }, " ", h.span { class = "what", about(call) } } end
  for i, index in ipairs(steps) do links[i] = { i > 1 and ", ", h.a { href = "#s" .. index, "→ step " .. index } } end
  local line = content:match("[^\n]+") or calls[1] and ("%s %s"):format(calls[1].name, about(calls[1])) or "nothing said"
  local summary = { h.span { class = "number", number }, h.span { class = "what", line }, h.span { class = "time", cost(reply) } }
  return parts.fold({ class = "turn", id = "t" .. number }, summary,
    thinking ~= "" and parts.block("Thinking", thinking, limit),
    content ~= "" and parts.block("Said", content, limit),
    #items > 0 and { h.p { class = "label", "Called" }, h.ul { class = "calls", items } },
    #links > 0 and h.p { links })
end

---@param source report.source
---@return html.element|false
function turns.view(source)
  local used, journal = source.result.inference, source.journal
  local list, views, steps = journal and journal.exchanges or {}, {}, {}
  if not used and #list == 0 then return false end
  for i = 1, #list do steps[i] = {} end
  for index in ipairs(source.result.steps) do
    local begun = journal and journal.started[index]
    if begun and steps[begun.turn] then table.insert(steps[begun.turn], index) end
  end
  local limit = math.max(SMALLEST_BLOCK, math.min(LARGEST_BLOCK, MOST_TEXT // math.max(1, 2 * #list)))
  for i, exchange in ipairs(list) do views[i] = view(exchange, i, steps[i], limit) end
  return html.section("Model",
    used and h.p { h.code { used.model }, " · ", words.counted(used.requests, "request"), cost(used) ~= "" and " · ", cost(used) },
    views)
end

return turns
