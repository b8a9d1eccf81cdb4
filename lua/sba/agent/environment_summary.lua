-- SPDX-License-Identifier: Apache-2.0
-- What a model would otherwise find out first: system, tools, limits, two levels of the workspace,
-- and the files that the job names. Nothing is run for it.

local file = require "native.file"
local humanize = require "sba.util.humanize"
local identity = require "native.identity"
local names_in = require "sba.util.files".entries
local native_text = require "native.text"
local printable = require "sba.util.printable"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local prompts = require "sba.agent.prompts"
local real_path = require "native.confine".real_path
local redact = require "native.secret".redact

local summary = { MOST_SHOWN = 16 * 1024 } -- bytes of one tool result

local MOST_LINES <const>, LEAST_LINES <const> = 60, 10 -- of the listing
local TOKENS_PER_LINE <const> = 200 -- of the model's context
-- What is read: names of the workspace, and of a directory in it; directories; levels.
local MOST_NAMES <const>, MOST_OF_ONE <const> = 4000, 500
local MOST_DIRECTORIES <const>, DEEPEST <const> = 128, 8
local MOST_AGENTS_MD <const>, LONGEST_AGENTS_MD <const> = 10, 240 -- files; bytes of a path
local LONGEST_NAME <const>, LONGEST_BRANCH <const> = 80, 200 -- bytes
local MOST_NAMED <const>, MOST_OF_NAMED <const> = 8, 8192 -- files that the job names; bytes of them together
local MOST_OF_HEAD <const> = 400 -- bytes of one that does not fit
local BYTES_PER_TOKEN <const> = 1 / 8 -- of them, and of the model's context: a thirtieth of it, or less
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
    local list, more = names_in(root, directory.path, directory == top and MOST_NAMES or MOST_OF_ONE)
    directory.list, directory.more = list or {}, more
    for _, entry in ipairs(directory.list) do
      local path = directory == top and entry.name or directory.path .. "/" .. entry.name
      local is_work = not humanize.has(PASSED_OVER, entry.name)
      if entry.type == "directory" and is_work and directory.depth < DEEPEST then
        queue[#queue + 1], entry.path, entry.depth = entry, path, directory.depth + 1
      elseif entry.type == "file" and entry.name == "AGENTS.md" and directory ~= top then
        found[#found + 1] = path
      elseif entry.type == "file" and (words[path] or words[entry.name]) and path:find "[./]" then
        named[#named + 1] = path
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
  local is_hidden = ("/" .. name):find("/.", 1, true) or name:find("..", 1, true)
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
  local is_commit = #head >= 40 and #head <= 64 and head:find("^%x+$") -- SHA-1 or SHA-256
  return is_commit and "detached HEAD at " .. head:sub(1, 12) or "a repository, its HEAD cannot be read"
end

local function shell_of(environment)
  local bash, shell = process.find("bash", environment.PATH), real_path "/bin/sh"
  if bash then return line_of(bash) end
  if shell and shell ~= "/bin/sh" then return ("/bin/sh (%s)"):format(line_of(shell)) end
  return shell or "none"
end

local function system(environment)
  local kernel, bytes = identity.system(), file.read("/etc/os-release", LARGEST_OS_RELEASE, { regular = true })
  local distribution = bytes and ("\n" .. bytes):match '\nPRETTY_NAME="?([^"\n]+)'
  local of = distribution and line_of(distribution) .. ", " or ""
  return ("System: %s%s %s, %s. Shell: %s"):format(
    of, kernel.name, line_of(kernel.release), kernel.machine, shell_of(environment))
end

local function tools(environment)
  local there, missing = {}, {}
  for _, name in ipairs(USUAL_TOOLS) do
    local list = process.find(name, environment.PATH) and there or missing
    list[#list + 1] = name
  end
  if #there == 0 then there[1] = "none of the usual ones" end
  if #missing == 0 then missing[1] = "none" end
  return ("Tools in PATH: %s. Missing: %s."):format(table.concat(there, " "), table.concat(missing, " "))
end

local function deeper(paths)
  if #paths == 0 then return nil end
  local list = {}
  for i = 1, math.min(#paths, MOST_AGENTS_MD) do list[i] = printable.line(paths[i], LONGEST_AGENTS_MD) end
  local more = #paths > #list and (" and %d more"):format(#paths - #list) or ""
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
  if content == "" or not native_text.is_utf8(content) or content:find("\0", 1, true) then return nil end
  return head .. fenced(native_text.trim_end(redact(content, cut), "\n")), #content
end

---@param run { workspace: native.root, job: sba.job, environment: table<string, string>, artifacts?: native.root }
---@param context_length integer tokens
---@return string lines
function summary.of(run, context_length)
  local room = math.max(LEAST_LINES, math.min(MOST_LINES, context_length // TOKENS_PER_LINE))
  local context = run.job.context or {}
  local asked = ("%s\n%s"):format(context.task_context or "", table.concat(context.requirements or {}, "\n"))
  local listing, agents_md, named = summary.survey(run.workspace, room, asked)
  local branch, constraints = summary.branch(run.workspace), run.job.constraints
  local shown = math.min(summary.MOST_SHOWN, constraints.max_output_bytes)
  local lines = {
    system(run.environment), tools(run.environment),
    constraints.ext_net_allowed and "Network: allowed." or "Network: not allowed; nothing can be downloaded.",
    LIMITS:format(prompt.time(constraints.max_runtime_seconds), shown),
    run.artifacts and ARTIFACTS or "Artifacts: this job has no directory for them.",
  }
  lines[#lines + 1] = branch and "Git: " .. branch .. "."
  lines[#lines + 1] = prompt.wants_agents_md(run.job) and deeper(agents_md) or nil
  lines[#lines + 1] = #listing > 0 and "The workspace holds:" or "The workspace is empty."
  table.move(listing, 1, #listing, #lines + 1, lines)
  -- The files that the job names: most models would read them first, and some guess what they hold.
  local left = math.min(MOST_OF_NAMED, context_length * BYTES_PER_TOKEN // 1)
  for i = 1, math.min(#named, MOST_NAMED) do
    local words, size = shown_of(run.workspace, named[i], left)
    if words then lines[#lines + 1], left = "\n" .. words, left - size end
  end
  return table.concat(lines, "\n")
end

return summary
