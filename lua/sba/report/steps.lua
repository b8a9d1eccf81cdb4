-- SPDX-License-Identifier: Apache-2.0
-- The steps: a line each, and folded below it what it was told and what came of it. What went wrong is open.

local describe = require "sba.util.describe"
local excerpt = require "sba.util.excerpt"
local html = require "sba.report.html"
local json = require "sba.util.json"
local parts = require "sba.report.parts"
local words = require "sba.util.words"

local h = html.elements
local steps = {}

local MOST_OPEN <const> = 20 -- failed steps that are open; of more, one looks at the first
local MOST_TEXT <const> = 4 * 1024 * 1024 -- bytes of a block of all open steps together, about; and of the others
local LARGEST_OPEN <const> = 1024 * 1024 -- bytes of one of an open step
local LARGEST_BLOCK <const>, SMALLEST_BLOCK <const> = 16 * 1024, 400 -- bytes of one of another
local LONGEST_FACT <const> = 200 -- bytes

--- The names of an object's members that are texts, numbers or true, in order.
local function plain_names(object)
  local names = {}
  for name, value in pairs(object) do
    if type(value) == "string" or type(value) == "number" or value == true then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- The short members of a result, in a line.
local function fact_list(result)
  local items = {}
  for _, name in ipairs(plain_names(type(result) == "table" and result or {})) do
    local value = result[name]
    if math.type(value) == "integer" and value >= 0 then
      value = name:find("_bytes$") and words.size(value) or name:find("_ms$") and words.duration(value) or value
    end
    value = tostring(value)
    if #value <= LONGEST_FACT and value ~= "" and not value:find("\n", 1, true) then
      items[#items + 1] = h.span { name:gsub("_bytes$", ""):gsub("_ms$", ""):gsub("_", " "), " ", h.b { value } }
    end
  end
  return #items > 0 and h.p { class = "facts", items }
end

local function command(arguments, limit)
  local ok, line = pcall(describe, { arguments = arguments }, true) -- they may be of any shape
  local directory = arguments.working_dir or arguments.cwd
  return ok and parts.block(type(directory) == "string" and "Command, in " .. directory or "Command", "$ " .. line, limit) or nil
end

--- What a step was told: its command or diff, the texts of several lines, or all of it.
local function what_was_told(call, limit)
  if not call or next(call.arguments) == nil then return false end
  local views = { call.type == "run_command" and command(call.arguments, limit) or nil }
  for _, name in ipairs(plain_names(call.arguments)) do
    local text = call.arguments[name]
    if type(text) == "string" and name ~= "shell" and (name == "diff" or text:find("\n", 1, true)) then
      views[#views + 1] = parts.block(name, text, limit, name == "diff")
    end
  end
  return #views > 0 and views or parts.block("Arguments", json.encode(call.arguments), limit)
end

--- Where all of an output is that the page shows in part.
local function rest_of(entry, limit)
  local result = type(entry.result) == "table" and entry.result or {}
  local streams = type(result.stdout) == "string" and type(result.stderr) == "string" and #result.stdout + #result.stderr or 0
  local field = streams > #entry.output and "result | .stdout, .stderr" or #entry.output > limit and "output"
  return field and h.p { class = "quiet", "The page shows its beginning and its end. The rest is in the result: ",
    h.code { ("jq -r '.steps[%d].%s' result.json"):format(entry.index, field) } }
end

local function what_came(entry, limit)
  if entry.output and entry.output ~= "" then return { parts.output("Output", entry.output, limit), rest_of(entry, limit) } end
  if entry.result and not entry.output then return parts.block("Result", json.encode(entry.result), limit) end
  return entry.status ~= "skipped" and h.p { class = "quiet", "No output." }
end

--- is_open: what is folded is shown. limit: bytes of a block.
local function view(entry, call, is_open, limit)
  local status = parts.status[entry.status]
  local lasted = status.lasted and words.duration(entry.duration_ms)
  local summary = {
    parts.sign(status.sign, entry.status), h.span { class = "number", entry.index + 1 },
    h.span { class = "what",
      h.b { entry.check and "check" or entry.type }, " ", h.span { class = "quiet", entry.id }, " ", call and parts.about(call),
      h.span { class = "unseen", ", " .. status.name },
    },
    h.span { class = "time", lasted or "skipped" },
  }
  return parts.fold({ class = "step " .. entry.status, id = "s" .. entry.index + 1, open = is_open }, summary,
    h.p { class = "quiet", "Step ", h.code { entry.id },
      entry.check and (", the check of criterion %d,"):format(entry.check), " ", status.name,
      lasted and { ", began at ", parts.time(entry.started_at), ", ", status.lasted, " ", lasted }, "." },
    entry.error and h.p { class = "message", entry.error_code and { h.code { entry.error_code }, " " }, (excerpt.of(entry.error, limit)) },
    what_was_told(call, limit),
    what_came(entry, limit),
    fact_list(entry.result))
end

---@param source report.source
---@return html.element|false
function steps.view(source)
  local list, views, open, opened = source.result.steps, {}, {}, 0
  for i, entry in ipairs(list) do
    open[i] = entry.status ~= "success" and entry.status ~= "skipped" and opened < MOST_OPEN
    if open[i] then opened = opened + 1 end
  end
  local open_limit = math.min(LARGEST_OPEN, MOST_TEXT // math.max(1, opened))
  local folded_limit = math.max(SMALLEST_BLOCK, math.min(LARGEST_BLOCK, MOST_TEXT // math.max(1, 2 * #list)))
  for i, entry in ipairs(list) do
    views[i] = view(entry, source.calls[i], open[i], open[i] and open_limit or folded_limit)
  end
  return #list > 0 and html.section("Steps", views)
end

return steps
