-- SPDX-License-Identifier: Apache-2.0
-- What a model would otherwise have to find out first: the system, the tools, the limits and the workspace, by a listing of two levels.
-- Nothing is run for it. It is told once, before the task.

local file = require "native.file"
local identity = require "native.identity"
local names_in = require "sba.util.listing"
local native_text = require "native.text"
local printable = require "sba.util.printable"
local process = require "native.process"
local prompt = require "sba.agent.prompt"
local real_path = require "native.confine".real_path
local redact = require "native.secret".redact

local facts = {
  MOST_SHOWN = 16 * 1024, -- bytes of one tool result
}

local MOST_LINES <const>, LEAST_LINES <const> = 60, 10 -- of the listing
local TOKENS_PER_LINE <const> = 200 -- of the model's context: a small one gets a shorter listing
local MOST_NAMES <const>, MOST_OF_ONE <const> = 4000, 500 -- read in all, and of one directory, about
local MOST_DIRECTORIES <const>, DEEPEST <const> = 128, 8 -- that are read; levels below the workspace
local MOST_AGENTS_MD <const>, LONGEST_AGENTS_MD <const> = 10, 240 -- files that are named; bytes of the path of one
local LONGEST_NAME <const>, LONGEST_PATH <const>, LONGEST_BRANCH <const> = 80, 1000, 200 -- bytes that are shown
local LARGEST_OS_RELEASE <const>, LARGEST_HEAD <const> = 16 * 1024, 4096 -- bytes
local KIBIBYTE <const> = 1024

-- What models reach for, the ones that most projects need first.
local USUAL_TOOLS <const> = {
  "bash", "git", "make", "cmake", "gcc", "clang", "python3", "python", "pip", "pytest", "node", "npm", "go", "cargo", "java", "mvn", "ruby",
  "perl", "php", "rg", "jq", "curl", "patch",
}

-- Made by tools; nobody edits what is in them.
local PASSED_OVER <const> = {
  [".git"] = true, [".hg"] = true, [".svn"] = true, [".venv"] = true, [".tox"] = true, ["__pycache__"] = true, ["node_modules"] = true,
}

--- A name from outside in one line.
local function shown(name, limit)
  local line = printable.line(name)
  limit = limit or LONGEST_NAME
  return #line > limit and native_text.cut(line, limit - 3) .. "..." or line
end

-- The listing ----------------------------------------------------------------------------------------------------------------

--- Reads directories breadth first, so that a huge workspace costs no more than a large one. Each gets `entries`, and `more` if they are
--- not all; one that was not read has none. Returns the first, the paths of AGENTS.md files below it, and whether there may be others.
local function read(root)
  local top, found, names = { depth = 0 }, {}, 0
  local queue, at = { top }, 1
  while queue[at] and at <= MOST_DIRECTORIES and names < MOST_NAMES do
    local directory = queue[at]
    local prefix = directory.path and directory.path .. "/" or ""
    directory.entries, directory.more = names_in(root, directory.path or ".", MOST_OF_ONE)
    for _, entry in ipairs(directory.entries or {}) do
      if entry.type == "directory" and not PASSED_OVER[entry.name] and directory.depth < DEEPEST then
        entry.path, entry.depth = prefix .. entry.name, directory.depth + 1
        queue[#queue + 1] = entry
      elseif entry.type == "file" and entry.name == "AGENTS.md" and directory.path then
        found[#found + 1] = prefix .. entry.name
      end
    end
    names, at = names + #(directory.entries or {}), at + 1
  end
  return top, found, queue[at] ~= nil
end

--- Shares lines out: each directory gets as many as it has entries, or an equal share of what the smaller ones leave.
local function share_out(directories, room)
  table.sort(directories, function(a, b) return #a.entries < #b.entries end)
  for i, directory in ipairs(directories) do
    directory.shown = math.min(#directory.entries, room // (#directories - i + 1))
    room = room - directory.shown
  end
end

local function line_of(entry, indent)
  local name = indent .. shown(entry.name)
  if entry.type == "file" then return name end
  if entry.type ~= "directory" then return ("%s (%s)"):format(name, entry.type) end
  local total, lines = #(entry.entries or {}), entry.shown or 0
  if total <= lines and not entry.more then return name .. "/" end
  return ("%s/ (%s%s%d)"):format(name, lines > 0 and ("first %d of "):format(lines) or "", entry.more and "more than " or "", total)
end

local function listing(top, room)
  local lines, directories, all = {}, {}, top.entries or {}
  local is_whole = #all <= room and not top.more
  local last = is_whole and #all or math.min(#all, room - 1)
  for i = 1, last do
    if all[i].entries then directories[#directories + 1] = all[i] end
  end
  share_out(directories, is_whole and room - #all or 0)
  for i = 1, last do
    lines[#lines + 1] = line_of(all[i], "")
    for j = 1, all[i].shown or 0 do lines[#lines + 1] = line_of(all[i].entries[j], "  ") end
  end
  if not is_whole then lines[#lines + 1] = ("... and %s%d more"):format(top.more and "more than " or "", #all - last) end
  return lines
end

---@param root native.root
---@param lines integer that the listing may have
---@return { lines: string[], agents_md: string[], partial: boolean } lines of the listing; paths of AGENTS.md files below the root; whether
---there may be further ones, because not every directory was looked into
function facts.survey(root, lines)
  local top, found, partial = read(root)
  return { lines = listing(top, lines), agents_md = found, partial = partial }
end

-- The lines ------------------------------------------------------------------------------------------------------------------

--- As git check-ref-format says, where it matters here.
local function is_branch(name)
  return name and name ~= "" and #name <= LONGEST_BRANCH and native_text.is_utf8(name) and not name:find "[%c\127 ~^:?*%[\\]"
    and not name:find("..", 1, true) and not name:find("/.", 1, true) and name:sub(1, 1) ~= "."
end

---The branch of a git repository, by its HEAD. Nothing of a hostile .git is shown but a name that git would take for a branch.
---@param root native.root of the workspace
---@return string? nil: there is no .git
function facts.branch(root)
  if not root:stat ".git" then return nil end
  local content = root:read(".git/HEAD", { max_bytes = LARGEST_HEAD })
  local head = content and native_text.trim_end((content.content:match "^[^\n]*")) or ""
  local name = head:match "^ref:%s*refs/heads/(.*)$"
  if is_branch(name) then return "branch " .. redact(name) end
  local commit = #head >= 40 and #head <= 64 and head:match "^%x+$"
  return commit and "detached HEAD at " .. commit:sub(1, 12) or "a repository, its HEAD cannot be read"
end

--- The distribution, by /etc/os-release.
local function distribution()
  local bytes = file.read("/etc/os-release", LARGEST_OS_RELEASE, { regular = true })
  local name = bytes and ("\n" .. bytes):match '\nPRETTY_NAME="?([^"\n]*)'
  return name and name ~= "" and shown(name) .. ", " or ""
end

local function system(environment)
  local kernel, shell = identity.system(), real_path "/bin/sh"
  if shell then shell = shell == "/bin/sh" and shell or ("/bin/sh (%s)"):format(shown(shell)) end
  local bash = process.find("bash", environment.PATH)
  return ("System: %s%s %s, %s. Shell: %s"):format(
    distribution(), kernel.name, shown(kernel.release), kernel.machine, bash and shown(bash) or shell or "none")
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

--- Where further AGENTS.md files are.
local function deeper(seen)
  local paths, named = seen.agents_md, {}
  if #paths == 0 then return nil end
  for i = 1, math.min(#paths, MOST_AGENTS_MD) do named[i] = shown(paths[i], LONGEST_AGENTS_MD) end
  local more = #paths > #named and (" and %d more"):format(#paths - #named) or ""
  if seen.partial then more = more .. "; not every directory was searched" end
  return ("Read before you work beside them: %s%s."):format(table.concat(named, ", "), more)
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
  local seen, branch = facts.survey(options.workspace, room), facts.branch(options.workspace)
  local constraints = options.constraints
  local lines = {
    system(options.environment), tools(options.environment),
    constraints.ext_net_allowed and "Network: allowed." or "Network: not allowed; nothing can be downloaded.",
    ("Limits: %s for the job; you see at most %s of a result, read_output gives the rest."):format(
      prompt.time(constraints.max_runtime_seconds), size(math.min(facts.MOST_SHOWN, constraints.max_output_bytes))),
    options.artifacts and "Artifacts: files to hand over go below $CYNODE_ARTIFACTS_DIR, in commands and in the paths of the file tools."
      or "Artifacts: this job has no directory for them.",
  }
  lines[#lines + 1] = branch and "Git: " .. branch .. "."
  lines[#lines + 1] = options.agents_md and deeper(seen) or nil
  local path = shown(options.workspace:path(), LONGEST_PATH)
  lines[#lines + 1] = ("The workspace is %s%s"):format(path, #seen.lines > 0 and ":" or ", and empty.")
  return table.concat(table.move(seen.lines, 1, #seen.lines, #lines + 1, lines), "\n")
end

return facts
