-- SPDX-License-Identifier: Apache-2.0
-- The texts of the job's `context`, the files that they name, and the files of the job directory's
-- context/ for what the job leaves out. A file that cannot be read is an error.

local json = require "sba.util.json"
local listing = require "sba.util.files".entries
local markdown_list = require "sba.job.markdown_list"
local schema_check = require "sba.util.schema_check"
local secret = require "sba.util.secret"
local text = require "native.text"
local workspace = require "native.workspace"

local context = {}

local LARGEST_FILE <const> = 1024 * 1024 -- bytes
local MOST_SKILLS <const> = 1000 -- entries of context/skills
-- How a job calls its directory, wherever that is mounted.
local JOB_DIRECTORY <const> = "/job/"
-- NAME_context, and the file context/NAME.md.
local TEXTS <const> = { "baseline", "project", "task", "additional" }

---@class sba.context
---@field baseline_context? string
---@field project_context? string
---@field task_context? string
---@field requirements string[]
---@field acceptance_criteria string[]
---@field checks table<integer, table> arguments of run_command, by criterion
---@field preferences? table
---@field additional_context? string
---@field skill_ids string[]
---@field skills { name?: string, text: string }[]
---@field agents_md? boolean
---@field persona_title? string
---@field persona_description? string

-- Our own keys, and what is not shown to anybody, are not redacted.
local shape_of_skill <const> = { properties = { name = {}, text = {} } }
local shape <const> = { properties = {
  skill_ids = { enum = {} }, checks = { enum = {} }, skills = { items = shape_of_skill },
} }

local loader = {}
loader.__index = loader

function loader:refuse(pointer, format, ...)
  schema_check.refuse(self.errors, pointer, secret.redact(format:format(...)))
end

local function problem_of(found, failure)
  if not found then return "cannot be read: " .. failure.message end
  if found.truncated then return ("is larger than %d bytes"):format(LARGEST_FILE) end
  if not text.is_utf8(found.content) then return "is not UTF-8 text" end
end

-- pointer: of the text that names the file; nil: the file need not be there.
function loader:file(path, pointer)
  local found, failure = nil, { code = "not_found", message = "there is no job directory" }
  if self.directory then found, failure = self.directory:read(path, { max_bytes = LARGEST_FILE }) end
  if not pointer and not found and failure.code == "not_found" then return nil end
  local problem = problem_of(found, failure)
  if not problem then return found.content end
  if pointer then path = JOB_DIRECTORY .. path end
  self:refuse(pointer or "/context", "the context file %s %s", path, problem)
end

function loader:text(pointer, value)
  if type(value) ~= "string" then return json.encode(value) end
  local is_path = value:sub(1, #JOB_DIRECTORY) == JOB_DIRECTORY and not value:find("\n", 1, true)
  if not is_path then return value end
  return self:file(value:sub(#JOB_DIRECTORY + 1), pointer) or ""
end

function loader:list(name, given)
  local list, pointer = json.array {}, "/context/" .. name
  if not given then
    local markdown = self:file("context/" .. name .. ".md")
    if not markdown and name == "requirements" then markdown = self:file "requirements.md" end
    return json.array(markdown_list.read(markdown or ""))
  end
  if given == "" then return list end
  if not json.is_array(given) then return json.array { self:text(pointer, given) } end
  for i, value in ipairs(given) do list[i] = self:text(pointer .. "/" .. i - 1, value) end
  return list
end

-- Returns the texts of the criteria, and the checks by criterion.
function loader:criteria(given)
  local checks = {}
  if not json.is_array(given) then return self:list("acceptance_criteria", given), checks end
  local texts = json.array {}
  for i, value in ipairs(given) do
    texts[i] = value
    if json.is_object(value) then texts[i], checks[i] = value.criterion, value.check end
  end
  return self:list("acceptance_criteria", texts), checks
end

function loader:preferences()
  local path = "context/preferences.json"
  local bytes = self:file(path)
  if not bytes then return nil end
  local value, failure = json.decode(bytes)
  if json.is_object(value) then return value end
  local problem = failure and "is not JSON: " .. failure.message or "must hold an object"
  self:refuse("/context", "the context file %s %s", path, problem)
end

local function first_text(object, names)
  for _, name in ipairs(names) do
    if type(object[name]) == "string" then return object[name] end
  end
end

function loader:skill(pointer, value, name)
  if type(value) == "string" then
    local path = not name and value:match "^/job/(.*)%.md$"
    if path then name = path:match "^.*/(.*)$" or path end
    return { name = name, text = self:text(pointer, value) }
  end
  local body = type(value) == "table" and first_text(value, { "content", "text" })
  if not body then return { name = name, text = json.encode(value) } end
  name = first_text(value, { "name", "title", "id" }) or name
  return { name = name, text = self:text(pointer, body) }
end

function loader:skills(given)
  local list, names, pointer = {}, {}, "/context/skills"
  if given == "" then return list end
  if type(given) == "string" then return { self:skill(pointer, given) } end
  for name, value in pairs(given) do
    if value ~= json.null then names[#names + 1] = name end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local place = math.type(name) and name - 1 or schema_check.token(name)
    local own_name = type(name) == "string" and name or nil
    list[i] = self:skill(pointer .. "/" .. place, given[name], own_name)
  end
  return list
end

function loader:skills_of_directory()
  local list, found, more = {}, nil, nil
  if self.directory then found, more = listing(self.directory, "context/skills", MOST_SKILLS) end
  if more == true then
    self:refuse("/context", "the directory context/skills holds more than %d files", MOST_SKILLS)
  end
  for _, entry in ipairs(found or {}) do
    local name = entry.name:match("^(.+)%.md$")
    if name then
      local words = self:file("context/skills/" .. entry.name)
      list[#list + 1] = { name = secret.redact((text.repair(name))), text = words }
    end
  end
  return list
end

---@param given? table the job's `context`
---@param job_directory? string where `/job/` is, as of job.directory_of
---@return sba.context?, sba.schema.errors?
function context.load(given, job_directory)
  local directory <close> = job_directory and workspace.open(job_directory) or nil
  local self = setmetatable({ directory = directory, errors = { total = 0 } }, loader)
  given = given or {}
  local loaded = {
    requirements = self:list("requirements", given.requirements),
    preferences = given.preferences or self:preferences(),
    skill_ids = given.skill_ids or json.array {},
    skills = given.skills and self:skills(given.skills) or self:skills_of_directory(),
    persona_title = given.persona_title, persona_description = given.persona_description,
    agents_md = given.agents_md,
  }
  loaded.acceptance_criteria, loaded.checks = self:criteria(given.acceptance_criteria)
  for _, part in ipairs(TEXTS) do
    local name = part .. "_context"
    local value, path = given[name], ("context/%s.md"):format(part)
    loaded[name] = value and self:text("/context/" .. name, value) or self:file(path)
  end
  if self.errors.total > 0 then return nil, self.errors end
  return secret.clean(loaded, shape)
end

return context
