-- SPDX-License-Identifier: Apache-2.0
-- The steps: a line each, and folded below it what it was told and what came of it. What went wrong is open.

local block = require "sba.report.block"
local describe = require "sba.util.describe"
local excerpt = require "sba.util.excerpt"
local format = require "sba.report.format"
local html = require "sba.report.html"
local json = require "sba.util.json"

local h = html.elements
local steps = {}

local MOST_TEXT <const> = 4 * 1024 * 1024 -- bytes of all outputs together, about; once for the open steps, once for the others
local LARGEST_OPEN <const> = 1024 * 1024 -- bytes of a block of an open step
local LARGEST_BLOCK <const> = 16 * 1024 -- bytes
local SMALLEST_BLOCK <const> = 400 -- bytes
local BLOCKS <const> = 3 -- that a step has at most, about
local MOST_OPEN <const> = 20 -- failed steps that are open; of more, one looks at the first
local LONGEST_FACT <const> = 200 -- bytes

--- The names of an object's members that are texts, numbers or booleans, in order.
local function plain_names(object)
  local names = {}
  for name, value in pairs(object) do
    if type(value) == "string" or type(value) == "number" or type(value) == "boolean" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function fact(name, value)
  if math.type(value) == "integer" and value >= 0 and name:find("_bytes$") then return format.size(value) end
  if math.type(value) == "integer" and value >= 0 and name:find("_ms$") then return format.duration(value) end
  return value == true and "yes" or tostring(value)
end

--- The short members of a result, in a line.
local function fact_list(entry)
  local result, items = type(entry.result) == "table" and entry.result or {}, {}
  for _, name in ipairs(plain_names(result)) do
    local words = fact(name, result[name])
    if #words <= LONGEST_FACT and words ~= "" and words ~= "false" and not words:find("\n", 1, true) then
      items[#items + 1] = h.span { class = "fact", name:gsub("_bytes$", ""):gsub("_ms$", ""):gsub("_", " "), " ", h.b { words } }
    end
  end
  return #items > 0 and h.p { class = "facts", items }
end

local function command(arguments, limit)
  local ok, line = pcall(describe, { arguments = arguments }, true) -- they may be of any shape
  local directory = arguments.working_dir or arguments.cwd
  return ok and block.view(type(directory) == "string" and "Command, in " .. directory or "Command", "$ " .. line, limit) or nil
end

--- What a step was told: its command or diff, the texts of several lines, or all of it.
local function what_was_told(call, limit)
  if not call or next(call.arguments) == nil then return false end
  local views = { call.type == "run_command" and command(call.arguments, limit) or nil }
  for _, name in ipairs(plain_names(call.arguments)) do
    local text = call.arguments[name]
    if type(text) == "string" and name ~= "shell" and (name == "diff" or text:find("\n", 1, true)) then
      views[#views + 1] = block.view(name, text, limit, name == "diff")
    end
  end
  return #views > 0 and views or block.view("Arguments", json.encode(call.arguments), limit)
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
  local bytes = entry.output or ""
  if bytes ~= "" then return { block.output(bytes, limit), rest_of(entry, limit) } end
  if entry.result and not entry.output then return block.view("Result", json.encode(entry.result), limit) end
  return entry.status ~= "skipped" and h.p { class = "quiet", "No output." }
end

local function problem(entry, limit)
  if not entry.error then return false end
  return h.p { class = "message", entry.error_code and { h.code { entry.error_code }, " " }, (excerpt.of(entry.error, limit)) }
end

--- What a step is about: from its arguments, else from the todo list.
local function about(entry, call, titles)
  local what, title = call and format.about(call) or "", titles[entry.index + 1] or ""
  if what == "" and title:sub(1, #entry.type + 2) == entry.type .. ": " then return title:sub(#entry.type + 3) end
  return what
end

--- The titles of the todo list that are the steps' own: in a direct job each step has one.
local function titles_of(result)
  local titles = {}
  for _, item in ipairs(result.todo.items) do
    if item.source == "step" then titles[#titles + 1] = item.title end
  end
  local count = 0
  for _, entry in ipairs(result.steps) do count = count + (entry.check and 0 or 1) end
  return #titles >= count and titles or {} -- of a job that is not over, some steps are missing
end

local function line(entry, what)
  local status = format.status[entry.status]
  return h.summary {
    h.span { class = "sign " .. entry.status, ["aria-hidden"] = "true", status.sign },
    h.span { class = "number", entry.index + 1 },
    h.span { class = "what",
      h.b { entry.check and "check" or entry.type }, " ", h.span { class = "quiet", entry.id }, " ", what,
      h.span { class = "unseen", ", " .. status.name },
    },
    h.span { class = "time", entry.status == "skipped" and "skipped" or format.duration(entry.duration_ms) },
  }
end

--- Whether one looks at it first, because it went wrong or runs now.
local function went_wrong(entry) return entry.status ~= "success" and entry.status ~= "skipped" end

--- is_open: what is folded is shown. limit: bytes of a block.
local function view(entry, call, what, is_open, limit)
  local status = format.status[entry.status]
  return h.details { class = "step " .. entry.status, open = is_open,
    line(entry, what),
    -- The target of links is inside: a browser opens what is folded around it.
    h.div { class = "inside", id = "s" .. entry.index + 1,
      h.p { class = "quiet", "Step ", h.code { entry.id },
        entry.check and (", the check of criterion %d,"):format(entry.check), " ", status.verb or "", status.name,
        status.lasted and { ", began at ", format.time(entry.started_at), ", ", status.lasted, " ", format.duration(entry.duration_ms) },
        "." },
      problem(entry, limit),
      what_was_told(call, limit),
      what_came(entry, limit),
      fact_list(entry),
    },
  }
end

---@param source report.source
---@return html.element|false
function steps.view(source)
  local list, titles = source.result.steps, titles_of(source.result)
  local failed, opened, views = 0, 0, {}
  for _, entry in ipairs(list) do failed = failed + (went_wrong(entry) and 1 or 0) end
  local open_limit = math.min(LARGEST_OPEN, MOST_TEXT // math.max(1, math.min(failed, MOST_OPEN)))
  local folded_limit = math.max(SMALLEST_BLOCK, math.min(LARGEST_BLOCK, MOST_TEXT // math.max(1, BLOCKS * #list)))
  for i, entry in ipairs(list) do
    local is_open = went_wrong(entry) and opened < MOST_OPEN
    if is_open then opened = opened + 1 end
    local call = source.calls[i]
    views[i] = view(entry, call, about(entry, call, titles), is_open, is_open and open_limit or folded_limit)
  end
  return #list > 0 and html.section("Steps", views)
end

return steps
