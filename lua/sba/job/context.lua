-- SPDX-License-Identifier: Apache-2.0
-- The texts of the job's `context`, the files that they name, and the files of the job directory's context/ for what the job leaves out. A
-- file that cannot be read is an error.

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
local JOB_DIRECTORY <const> = "/job/" -- how a job calls its directory, wherever that is mounted

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
local shape <const> = {
  properties = { skill_ids = { enum = {} }, skills = { items = { properties = { name = {}, text = {} } } }, checks = { enum = {} } },
}

local loader = {}
loader.__index = loader

function loader:refuse(pointer, format, ...)
  schema_check.refuse(self.errors, pointer, secret.redact(format:format(...)))
end

-- pointer: of the text that names the file; nil: it need not be there.
function loader:file(path, pointer)
  local found, failure = nil, { code = "not_found", message = "there is no job directory" }
  if self.directory then found, failure = self.directory:read(path, { max_bytes = LARGEST_FILE }) end
  if not pointer and not found and failure.code == "not_found" then return nil end
  local problem = not found and "cannot be read: " .. failure.message
    or found.truncated and ("is larger than %d bytes"):format(LARGEST_FILE) or not text.is_utf8(found.content) and "is not UTF-8 text"
  if not problem then return found.content end
  self:refuse(pointer or "/context", "the context file %s %s", pointer and JOB_DIRECTORY .. path or path, problem)
end

function loader:text(pointer, value)
  if type(value) ~= "string" then return json.encode(value) end
  if value:sub(1, #JOB_DIRECTORY) ~= JOB_DIRECTORY or value:find("\n", 1, true) then return value end
  return self:file(value:sub(#JOB_DIRECTORY + 1), pointer) or ""
end

function loader:list(name, given)
  local list, pointer = json.array {}, "/context/" .. name
  if not given then
    local markdown = self:file("context/" .. name .. ".md") or name == "requirements" and self:file("requirements.md")
    return markdown and json.array(markdown_list.read(markdown)) or list
  end
  if not json.is_array(given) then return given ~= "" and json.array { self:text(pointer, given) } or list end
  for i, value in ipairs(given) do list[i] = self:text(("%s/%d"):format(pointer, i - 1), value) end
  return list
end

function loader:criteria(given)
  local plain, checks = json.is_array(given) and json.array {} or given, {}
  for i, value in ipairs(json.is_array(given) and given or {}) do
    local is_object = json.is_object(value)
    plain[i], checks[i] = is_object and value.criterion or value, is_object and value.check or nil
  end
  return self:list("acceptance_criteria", plain), checks
end

function loader:preferences()
  local path = "context/preferences.json"
  local bytes = self:file(path)
  if not bytes then return nil end
  local value, failure = json.decode(bytes)
  if json.is_object(value) then return value end
  self:refuse("/context", "the context file %s %s", path, failure and "is not JSON: " .. failure.message or "must hold an object")
end

local function first_text(object, names)
  for _, name in ipairs(names) do
    if type(object[name]) == "string" then return object[name] end
  end
end

function loader:skill(pointer, value, name)
  if type(value) == "string" then
    local file_name = value:match "^/job/(.*)%.md$"
    return { name = name or file_name and file_name:match "^.*/(.*)$" or file_name, text = self:text(pointer, value) }
  end
  local body = type(value) == "table" and first_text(value, { "content", "text" })
  if not body then return { name = name, text = json.encode(value) } end
  return { name = first_text(value, { "name", "title", "id" }) or name, text = self:text(pointer, body) }
end

function loader:skills(given)
  local list, names, pointer = {}, {}, "/context/skills"
  if type(given) == "string" then return given ~= "" and { self:skill(pointer, given) } or {} end
  for name, value in pairs(given) do
    if value ~= json.null then names[#names + 1] = name end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local place = math.type(name) and name - 1 or schema_check.token(name)
    list[i] = self:skill(pointer .. "/" .. place, given[name], type(name) == "string" and name or nil)
  end
  return list
end

function loader:skills_of_directory()
  local list, found, more = {}, nil, nil
  if self.directory then found, more = listing(self.directory, "context/skills", MOST_SKILLS) end
  if more == true then self:refuse("/context", "the directory context/skills holds more than %d files", MOST_SKILLS) end
  for _, entry in ipairs(found or {}) do
    local name = entry.name:match("^(.+)%.md$")
    if name then list[#list + 1] = { name = secret.redact((text.repair(name))), text = self:file("context/skills/" .. entry.name) } end
  end
  return list
end

---@param given? table the job's `context`
---@param job_directory? string where `/job/` is; nil: the job came on stdin
---@return sba.context?, sba.schema.errors?
function context.load(given, job_directory)
  local directory <close> = job_directory and workspace.open(job_directory) or nil
  local self = setmetatable({ directory = directory, errors = { total = 0 } }, loader)
  given = given or {}
  local function one(name, file)
    if given[name] then return self:text("/context/" .. name, given[name]) end
    return self:file("context/" .. file)
  end
  local acceptance_criteria, checks = self:criteria(given.acceptance_criteria)
  local loaded = {
    baseline_context = one("baseline_context", "baseline.md"), project_context = one("project_context", "project.md"),
    task_context = one("task_context", "task.md"), requirements = self:list("requirements", given.requirements),
    acceptance_criteria = acceptance_criteria, checks = checks, preferences = given.preferences or self:preferences(),
    additional_context = one("additional_context", "additional.md"), skill_ids = given.skill_ids or json.array {},
    skills = given.skills and self:skills(given.skills) or self:skills_of_directory(),
    persona_title = given.persona_title, persona_description = given.persona_description, agents_md = given.agents_md,
  }
  if self.errors.total > 0 then return nil, self.errors end
  return secret.clean(loaded, shape)
end

return context
