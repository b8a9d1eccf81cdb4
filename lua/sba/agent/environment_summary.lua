-- SPDX-License-Identifier: Apache-2.0
-- What a model would otherwise find out first: system, tools, limits, two levels of the workspace,
-- and the files that the job names. Nothing is run for it.

local file = require "native.file"
local humanize = require "sba.util.humanize"
local identity = require "native.identity"
local json = require "sba.util.json"
local names_in = require "sba.util.files".entries
local native_text = require "native.text"
local printable = require "sba.util.printable"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local prompts = require "sba.agent.prompts"
local real_path = require "native.confine".real_path
local redact = require "native.secret".redact

local summary = {}

local MOST_SHOWN <const> = 16 * 1024 -- bytes of one tool result
local MOST_LINES <const>, LEAST_LINES <const> = 60, 10 -- of the listing
local TOKENS_PER_LINE <const> = 200 -- of the model's context
-- What is read: names of the workspace, and of a directory in it; directories; levels.
local MOST_NAMES <const>, MOST_OF_ONE <const> = 4000, 500
local MOST_DIRECTORIES <const>, DEEPEST <const> = 128, 8
-- Files, and bytes of a path.
local MOST_AGENTS_MD <const>, LONGEST_AGENTS_MD <const> = 10, 240
local LONGEST_NAME <const>, LONGEST_BRANCH <const> = 80, 200 -- bytes
-- Files that the job names, bytes of them together, and bytes of one that does not fit.
local MOST_NAMED <const>, MOST_OF_NAMED <const>, MOST_OF_HEAD <const> = 8, 8192, 400
-- Bytes of these files for a token of the model's context, of which they take a thirtieth or less.
local BYTES_PER_TOKEN <const> = 1 / 8
local LARGEST_OS_RELEASE <const>, LARGEST_HEAD <const> = 16 * 1024, 4096 -- bytes

-- What most projects need comes first.
local USUAL_TOOLS <const> = {
  "bash", "git", "make", "cmake", "gcc", "clang", "python3", "python", "pip", "pytest", "node", "npm",
  "go", "cargo", "java", "mvn", "ruby", "perl", "php", "rg", "jq", "curl", "patch",
}

-- Made by tools.
local PASSED_OVER <const> = { ".git", ".hg", ".svn", ".venv", ".tox", "__pycache__", "node_modules" }

local ARTIFACTS <const> = "Artifacts: files to hand over go below $CYNODE_ARTIFACTS_DIR, "
  .. "in commands and in the paths of the file tools."
local LIMITS <const> = "Limits: %s for the job; at most %d bytes of a result are shown."

local function line_of(name) return printable.line(name, LONGEST_NAME) end

-- The listing

--- share: entries of a directory that get a line.
local function add_lines(lines, entry, indent, share)
  local name, list = indent .. line_of(entry.name), entry.list or {}
  local shown, about = math.min(#list, share), nil
  if entry.type == "directory" then
    name = name .. "/"
    if shown < #list or entry.more then about = (entry.more and "more than " or "") .. #list end
    if about and shown > 0 then about = ("first %d of %s"):format(shown, about) end
  elseif entry.type ~= "file" then
    about = entry.type
  end
  lines[#lines + 1] = about and ("%s (%s)"):format(name, about) or name
  for i = 1, shown do add_lines(lines, list[i], "  ", 0) end
end

--- Breadth first, within bounds. Each directory gets a `list`, and `more` if that is not all.
--- Returns the first one, the AGENTS.md files below it, and the files whose path or name is among
--- the words.
local function read(root, words)
  local top, found, named = { depth = 0, path = "." }, {}, {}
  local queue, names = { top }, 0
  for at, directory in ipairs(queue) do -- which grows meanwhile
    if at > MOST_DIRECTORIES or names >= MOST_NAMES then break end
    local is_top, depth = directory == top, directory.depth
    local list, more = names_in(root, directory.path, is_top and MOST_NAMES or MOST_OF_ONE)
    directory.list, directory.more = list or {}, more
    for _, entry in ipairs(directory.list) do
      local name = entry.name
      local path = is_top and name or directory.path .. "/" .. name
      local is_wanted = (words[path] or words[name]) and path:find "[./]"
      if entry.type == "file" and name == "AGENTS.md" and not is_top then
        found[#found + 1] = path
      elseif entry.type == "file" and is_wanted then
        named[#named + 1] = path
      elseif entry.type == "directory" and depth < DEEPEST and not json.contains(PASSED_OVER, name) then
        entry.path, entry.depth = path, depth + 1
        queue[#queue + 1] = entry
      end
    end
    names = names + #directory.list
  end
  return top, found, named
end

---@param root native.root
---@param room integer lines
---@param asked? string what the job asks for
---@return string[] lines two levels of the workspace
---@return string[] agents_md paths below the root
---@return string[] named paths of the files that `asked` names
function summary.survey(root, room, asked)
  local words = {}
  for word in (asked or ""):gmatch "[%w._/-]+" do
    words[word:gsub("^%./", ""):gsub("%.$", "")] = true
  end
  local top, found, named = read(root, words)
  local lines, entries, directories = {}, top.list, 0
  for _, entry in ipairs(entries) do directories = directories + (entry.list and 1 or 0) end
  local is_whole = #entries <= room and not top.more
  local last, share = math.min(#entries, room - 1), 0
  if is_whole then last, share = #entries, (room - #entries) // math.max(1, directories) end
  for i = 1, last do add_lines(lines, entries[i], "", share) end
  local left = (top.more and "more than " or "") .. #entries - last
  if not is_whole then lines[#lines + 1] = ("... and %s more"):format(left) end
  return lines, found, named
end

-- The lines

--- As git check-ref-format says, where it matters here.
local function is_branch(name)
  if not name or name == "" or #name > LONGEST_BRANCH or not native_text.is_utf8(name) then return false end
  local is_hidden = ("/" .. name):find "/%." or name:find "%.%."
  return not is_hidden and not name:find "[%c\127 ~^:?*%[\\]"
end

---Nothing of a hostile .git is shown but a name that git would take for a branch.
---@param root native.root
---@return string? nil: there is no .git
function summary.branch(root)
  if not root:stat ".git" then return nil end
  local content = root:read(".git/HEAD", { max_bytes = LARGEST_HEAD })
  local head = content and native_text.trim_end((content.content:match "^[^\n]*")) or ""
  local name = head:match "^ref:%s*refs/heads/(.*)$"
  if is_branch(name) then return "branch " .. redact(name) end
  -- SHA-1 or SHA-256 in hex.
  local is_commit = #head >= 40 and #head <= 64 and head:find "^%x+$"
  return is_commit and "detached HEAD at " .. head:sub(1, 12) or "a repository, its HEAD cannot be read"
end

local function shell_of(environment)
  local bash, shell = process.find("bash", environment.PATH), real_path "/bin/sh"
  if bash then return line_of(bash) end
  if shell and shell ~= "/bin/sh" then return ("/bin/sh (%s)"):format(line_of(shell)) end
  return shell or "none"
end

local function system(environment)
  local kernel, shell = identity.system(), shell_of(environment)
  local bytes = file.read("/etc/os-release", LARGEST_OS_RELEASE, { regular = true })
  local name = bytes and ("\n" .. bytes):match '\nPRETTY_NAME="?([^"\n]+)'
  local of = name and line_of(name) .. ", " or ""
  return ("System: %s%s %s, %s. Shell: %s"):format(
    of, kernel.name, line_of(kernel.release), kernel.machine, shell)
end

local function tools(environment)
  local there, missing = {}, {}
  for _, name in ipairs(USUAL_TOOLS) do
    local list = process.find(name, environment.PATH) and there or missing
    list[#list + 1] = name
  end
  if #there == 0 then there[1] = "none of the usual ones" end
  if #missing == 0 then missing[1] = "none" end
  return "Tools in PATH: " .. table.concat(there, " ") .. ". Missing: " .. table.concat(missing, " ") .. "."
end

local function deeper(paths)
  if #paths == 0 then return nil end
  local list, last = {}, math.min(#paths, MOST_AGENTS_MD)
  for i = 1, last do list[i] = printable.line(paths[i], LONGEST_AGENTS_MD) end
  local more = #paths > last and (" and %d more"):format(#paths - last) or ""
  return ("Read before you work beside them: %s%s."):format(table.concat(list, ", "), more)
end

--- Between fences that stand nowhere in it: what a file holds is not taken for words of the job.
local function fenced(content)
  local fence = "```"
  for ticks in content:gmatch "```+" do
    if #ticks >= #fence then fence = ticks .. "`" end
  end
  return ("%s\n%s\n%s"):format(fence, content, fence)
end

--- What is told of a file, and its bytes: the whole where it fits, else its first lines; nil: it is
--- no text.
local function shown_of(root, path, room)
  local found = root:read(path, { max_bytes = room + 1 })
  local content, name, cut = found and found.content or "", line_of(path), "none"
  local head = prompts.file_holds:format(name)
  if #content > room then
    content = content:sub(1, math.min(MOST_OF_HEAD, room)):match "^.*\n" or ""
    head, cut = prompts.file_begins:format(name, humanize.size(found.size_bytes)), "end"
  end
  if content == "" or not native_text.is_utf8(content) or content:find "\0" then return nil end
  return head .. fenced(native_text.trim_end(redact(content, cut), "\n")), #content
end

---@param job sba.job
---@return integer bytes of one tool result that a model is shown
function summary.shown_bytes(job) return math.min(MOST_SHOWN, job.constraints.max_output_bytes) end

---@param run { workspace: native.root, job: sba.job, environment: table<string, string>, artifacts?: native.root }
---@param context_length integer tokens
---@return string lines
function summary.of(run, context_length)
  local job, root, environment = run.job, run.workspace, run.environment
  local constraints, context = job.constraints, job.context or {}
  local requirements = table.concat(context.requirements or {}, "\n")
  local asked = (context.task_context or "") .. "\n" .. requirements
  local room = math.max(LEAST_LINES, math.min(MOST_LINES, context_length // TOKENS_PER_LINE))
  local listing, agents_md, named = summary.survey(root, room, asked)
  local time, branch = prompt.time(constraints.max_runtime_seconds), summary.branch(root)
  local lines = {
    system(environment), tools(environment),
    constraints.ext_net_allowed and "Network: allowed." or "Network: not allowed; nothing can be downloaded.",
    LIMITS:format(time, summary.shown_bytes(job)),
    run.artifacts and ARTIFACTS or "Artifacts: this job has no directory for them.",
  }
  lines[#lines + 1] = branch and "Git: " .. branch .. "."
  lines[#lines + 1] = prompt.wants_agents_md(job) and deeper(agents_md) or nil
  lines[#lines + 1] = #listing > 0 and "The workspace holds:" or "The workspace is empty."
  table.move(listing, 1, #listing, #lines + 1, lines)
  -- The files that the job names: most models would read them first, and some guess what they hold.
  local left = math.min(MOST_OF_NAMED, context_length * BYTES_PER_TOKEN // 1)
  for i = 1, math.min(#named, MOST_NAMED) do
    local words, size = shown_of(root, named[i], left)
    if words then lines[#lines + 1], left = "\n" .. words, left - size end
  end
  return table.concat(lines, "\n")
end

return summary
