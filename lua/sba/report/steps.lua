-- SPDX-License-Identifier: Apache-2.0
-- The steps: a line each, with its bar, and folded below it what it was told and what came of it. What went wrong is open.

local block = require "sba.report.block"
local describe = require "sba.run.describe"
local diff = require "sba.report.diff"
local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements
local json = require "sba.util.json"
local output = require "sba.report.output"
local timeline = require "sba.report.timeline"
local format = require "sba.report.format"

local steps = {}

local MOST_TEXT <const> = 4 * 1024 * 1024 -- bytes of all blocks together, about
local LARGEST_BLOCK <const> = 16 * 1024 -- bytes
local SMALLEST_BLOCK <const> = 400 -- bytes
local BLOCKS <const> = 3 -- that a step has at most, about
local MOST_OPEN <const> = 20 -- failed steps that are open; of more, one looks at the first
local MOST_NAMED <const> = 5 -- files
local LONGEST_FACT <const> = 200 -- bytes

-- What of a result is said in the line of facts, and how.
local facts <const> = {
  { "exit_code", "exit code" }, { "signal", "ended by" }, { "path", "path" }, { "size_bytes", "size", format.size },
  { "created", "created" }, { "files_searched", "files searched" }, { "model", "model" },
  { "prompt_tokens", "prompt tokens" }, { "completion_tokens", "completion tokens" },
  { "cpu_time_ms", "CPU", format.duration }, { "max_rss_bytes", "memory", format.size },
  { "truncated", "cut" }, { "stdout_truncated", "stdout cut" }, { "stderr_truncated", "stderr cut" }, { "is_error", "an error" },
}

local function said(value, form)
  if value == true then return "yes" end
  if math.type(value) == "integer" and value >= 0 and form then return form(value) end
  return tostring(value):sub(1, LONGEST_FACT)
end

local function fact_list(entry)
  local result, items = type(entry.result) == "table" and entry.result or {}, {}
  for _, fact in ipairs(facts) do
    local value = result[fact[1]]
    if value and type(value) ~= "table" and value ~= json.null then
      items[#items + 1] = h.span { class = "fact", fact[2], " ", h.b { said(value, fact[3]) } }
    end
  end
  return #items > 0 and h.p { class = "facts", items }
end

local function text_of(arguments, name)
  local value = arguments[name]
  return type(value) == "string" and value ~= "" and value or nil
end

local function as_json(value)
  local ok, text = pcall(json.encode, value)
  return ok and text or "(cannot be shown)"
end

-- What a step was told, by its type.
local told = {}

function told.run_command(arguments, limit)
  local directory = text_of(arguments, "working_dir") or text_of(arguments, "cwd")
  return {
    block(directory and "Command, in " .. directory or "Command", "$ " .. describe({ arguments = arguments }, true), limit),
    text_of(arguments, "stdin") and block("Standard input", arguments.stdin, limit),
  }
end

function told.apply_unified_diff(arguments, limit)
  local text = text_of(arguments, "diff")
  return text and block("Diff", text, limit, true)
end

function told.replace_in_file(arguments, limit)
  local old, new = text_of(arguments, "old_text"), text_of(arguments, "new_text")
  return { old and block("Replaced", old, limit), new and block("By", new, limit) }
end

function told.write_file(arguments, limit)
  local text = text_of(arguments, "content")
  return text and block("Content written", text, limit)
end

function told.ask_model(arguments, limit)
  local text = text_of(arguments, "prompt")
  return text and block("Prompt", text, limit)
end

local function is_empty(arguments) return next(arguments) == nil end

local function what_was_told(call, limit)
  if not call or is_empty(call.arguments) then return false end
  local ok, view = pcall(told[call.type] or function(arguments) return block("Arguments", as_json(arguments), limit) end,
    call.arguments, limit)
  return ok and view or block("Arguments", as_json(call.arguments), limit)
end

local function what_came(entry, limit)
  if entry.output and entry.output ~= "" and diff.is_one(entry.output) then return block("Output", entry.output, limit) end
  if entry.output and entry.output ~= "" then return output.view("Output", entry.output, limit, "s" .. entry.index + 1) end
  if entry.result and not entry.output then return block("Result", as_json(entry.result), limit) end
  return entry.status ~= "skipped" and h.p { class = "quiet", "No output." }
end

local function problem(entry, limit)
  if not entry.error then return false end
  return h.p { class = "message", entry.error_code and { h.code { entry.error_code }, " " }, (excerpt.of(entry.error, limit)) }
end

--- The files that a result names.
local function named_in_result(entry)
  local result, paths = type(entry.result) == "table" and entry.result or {}, {}
  for _, file in ipairs(type(result.files) == "table" and result.files or { result }) do
    if type(file) == "table" and type(file.path) == "string" then paths[#paths + 1] = file.path end
    if #paths == MOST_NAMED then break end
  end
  return table.concat(paths, ", ")
end

--- What a step is about: from its arguments, else from the todo list, else from its result.
local function about(entry, call, titles)
  local ok, what = pcall(describe, call or { arguments = {} })
  what = ok and type(what) == "string" and what:gsub("%s+", " ") or ""
  if what ~= "" then return what end
  local title = titles[entry.index + 1] or ""
  if title:sub(1, #entry.type + 2) == entry.type .. ": " then return title:sub(#entry.type + 3) end
  return named_in_result(entry)
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

local function line(entry, what, scale)
  local status = format.status[entry.status]
  return h.summary {
    h.span { class = "sign " .. entry.status, ["aria-hidden"] = "true", status.sign },
    h.span { class = "number", entry.index + 1 },
    h.span { class = "what",
      h.b { entry.check and "check" or entry.type }, " ", h.span { class = "quiet", entry.id }, " ", what,
      h.span { class = "unseen", ", " .. status.name },
    },
    timeline.bar(scale, entry),
    h.span { class = "time", entry.status == "skipped" and "skipped" or format.duration(entry.duration_ms) },
  }
end

local function view(entry, call, what, scale, limit, is_open)
  return h.details { class = "step " .. entry.status, open = is_open,
    line(entry, what, scale),
    -- The target of links is inside: a browser opens what is folded around it.
    h.div { class = "inside", id = "s" .. entry.index + 1,
      h.p { class = "quiet", "Step ", h.code { entry.id },
        entry.check and (", the check of criterion %d,"):format(entry.check), " ", format.status[entry.status].verb or "",
        format.status[entry.status].name,
        entry.status ~= "skipped" and { ", began at ", format.time(entry.started_at), ", took ", format.duration(entry.duration_ms) },
        "." },
      problem(entry, limit),
      what_was_told(call, limit),
      what_came(entry, limit),
      fact_list(entry),
    },
  }
end

---Whether a step went wrong, or runs now: one looks at it first.
---@param entry table
---@return boolean
function steps.has_failed(entry)
  return entry.status ~= "success" and entry.status ~= "skipped"
end

---@param source report.source
---@param scale report.scale
---@return html.element|false
function steps.view(source, scale)
  local list, titles = source.result.steps, titles_of(source.result)
  if #list == 0 then return false end
  local limit = math.max(SMALLEST_BLOCK, math.min(LARGEST_BLOCK, MOST_TEXT // (BLOCKS * #list)))
  local views, open = {}, 0
  for i, entry in ipairs(list) do
    local failed = steps.has_failed(entry)
    if failed then open = open + 1 end
    local call = source.calls[i]
    views[i] = view(entry, call, about(entry, call, titles), scale, limit, failed and open <= MOST_OPEN)
  end
  return h.section { ["aria-label"] = "Steps", h.h2 { "Steps" }, views }
end

return steps
