-- SPDX-License-Identifier: Apache-2.0
-- What the job did: its time to scale, its steps, and the model's turns. A step or turn is a line
-- with its details folded below; a step that went wrong is open.

local excerpt = require "sba.util.excerpt"
local html = require "sba.report.html"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local parts = require "sba.report.parts"

local h = html.elements
local work = {}

-- Units of the drawing: of the whole job, and of a bar.
local WIDTH <const>, NARROWEST <const> = 1000, 2
local STEPS_LANE <const>, MODEL_LANE <const>, LANE <const> = 0, 18, 14 -- y, y, height
local TICKS <const> = 5

-- at: milliseconds since the job began.
local function bar(length, at, duration, y, class, href, name)
  local x = math.min(math.max(at / length, 0), 1) * WIDTH
  local width = math.max(math.min(duration / length * WIDTH, WIDTH - x), NARROWEST)
  x = ("%.1f"):format(math.min(x, WIDTH - width))
  return h.a { href = href, tabindex = -1, html.title(name .. ", " .. humanize.duration(duration)),
    h.rect { x = x, y = y, width = ("%.1f"):format(width), height = LANE, class = class } }
end

local function track(y) return h.rect { class = "track", width = WIDTH, y = y, height = LANE } end

---@param source report.source
---@return html.element|false
function work.timeline(source)
  local result, bars = source.result, { track(STEPS_LANE) }
  local start = parts.instant(result.started_at) or 0
  local finish = parts.instant(result.finished_at) or start
  local length = math.max(finish - start, result.duration_ms, 1)
  for i, entry in ipairs(result.steps) do
    if entry.status ~= "skipped" then
      local at = (parts.instant(entry.started_at) or start) - start
      local state, name = parts.state(entry), ("step %d, %s"):format(i, entry.type)
      bars[#bars + 1] = bar(length, at, entry.duration_ms, STEPS_LANE, state, "#s" .. i, name)
    end
  end
  local turns, ticks = source.exchanges, {}
  if #turns > 0 then bars[#bars + 1] = track(MODEL_LANE) end
  for i, turn in ipairs(turns) do
    local at, duration = parts.instant(turn.at), turn.reply.duration_ms or 0
    local name, target = "turn " .. i, "#t" .. i
    local began = at and at - duration - start
    if at then bars[#bars + 1] = bar(length, began, duration, MODEL_LANE, "model", target, name) end
  end
  if #result.steps + #turns == 0 then return false end
  ticks[1] = h.span { "0" }
  for i = 2, TICKS do ticks[i] = h.span { humanize.duration((i - 1) * length // TICKS) } end
  local class, height, legend = "strip", LANE, nil
  if #turns > 0 then
    class, height, legend = "strip two", MODEL_LANE + LANE, "Steps are above, the model is below. "
  end
  return html.section("Timeline",
    h.svg { class = class, preserveAspectRatio = "none", ["aria-hidden"] = "true",
      viewBox = ("0 0 %d %d"):format(WIDTH, height), bars },
    h.div { class = "ticks", ["aria-hidden"] = "true", ticks },
    h.p { class = "quiet", legend, "Select a bar to jump to its step." })
end

-- Bytes of a block of text. All blocks of a kind together have about `all`; one has its share,
-- within bounds.
local OPEN_STEPS <const> = { all = 4 * 1024 * 1024, least = 0, most = 1024 * 1024 }
local FOLDED_STEPS <const> = { all = 2 * 1024 * 1024, least = 400, most = 16 * 1024 }
local TURNS <const> = { all = 512 * 1024, least = 200, most = 8 * 1024 }

local MOST_OPEN <const> = 20 -- failed steps that are open; of more, one looks at the first
local LONGEST_FACT <const> = 200 -- bytes
local LONGEST_CALL <const> = 120 -- bytes

local function share(room, count)
  return math.max(room.least, math.min(room.most, room.all // math.max(1, count)))
end

local function plain_names(object)
  local names = {}
  for name, value in pairs(object) do
    if value and type(value) ~= "table" and value ~= json.null then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function fact_list(result)
  local items = {}
  for _, name in ipairs(plain_names(json.table_of(result))) do
    local value = result[name]
    local in_words = name:find "_bytes$" and humanize.size
    if name:find "_ms$" then in_words = humanize.duration end
    if in_words and math.type(value) == "integer" and value >= 0 then value = in_words(value) end
    value = tostring(value)
    if #value <= LONGEST_FACT and value ~= "" and not value:find("\n", 1, true) then
      local what = name:gsub("_bytes$", ""):gsub("_ms$", ""):gsub("_", " ")
      items[#items + 1] = h.span { what, " ", h.b { value } }
    end
  end
  return #items > 0 and h.p { class = "facts", items }
end

local function command(arguments, limit)
  local ok, line = pcall(humanize.step, { arguments = arguments }, true) -- they may be of any shape
  local directory, label = arguments.working_dir or arguments.cwd, "Command"
  if type(directory) == "string" then label = "Command, in " .. directory end
  return ok and parts.block(label, "$ " .. line, limit) or nil
end

-- Its command or diff, the texts of several lines, or all arguments.
local function what_was_told(call, limit)
  if not call or next(call.arguments) == nil then return false end
  local views = { call.type == "run_command" and command(call.arguments, limit) or nil }
  for _, name in ipairs(plain_names(call.arguments)) do
    local value = call.arguments[name]
    local is_text = type(value) == "string" and name ~= "shell"
    if is_text and (name == "diff" or value:find("\n", 1, true)) then
      views[#views + 1] = parts.block(name, value, limit, name == "diff")
    end
  end
  return #views > 0 and views or parts.block("Arguments", json.encode(call.arguments), limit)
end

local function rest_of(entry, limit)
  local result, field = json.table_of(entry.result), nil
  if #entry.output > limit then field = "output" end
  if type(result.stdout) == "string" and type(result.stderr) == "string" then
    local is_longer = #result.stdout + #result.stderr > #entry.output
    if is_longer then field = "result | .stdout, .stderr" end
  end
  local words = "The page shows its beginning and its end. The rest is in the result: "
  return field and h.p { class = "quiet", words,
    h.code { ("jq -r '.steps[%d].%s' result.json"):format(entry.index, field) } }
end

local function what_came(entry, limit)
  local output = entry.output
  if (output or "") ~= "" then return { parts.output("Output", output, limit), rest_of(entry, limit) } end
  if entry.result and not output then return parts.block("Result", json.encode(entry.result), limit) end
  return entry.status ~= "skipped" and h.p { class = "quiet", "No output." }
end

local function cost(used)
  local list, read, written = {}, used.prompt_tokens or 0, used.completion_tokens or 0
  if read > 0 then list[1] = humanize.counted(read, "token") .. " read" end
  if written > 0 then list[#list + 1] = humanize.counted(written, "token") .. " written" end
  if used.cost_usd then list[#list + 1] = ("$%.4g"):format(used.cost_usd) end
  if (used.duration_ms or 0) > 0 then list[#list + 1] = humanize.duration(used.duration_ms) end
  return table.concat(list, " · ")
end

--- What a command that is a worker says of its work, and with which model.
local function report_of(entry, limit)
  local report = json.table_of(entry.result).report
  if not report then return false end
  local model, used = report.model, cost(report)
  return {
    report.answer and parts.block("What the worker reports, unchecked", report.answer, limit),
    h.p { class = "quiet", model and h.code { model }, model and used ~= "" and " · ", used },
  }
end

--- Of a worker the report comes first; its output, often long and for programs, is folded.
local function outcome_of(entry, call, limit)
  local report, came = report_of(entry, limit), what_came(entry, limit)
  local size = humanize.size(#(entry.output or ""))
  if report and came then came = parts.fold({}, "Output, " .. size, came) end
  return { report, what_was_told(call, limit), came }
end

local function step_view(entry, call, is_open, limit)
  local state = parts.state(entry)
  local status = parts.status[state]
  local lasted = status.lasted and humanize.duration(entry.duration_ms)
  local summary = {
    parts.sign(status.sign, state), h.span { class = "number", entry.index + 1 },
    h.span { class = "what",
      h.b { entry.check and "check" or entry.type }, " ", h.span { class = "quiet", entry.id }, " ",
      parts.about(call, entry.result),
      h.span { class = "unseen", ", " .. status.name },
    },
    h.span { class = "time", lasted or "skipped" },
  }
  local id = "s" .. entry.index + 1
  return parts.fold({ class = "step " .. state, id = id, open = is_open }, summary,
    h.p { class = "quiet", "Step ", h.code { entry.id },
      entry.check and (", the check of criterion %d,"):format(entry.check), " ", status.name,
      lasted and { ", began at ", parts.time(entry.started_at), ", ", status.lasted, " ", lasted }, "." },
    entry.error and h.p { class = "message",
      entry.error_code and { h.code { entry.error_code }, " " }, (excerpt.of(entry.error, limit)) },
    outcome_of(entry, call, limit),
    fact_list(entry.result))
end

---@param source report.source
---@return html.element|false
function work.steps(source)
  local list, views = source.result.steps, {}
  local open, opened = {}, 0
  for i, entry in ipairs(list) do
    open[i] = entry.status ~= "success" and entry.status ~= "skipped" and opened < MOST_OPEN
    if open[i] then opened = opened + 1 end
  end
  local open_limit, folded_limit = share(OPEN_STEPS, opened), share(FOLDED_STEPS, #list)
  for i, entry in ipairs(list) do
    views[i] = step_view(entry, source.calls[i], open[i], open[i] and open_limit or folded_limit)
  end
  return #list > 0 and html.section("Steps", views)
end

local function about(call)
  local what = parts.about(call)
  return parts.cut(what ~= "" and what or json.encode(call.arguments), LONGEST_CALL)
end

local function turn_view(reply, number, steps, limit)
  local content, thinking = reply.content or "", reply.thinking or ""
  local items, links, first_call = {}, {}, nil
  for i, call in ipairs(reply.tool_calls or {}) do
    local what = about(call)
    items[i] = h.li { h.code { call.name }, " ", h.span { class = "what", what } }
    first_call = first_call or call.name .. " " .. what
  end
  for i, index in ipairs(steps) do
    links[i] = { i > 1 and ", ", h.a { href = "#s" .. index, "→ step " .. index } }
  end
  local line = content:match "[^\n]+" or first_call or "nothing said"
  local summary = { h.span { class = "number", number }, h.span { class = "what", line },
    h.span { class = "time", cost(reply) } }
  return parts.fold({ class = "turn", id = "t" .. number }, summary,
    thinking ~= "" and parts.block("Thinking", thinking, limit),
    content ~= "" and parts.block("Said", content, limit),
    #items > 0 and { h.p { class = "label", "Called" }, h.ul { class = "calls", items } },
    #links > 0 and h.p { links })
end

local function asked(used)
  if used.source then return "as a worker reports it, unchecked" end
  return humanize.counted(used.requests or 0, "request")
end

---@param source report.source
---@return html.element|false
function work.turns(source)
  local used, list = source.result.inference, source.exchanges
  if not used and #list == 0 then return false end
  local views, steps = {}, {} -- steps: of each turn
  for i = 1, #list do steps[i] = {} end
  for index in ipairs(source.result.steps) do
    local begun = source.journal and source.journal.started[index]
    if begun and steps[begun.turn] then table.insert(steps[begun.turn], index) end
  end
  local limit = share(TURNS, #list)
  for i, exchange in ipairs(list) do views[i] = turn_view(exchange.reply, i, steps[i], limit) end
  local total
  if used then
    local costs = cost(used)
    if costs ~= "" then costs = " · " .. costs end
    total = h.p { h.code { used.model or "unknown" }, " · ", asked(used), costs }
  end
  return html.section("Model", total, views)
end

return work
