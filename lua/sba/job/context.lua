-- SPDX-License-Identifier: Apache-2.0
-- What the work is about, brought together: the texts of the job's `context`, the files they name, and the files of the
-- job directory's context/ for what the job leaves out. A file that cannot be read is an error, never left out silently.

local json = require "sba.util.json"
local lines = require "sba.util.lines"
local listing = require "sba.util.listing"
local schema_check = require "sba.util.schema_check"
local secret = require "sba.util.secret"
local text = require "native.text"
local workspace = require "native.workspace"

local context = {}

local LARGEST_FILE <const> = 1024 * 1024 -- bytes
local MOST_SKILLS <const> = 100
local MOST_ENTRIES <const> = 1000 -- of context/skills
local BESIDE <const> = { requirements = "requirements.md" } -- files beside the job that are read in place of those in context/
local JOB_DIRECTORY <const> = "/job/" -- how a job calls its directory, wherever that is mounted

---@class sba.context
---@field baseline_context? string
---@field project_context? string
---@field task_context? string
---@field requirements string[]
---@field acceptance_criteria string[]
---@field checks table<integer, table> arguments of run_command, by the number of the criterion
---@field preferences? table
---@field additional_context? string
---@field skill_ids string[]
---@field skills { name?: string, text: string }[]
---@field agents_md? boolean false: without AGENTS.md of the workspace
---@field persona_title? string
---@field persona_description? string

-- What of the context is ours: its own keys, and what is not shown to anybody.
local shape <const> = {
  properties = {
    skill_ids = { enum = {} },
    skills = { items = { properties = { name = {}, text = {} } } },
    checks = { enum = {} },
  },
}

-- Raised inside load, and one of its errors.
local function refuse(format, ...)
  error({ refused = format:format(...) }, 0)
end

--- The text of a file of the job directory, or nil and why it cannot be opened.
local function read(directory, path)
  if not directory then refuse("the context file %s cannot be read: there is no job directory", path) end
  local found, failure = directory:read(path, { max_bytes = LARGEST_FILE })
  if not found then return nil, failure end
  if found.truncated then refuse("the context file %s is larger than %d bytes", path, LARGEST_FILE) end
  if not text.is_utf8(found.content) then refuse("the context file %s is not UTF-8 text", path) end
  return found.content
end

--- The text itself, or that of the file it names; a structure as JSON.
local function resolve(directory, value)
  if type(value) ~= "string" then return json.encode(value) end
  if value:sub(1, #JOB_DIRECTORY) ~= JOB_DIRECTORY or value:find("\n", 1, true) then return value end
  local content, failure = read(directory, value:sub(#JOB_DIRECTORY + 1))
  if not content then refuse("the context file %s cannot be read: %s", value, failure.message) end
  return content
end

--- The text of context/NAME, or of another file; nil where there is none.
local function optional(directory, name, otherwise)
  if not directory then return nil end
  local path = "context/" .. name
  local content, failure = read(directory, path)
  if not content and failure.code == "not_found" and otherwise then
    path = otherwise
    content, failure = read(directory, path)
  end
  if content or failure.code == "not_found" then return content end
  refuse("the context file %s cannot be read: %s", path, failure.message)
end

local function one_text(directory, given, name)
  if given then return resolve(directory, given) end
  return optional(directory, name)
end

local function list_item(line)
  return line:match("^%s*[-*+]%s+(%S.*)$") or line:match("^%s*%d+[.)]%s+(%S.*)$")
end

--- The entries of a Markdown list, each with its further lines; paragraphs where there is no list.
local function entries(markdown)
  local list, open, has_items = json.array {}, nil, false
  for _, line in lines(markdown) do has_items = has_items or list_item(line) ~= nil end
  for _, line in lines(markdown) do
    local words = text.trim(line)
    local item = list_item(words)
    if words == "" or words:find("^#") then
      open = nil
    elseif item or not open and not has_items then
      open = { item or words }
      list[#list + 1] = open
    elseif open then
      open[#open + 1] = words
    end
  end
  for i, parts in ipairs(list) do list[i] = table.concat(parts, " ") end
  return list
end

--- The texts of a list, or of what stands alone; of context/NAME.md where there is none.
local function texts(part, directory, given, name)
  local list, pointer = json.array {}, "/context/" .. name
  local is_list = json.is_array(given)
  if given and not is_list then given = given ~= "" and { given } or {} end
  for i, value in ipairs(given or {}) do
    list[i] = part(is_list and ("%s/%d"):format(pointer, i - 1) or pointer, resolve, directory, value) or ""
  end
  local markdown = not given and part("/context", optional, directory, name .. ".md", BESIDE[name])
  return markdown and entries(markdown) or list
end

--- The criteria as texts, and the checks of those that have one.
local function criteria(part, directory, given)
  if not json.is_array(given) then return texts(part, directory, given, "acceptance_criteria"), {} end
  local plain, checks = json.array {}, {}
  for i, value in ipairs(given) do
    local is_object = json.is_object(value)
    plain[i], checks[i] = is_object and value.criterion or value, is_object and value.check or nil
  end
  return texts(part, directory, plain, "acceptance_criteria"), checks
end

local function preferences(directory, given)
  if given then return given end
  local bytes = optional(directory, "preferences.json")
  if not bytes then return nil end
  local value, failure = json.decode(bytes)
  if failure then refuse("the context file context/preferences.json is not JSON: %s", failure.message) end
  if not json.is_object(value) then
    refuse("the context file context/preferences.json must hold an object")
  end
  return value
end

local function without_null(object)
  local members = {}
  for name, value in pairs(object) do
    if value ~= json.null then members[name] = value end
  end
  return members
end

--- One skill as a job may give it: a text, or an object that holds one.
local function skill(directory, value, name)
  if type(value) == "string" then
    local file_name = value:match("^/job/.*%.md$") and value:match("^.*/(.*)$")
    return { name = name or file_name and file_name:sub(1, -#".md" - 1), text = resolve(directory, value) }
  end
  if json.is_object(value) then value = without_null(value) end
  local body = type(value) == "table" and (value.content or value.text)
  if type(body) ~= "string" then return { name = name, text = json.encode(value) } end
  local title = value.name or value.title or value.id
  return { name = type(title) == "string" and title or name, text = resolve(directory, body) }
end

local function given_skills(part, directory, given)
  local list, names, pointer = {}, {}, "/context/skills/"
  if type(given) == "string" then return given ~= "" and { part("/context/skills", skill, directory, given) } or {} end
  if json.is_array(given) then
    for i, value in ipairs(given) do list[i] = part(pointer .. i - 1, skill, directory, value) or {} end
    return list
  end
  given = without_null(given)
  for name in pairs(given) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    list[i] = part(pointer .. schema_check.token(name), skill, directory, given[name], name) or {}
  end
  return list
end

local function skills_of_directory(directory)
  local list, found, more = {}, nil, nil
  if directory then found, more = listing(directory, "context/skills", MOST_ENTRIES) end
  if more == true then refuse("the directory context/skills holds more than %d files", MOST_ENTRIES) end
  for _, entry in ipairs(found or {}) do
    local name = entry.name:match("^(.+)%.md$")
    if name then list[#list + 1] = { name = secret.redact((text.repair(name))), text = optional(directory, "skills/" .. entry.name) } end
  end
  return list
end

local function count_skills(count)
  if count > MOST_SKILLS then refuse("the job has %d skills; at most %d are possible", count, MOST_SKILLS) end
end

local function skills_of(part, directory, given, ids)
  local list = given and given_skills(part, directory, given) or part("/context", skills_of_directory, directory) or {}
  part("/context/skills", count_skills, #list + #ids)
  return list
end

--- Makes one part of the context. What is wrong with it is an error at its pointer.
local function collector(errors)
  return function(pointer, make, ...)
    local ok, made = pcall(make, ...)
    if ok then return made end
    if type(made) ~= "table" or not made.refused then error(made, 0) end
    schema_check.refuse(errors, pointer, secret.redact(made.refused))
  end
end

local function bring_together(directory, given, errors)
  local part = collector(errors)
  local function one(name, file)
    return part("/context" .. (given[name] and "/" .. name or ""), one_text, directory, given[name], file)
  end
  local skill_ids = given.skill_ids or json.array {}
  local acceptance_criteria, checks = criteria(part, directory, given.acceptance_criteria)
  return {
    baseline_context = one("baseline_context", "baseline.md"), project_context = one("project_context", "project.md"),
    task_context = one("task_context", "task.md"),
    requirements = texts(part, directory, given.requirements, "requirements"),
    acceptance_criteria = acceptance_criteria, checks = checks,
    preferences = part("/context", preferences, directory, given.preferences),
    additional_context = one("additional_context", "additional.md"),
    skill_ids = skill_ids,
    persona_title = given.persona_title, persona_description = given.persona_description,
    skills = skills_of(part, directory, given.skills, skill_ids),
    agents_md = given.agents_md,
  }
end

---Brings together the context of a job.
---@param given? table the job's `context`
---@param job_directory? string where `/job/` is; nil: there is none (the job came on stdin)
---@return sba.context|nil, sba.schema.errors? errors that name the files
function context.load(given, job_directory)
  local directory <close> = job_directory and workspace.open(job_directory) or nil
  local errors = { total = 0 }
  local loaded = bring_together(directory, given or {}, errors)
  if errors.total > 0 then return nil, errors end
  return secret.clean(loaded, shape)
end

return context
