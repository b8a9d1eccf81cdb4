-- SPDX-License-Identifier: Apache-2.0
-- AGENTS.md of the workspace's root: what a project tells agents. Every prompt has it as part of the project, marked as the
-- workspace's, unless the job's `context.agents_md` is false.

local secret = require "sba.util.secret"
local text = require "native.text"

local agents_md = {}

local NAME <const> = "AGENTS.md"
local MOST <const> = 32 * 1024 -- bytes that a prompt has of it: a third of a context of as many tokens, and ever less of a smaller one
local LONGEST_CHARACTER <const> = 4 -- bytes

local FORM <const> = [=[
### AGENTS.md of the workspace

The project's own rules for agents, from a file of the workspace. Where the job says otherwise, the job counts.

%s
[end of AGENTS.md%s]]=]
local NOT_SHOWN <const> = "The workspace's AGENTS.md is not shown here: %s."

--- At most so many bytes of it as text; nil and why it cannot be shown, or nil if there is nothing to show.
local function read(root, most)
  local found, failure = root:read(NAME, { max_bytes = most + LONGEST_CHARACTER })
  if not found then return nil, failure.code ~= "not_found" and failure.message or nil end
  local content = text.cut(found.content, most)
  if content:find("\0", 1, true) or not text.is_utf8(content) then return nil, NAME .. " is not UTF-8 text" end
  if text.trim(content) == "" then return nil end
  return content, nil, found.size_bytes
end

---Whether the job takes the workspace's AGENTS.md files.
---@param job sba.job
---@return boolean
function agents_md.is_wanted(job)
  return not job.context or job.context.agents_md ~= false
end

---What a prompt says of the root's AGENTS.md.
---@param root native.root of the workspace
---@param context_length integer of the model, in tokens
---@return string? words nil: there is none
---@return string? problem why it is not shown; words say so
function agents_md.of(root, context_length)
  local most = math.min(MOST, context_length * context_length // MOST)
  local content, problem, size = read(root, most)
  if problem then
    problem = secret.redact(problem)
    return NOT_SHOWN:format(problem), problem
  end
  if not content then return nil end
  local cut = #content < size and (": the first %d of %d bytes; read_file gives the rest"):format(#content, size) or ""
  -- What follows its end is the job's again, so it cannot hold the mark of its end.
  local clean = secret.redact(content, cut ~= "" and "end" or "none"):gsub("%[end of AGENTS", "(end of AGENTS")
  return FORM:format(text.trim_end(clean), cut)
end

return agents_md
