-- SPDX-License-Identifier: Apache-2.0
-- The tools that a sandbox may call, with the arguments of the orchestrator's catalogue. Used for a gateway that cannot list its tools.

local json = require "sba.util.json"

local function tool(name, description, properties, required)
  return {
    name = name, description = description,
    inputSchema = { type = "object", properties = properties, required = json.array(required) },
  }
end

local function text(description)
  return { type = "string", description = description }
end

local task, job = text "Identifier of the task.", text "Identifier of the job."
local path = text "Path of the artifact."
local scope_type = text "Scope of the preference: system, user, group, project or task."
local scope_id = text "Identifier of the scope; not for system."

return {
  tool("artifact.put", "Upload a file as an artifact of the task.",
    { task_id = task, job_id = job, path = path, content_bytes_base64 = text "The file's bytes in base64." },
    { "task_id", "path", "content_bytes_base64" }),
  tool("artifact.get", "Fetch an artifact of the task.", { task_id = task, path = path }, { "task_id", "path" }),
  tool("artifact.list", "List the artifacts of the task.", { task_id = task }, { "task_id" }),
  tool("skills.list", "List the skills that can be fetched.", { task_id = task }, { "task_id" }),
  tool("skills.get", "Fetch a skill.", { task_id = task, skill_id = text "Identifier of the skill." }, { "task_id", "skill_id" }),
  tool("web.fetch", "Fetch a page of the web, made safe.", { task_id = task, url = text "Address of the page." }, { "task_id", "url" }),
  tool("web.search", "Search the web.",
    { task_id = task, query = text "What to search for.", limit = { type = "integer", minimum = 1, description = "Results at most." } },
    { "task_id", "query" }),
  tool("api.call", "Call an API outside.", {
    task_id = task, provider = text "Name of the provider.", operation = text "Name of the operation.",
    params = { type = "object", description = "What the operation takes." },
  }, { "task_id", "provider", "operation", "params" }),
  tool("preference.get", "Read one preference.",
    { task_id = task, scope_type = scope_type, scope_id = scope_id, key = text "Name of the preference." }, { "scope_type", "key" }),
  tool("preference.list", "List preferences of one scope.", {
    task_id = task, scope_type = scope_type, scope_id = scope_id, key_prefix = text "Beginning of the names.",
    limit = { type = "integer", minimum = 1, description = "Preferences at most." }, cursor = text "Where the last list ended.",
  }, { "scope_type" }),
  tool("preference.effective", "Read the preferences that hold for the task.", {
    task_id = task, include_sources = { type = "boolean", description = "Say which scope each comes from." },
  }, { "task_id" }),
  tool("help.list", "List the topics of the help.", { task_id = task }, {}),
  tool("help.get", "Read how to work with the orchestrator.",
    { task_id = task, topic = text "A tool's name or another topic.", path = text "A path into the help." }, { "task_id" }),
}
