-- SPDX-License-Identifier: Apache-2.0
-- What a model would otherwise have to find out first: the system, the tools, the limits and the workspace. Nothing is run for it. It is
-- told once, before the task.

local file = require "native.file"
local git_branch = require "sba.agent.git_branch"
local identity = require "native.identity"
local process = require "native.process"
local real_path = require "native.confine".real_path
local survey = require "sba.agent.survey"

local facts = {
  MOST_SHOWN = 16 * 1024, -- bytes of one tool result
}

local MOST_LINES <const> = 60 -- of the listing
local LEAST_LINES <const> = 10
local TOKENS_PER_LINE <const> = 200 -- of the model's context: a small one gets a shorter listing
local LARGEST_OS_RELEASE <const> = 16 * 1024 -- bytes
local LONGEST_PATH <const> = 1000 -- bytes
local MOST_NAMED <const> = 10 -- AGENTS.md files
local LONGEST_NAMED <const> = 240 -- bytes of the path of one
local KIBIBYTE <const> = 1024

-- What models reach for, the ones that most projects need first.
local USUAL_TOOLS <const> = {
  "bash", "git", "make", "cmake", "gcc", "clang", "python3", "python", "pip", "pytest", "node", "npm", "go", "cargo", "java", "mvn", "ruby",
  "perl", "php", "rg", "jq", "curl", "patch",
}

--- The distribution, by /etc/os-release.
local function distribution()
  local bytes = file.read("/etc/os-release", LARGEST_OS_RELEASE, { regular = true })
  local name = bytes and ("\n" .. bytes):match '\nPRETTY_NAME="?([^"\n]*)'
  return name and name ~= "" and survey.shown(name) .. ", " or ""
end

local function system(environment)
  local kernel, shell = identity.system(), real_path "/bin/sh"
  if shell then shell = shell == "/bin/sh" and shell or ("/bin/sh (%s)"):format(survey.shown(shell)) end
  local bash = process.find("bash", environment.PATH)
  shell = bash and survey.shown(bash) or shell
  local release = survey.shown(kernel.release)
  return ("System: %s%s %s, %s. Shell: %s"):format(distribution(), kernel.name, release, kernel.machine, shell or "none")
end

local function tools(environment)
  local there, missing = {}, {}
  for _, name in ipairs(USUAL_TOOLS) do
    local list = process.find(name, environment.PATH) and there or missing
    list[#list + 1] = name
  end
  return ("Tools in PATH: %s. Missing: %s."):format(#there > 0 and table.concat(there, " ") or "none of the usual ones",
    #missing > 0 and table.concat(missing, " ") or "none")
end

local function size(bytes)
  if bytes < KIBIBYTE then return ("%d bytes"):format(bytes) end
  if bytes < KIBIBYTE * KIBIBYTE then return ("%d KiB"):format(bytes // KIBIBYTE) end
  return ("%d MiB"):format(bytes // (KIBIBYTE * KIBIBYTE))
end

local function time(seconds)
  if seconds < 120 then return ("%d seconds"):format(seconds) end
  return ("%d minutes"):format(seconds // 60)
end

--- Where further AGENTS.md files are.
local function deeper(seen)
  local paths, shown = seen.agents_md, {}
  if #paths == 0 then return nil end
  for i = 1, math.min(#paths, MOST_NAMED) do shown[i] = survey.shown(paths[i], LONGEST_NAMED) end
  local more = #paths > #shown and (" and %d more"):format(#paths - #shown) or ""
  if seen.partial then more = more .. "; not every directory was searched" end
  return ("Read before you work beside them: %s%s."):format(table.concat(shown, ", "), more)
end

---@class agent.facts.options
---@field workspace native.root
---@field artifacts boolean whether there is a directory for them
---@field constraints table the job's
---@field environment table<string, string> the commands'
---@field agents_md? boolean whether AGENTS.md files are named
---@field context_length integer of the model, in tokens

---The facts, in lines.
---@param options agent.facts.options
---@return string
function facts.of(options)
  local room = math.max(LEAST_LINES, math.min(MOST_LINES, options.context_length // TOKENS_PER_LINE))
  local seen, branch = survey.of(options.workspace, room), git_branch(options.workspace)
  local constraints = options.constraints
  local lines = {
    system(options.environment), tools(options.environment),
    constraints.ext_net_allowed and "Network: allowed." or "Network: not allowed; nothing can be downloaded.",
    ("Limits: %s for the job; you see at most %s of a result, read_output gives the rest."):format(
      time(constraints.max_runtime_seconds), size(math.min(facts.MOST_SHOWN, constraints.max_output_bytes))),
    options.artifacts and "Artifacts: files to hand over go below $CYNODE_ARTIFACTS_DIR, in commands and in the paths of the file tools."
      or "Artifacts: this job has no directory for them.",
  }
  lines[#lines + 1] = branch and "Git: " .. branch .. "."
  lines[#lines + 1] = options.agents_md and deeper(seen) or nil
  local path = survey.shown(options.workspace:path(), LONGEST_PATH)
  lines[#lines + 1] = ("The workspace is %s%s"):format(path, #seen.lines > 0 and ":" or ", and empty.")
  return table.concat(lines, "\n") .. (#seen.lines > 0 and "\n" .. table.concat(seen.lines, "\n") or "")
end

return facts
