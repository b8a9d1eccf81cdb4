-- SPDX-License-Identifier: Apache-2.0
-- Puts together what the model is told. The system text and the first message never change during
-- a job, so that a server can cache them. What changes every turn, time left and the todo list,
-- is the end of the last message.

local describe = require "sba.util.humanize".step
local json = require "sba.util.json"
local prompts = require "sba.agent.prompts"
local redact = require "sba.util.secret".redact
local text = require "native.text"

local prompt = {}

local AGENTS_MD <const> = "AGENTS.md"
-- Bytes of it: mostly a quarter of a context of as many tokens, and less of a smaller one.
local MOST <const> = 32 * 1024
local MOST_SHARE <const> = 3 -- of the context, in tokens: a third
local LONGEST_CHARACTER <const> = 4 -- bytes
local NO_CONTEXT <const> = { requirements = {}, acceptance_criteria = {}, checks = {}, skills = {} }

--- Those that are there and not empty.
local function joined(...)
  local there, blocks = {}, table.pack(...)
  for i = 1, blocks.n do
    if blocks[i] and blocks[i] ~= "" then there[#there + 1] = blocks[i] end
  end
  return table.concat(there, "\n\n")
end

local function block(title, body)
  return body and body ~= "" and ("## %s\n\n%s"):format(title, body)
end

local function numbered(list)
  local lines = {}
  for i, item in ipairs(list) do lines[i] = ("%d. %s"):format(i, item) end
  return table.concat(lines, "\n")
end

local function criteria(context)
  local list = {}
  for i, criterion in ipairs(context.acceptance_criteria) do
    local check = context.checks[i]
    local command = check and describe { type = "run_command", arguments = check }
    list[i] = command and ("%s (checked by the runner with `%s`)"):format(criterion, command) or criterion
  end
  return list
end

--- A node may give the persona with the context.
local function persona(job)
  local given, context = job.persona or {}, job.context or NO_CONTEXT
  return joined(given.title or context.persona_title, given.description or context.persona_description)
end

local function skills(context, missing)
  local parts = {}
  for i, skill in ipairs(context.skills) do
    parts[#parts + 1] = ("### %s\n\n%s"):format(skill.name or "Skill " .. i, skill.text)
  end
  for _, id in ipairs(missing or {}) do
    parts[#parts + 1] = ("The skill %s could not be fetched; work without it."):format(id)
  end
  return table.concat(parts, "\n\n")
end

---@class sba.prompt.extras what a prompt says besides the job
---@field facts? string about the sandbox
---@field has_todo? boolean
---@field is_roomy? boolean all tools are shown
---@field answer_schema? table
---@field agents_md? string by prompt.agents_md
---@field missing_skills? string[] ids
---@field instructions? string the gateway's
---@field baseline? string where the job gives none

local function standing(job, extras)
  local context = job.context or NO_CONTEXT
  return joined(
    block("Persona", persona(job)),
    block("Baseline", context.baseline_context or extras.baseline or prompts.baseline),
    block("How to work", extras.facts and joined(prompts.work, extras.has_todo and prompts.todo)),
    block("Project", joined(context.project_context, extras.agents_md)))
end

local function task(job, extras)
  local context = job.context or NO_CONTEXT
  local preferences = context.preferences or {}
  return joined(
    block("Task", context.task_context),
    block("Requirements", numbered(context.requirements)),
    block("Acceptance criteria", numbered(criteria(context))),
    block("Preferences", next(preferences) and json.encode(preferences)),
    block("Additional context", context.additional_context),
    block("Skills", skills(context, extras.missing_skills)),
    block("Gateway", extras.instructions and prompts.gateway .. extras.instructions))
end

---It is the same for all jobs of a project, and so are the tools, which most templates put behind
---it: a server that keeps what it has read reads neither again.
---@param job sba.job
---@param extras sba.prompt.extras
---@return string
function prompt.system(job, extras) return standing(job, extras) .. "\n" end

---What another agent is told, which knows its own tools.
---@param job sba.job
---@return string empty where the job says nothing of a task
function prompt.for_another(job)
  local asked = task(job, {})
  return asked == "" and "" or joined(standing(job, { baseline = "" }), asked)
end

---The first message. The task is not in the system text: some templates leave that out after a
---tool's result.
---@param job sba.job
---@param extras sba.prompt.extras
---@return string
function prompt.opening(job, extras)
  local schema, begin = extras.answer_schema, prompts.begin
  if #job.context.acceptance_criteria > 0 then begin = prompts.begin_with_criteria end
  return joined(
    block("Facts", extras.facts),
    task(job, extras),
    begin,
    schema and prompts.answer_in_json:format(json.encode(schema)))
end

---The system text of a single question.
---@param job sba.job
---@param extras sba.prompt.extras
---@param instructions? string the step's
---@param status string
---@return string
function prompt.question(job, extras, instructions, status)
  extras.baseline = prompts.question
  return joined(standing(job, extras), task(job, extras),
    block("Instructions", instructions), block("Status", status) .. "\n")
end

---@param job sba.job
---@return boolean
function prompt.wants_agents_md(job) return not job.context or job.context.agents_md ~= false end

-- Short lines and numbers have nearly a token a byte.
local function cut_to_tokens(content, most)
  local tokens = text.tokens(content)
  if tokens <= most then return content end
  return text.cut(content, #content * most // tokens)
end

---The log says why it cannot be shown.
---@param run { workspace: native.root, job: sba.job, log: table }
---@param context_length integer tokens
---@return string? nil: there is none, or the job wants none
function prompt.agents_md(run, context_length)
  if not prompt.wants_agents_md(run.job) then return nil end
  local most = math.min(MOST, context_length * context_length // MOST)
  local found, failure = run.workspace:read(AGENTS_MD, { max_bytes = most + LONGEST_CHARACTER })
  if not found and failure.code == "not_found" then return nil end
  local content = found and text.cut(found.content, most) or ""
  local problem = failure and redact(failure.message)
  if not text.is_utf8(content) or content:find "\0" then problem = AGENTS_MD .. " is not UTF-8 text" end
  if problem then
    run.log:event("warning", "agents_md.left_out", { error = problem })
    return prompts.agents_md_left_out:format(problem)
  end
  if text.trim(content) == "" then return nil end
  content = cut_to_tokens(content, context_length // MOST_SHARE)
  local shown, size = #content, found.size_bytes
  local cut, note = "none", ""
  if shown < size then cut, note = "end", prompts.agents_md_cut:format(shown, size) end
  -- What follows its end is the job's again, so it cannot hold the mark of its end.
  local clean = redact(content, cut):gsub("%[end of AGENTS", "(end of AGENTS")
  return prompts.agents_md:format(text.trim_end(clean), note)
end

local marks = { pending = "[ ]", in_progress = "[>]", done = "[x]", dropped = "[-]" }

local function todo_lines(items)
  local lines = {}
  for _, item in ipairs(items) do
    local indent = type(item.parent) == "string" and "  " or ""
    local line = ("%s%s %s %s"):format(indent, marks[item.status], item.id, item.title)
    local has_note = type(item.note) == "string" and item.note ~= ""
    lines[#lines + 1] = has_note and ("%s (%s)"):format(line, item.note) or line
  end
  return table.concat(lines, "\n")
end

---@param seconds number
---@return string rounded, so that a text seldom changes
function prompt.time(seconds)
  if seconds < 120 then return ("%d seconds"):format(seconds // 1) end
  return ("%d minutes"):format(seconds // 60)
end

---@param remaining? number seconds to the job's deadline
---@param items? table[] of the todo list; nil: there is none
---@param scarce? string what is nearly used up
---@return string
function prompt.status(remaining, items, scarce)
  local left = remaining and prompt.time(remaining) or "no limit"
  local status = ("Time left: %s.%s"):format(left, scarce and prompts.scarce:format(scarce) or "")
  if not items then return status end
  local list = #items > 0 and todo_lines(items) or "(empty)"
  return ("%s\n\nTodo list:\n%s"):format(status, list)
end

return prompt
