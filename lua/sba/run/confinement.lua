-- SPDX-License-Identifier: Apache-2.0
-- What commands may write, and what the result says about it.

local array = require "sba.util.json".array
local confine = require "native.confine"
local humanize = require "sba.util.humanize"
local listing = require "sba.util.files".entries
local secret = require "sba.util.secret"
local workspace = require "native.workspace"

local confinement = {}

local RENAMES <const>, TRUNCATES <const>, SIGNALS <const> = 2, 3, 6 -- Landlock versions that close a gap
local SHARED <const> = { "/tmp", "/var/tmp", "/dev", "/proc" }
local MOST_BESIDE <const> = 4096 -- entries
local STEPS_WITHOUT_COMMANDS <const> = {
  "write_file", "read_file", "apply_unified_diff", "list_tree", "replace_in_file", "search_files", "ask_model", "call_tool",
}
local MOST_READ <const> = 8 * 1024 -- bytes of a command's output, from its end

local function holder(directories, path)
  for _, directory in ipairs(directories) do
    if directory == "/" or path == directory or path:sub(1, #directory + 1) == directory .. "/" then return directory end
  end
end

--- What lies beside the way from top down to the job directory, without links; nil: too much, or not to be read.
local function beside(top, job_directory)
  local list, place = {}, top
  for name in job_directory:sub(#top + 1):gmatch "[^/]+" do
    local directory <close> = workspace.open(place)
    if not directory then return nil end
    local entries, more = listing(directory, ".", MOST_BESIDE)
    if not entries or more or #list + #entries > MOST_BESIDE then return nil end
    for _, entry in ipairs(entries) do
      if entry.name ~= name and entry.type ~= "symlink" then list[#list + 1] = place .. "/" .. entry.name end
    end
    place = place .. "/" .. name
  end
  return list
end

--- The directories that commands may write, and these with the other paths: of a HOME or TMPDIR above the job directory, what lies beside
--- the way to it.
local function writable_places(run, gaps)
  local found, others, seen, environment, job_directory = array {}, {}, {}, run.environment, run.job_directory
  local function add(path, variable, needed)
    local place, failure
    if path and path:sub(1, 1) == "/" and not seen[path] then place, failure = confine.real_path(path) end
    if failure and needed then
      gaps[#gaps + 1] = ("commands cannot write %s: %s"):format(needed, failure.message)
    end
    if not place or seen[place] or variable and place == "/" then return end
    seen[place] = true
    if not variable or not job_directory or humanize.has(SHARED, place) or not holder({ place }, job_directory) then
      return table.insert(found, place)
    end
    local entries = beside(place, job_directory)
    if entries then return table.move(entries, 1, #entries, #others + 1, others) end
    gaps[#gaps + 1] = ("commands can write nothing in %s (%s), which holds the job directory %s and too many entries to tell apart; "
      .. "keep the job directory elsewhere"):format(place, variable, job_directory)
  end
  add(run.workspace:path(), nil, "the workspace")
  add(run.artifacts and run.artifacts:path(), nil, "the artifacts")
  for path in (environment.SBA_WRITABLE or ""):gmatch "[^:]+" do add(path) end
  add(environment.HOME, "HOME")
  add(environment.TMPDIR, "TMPDIR")
  for _, path in ipairs(SHARED) do add(path) end
  return found, table.move(found, 1, #found, #others + 1, others)
end

--- What this kernel cannot. abi 0: nothing is asked of its Landlock.
local function gaps_of(abi)
  local gaps = array {}
  local function gap(least, what)
    if abi > 0 and abi < least then
      gaps[#gaps + 1] = ("%s (the kernel's Landlock has version %d; from %d on it can)"):format(what, abi, least)
    end
  end
  gap(RENAMES, "commands cannot rename or link a file from one directory to another")
  gap(TRUNCATES, "commands cannot be kept from truncating files elsewhere that their user owns")
  if not confine.filters() then
    gaps[#gaps + 1] = ("commands can %schange the runner's limits and priority: the kernel has no seccomp filters, or the container "
      .. "forbids them"):format(abi < SIGNALS and "signal the runner and " or "")
  end
  return gaps
end

--- The files of secrets that commands cannot open, and sentences about the others. writable: nil where nothing confines
--- commands.
local function hidden_files(writable)
  local list, seen, open = {}, {}, {}
  for _, file in ipairs(secret.files()) do
    local place, why = confine.real_path(file.path), "nothing confines them"
    local parent = place and writable and holder(writable, place)
    if parent then
      why = parent == place and "they may write it" or ("it lies below %s, which they may write"):format(parent)
    end
    local counts = place and not holder(seen, place) -- our user can reach it, and it is not in the directory of secrets
    if counts and writable and not parent then
      list[#list + 1] = place
    elseif counts then
      open[#open + 1] = ("%s %s can be read by commands: %s"):format(file.what, place, why)
    end
    seen[#seen + 1] = place
  end
  return list, open
end

---Explains a command's "Permission denied" at a path that its user may write, but commands may not.
---@param run run
---@param output string of the command
---@return string?
function confinement.explain(run, output)
  local writable, job_directory = run.record.confinement.writable, run.job_directory
  for line in (writable and output:sub(-MOST_READ) or ""):gmatch "[^\n]+" do
    for path in (line:find("ermission denied", 1, true) and line or ""):gmatch "/[^%s'\"`:;,()]*" do
      local place = confine.real_path(path) or confine.real_path(path:match "^(.+)/" or "/")
      if place and not holder(writable, place) and confine.may_write(place) then
        if job_directory and holder({ job_directory }, place) then return place .. " is written by the runner alone" end
        return ("commands may not write %s (`confinement` in the result lists where they may); SBA_WRITABLE=%s would allow it")
          :format(place, place)
      end
    end
  end
end

local function may_run_commands(run)
  for _, step in ipairs(run.steps or {}) do
    if not humanize.has(STEPS_WITHOUT_COMMANDS, step.type) then return true end
  end
  return not run.steps or run.record.acceptance ~= nil
end

local function set_rules(run, writable, hidden, open)
  if not may_run_commands(run) then return true end
  local ok, failure = confine.set_rules(writable, hidden)
  if ok or #hidden == 0 then return ok, failure end
  open[#open + 1] = ("%s can be read by commands: %s"):format(table.concat(hidden, ", "), failure.message)
  return confine.set_rules(writable, {})
end

local function refused(why) return nil, { code = "environment_invalid", message = "SBA_CONFINE=require, but " .. why } end

--- How commands could write result and journal, and whether that is the kernel's fault.
local function evidence_gap(writable, job_directory, abi)
  local parent = job_directory and holder(writable, job_directory)
  if parent then
    local where = parent == job_directory and "is one that" or ("lies below %s, which"):format(parent)
    return ("a command could change this job's result: the job directory %s %s commands may write")
      :format(job_directory, where)
  end
  return job_directory and abi < TRUNCATES and ("commands can truncate the result and the journal: the kernel's Landlock has version %d, "
    .. "and only %d (Linux 6.2) keeps them from it"):format(abi, TRUNCATES) or nil, true
end

---Confines every command from now on.
---@param run run
---@return table? confinement as the result has it
---@return native.failure? failure with SBA_CONFINE=require: the kernel cannot, or commands could write result and
---journal, or read a file of secrets
---@return { evidence?: string }? avoidable whoever starts the runner can change what is `partial`; evidence: what of it
---says how commands could write result and journal
function confinement.begin(run)
  local mode = run.settings.confine
  local abi = mode ~= "off" and confine.abi() or 0
  local kernel, partial = gaps_of(abi), array {}
  local unknown
  if run.result_directory then run.job_directory, unknown = confine.real_path(run.result_directory) end
  if abi == 0 and mode == "require" then
    return refused "this kernel has no Landlock or the container forbids it; allow the landlock system calls, or set SBA_CONFINE=auto"
  end
  if abi == 0 then
    local _, open = hidden_files()
    table.move(kernel, 1, #kernel, #open + 1, open)
    return { writes = "none", partial = #open > 0 and array(open) or nil }
  end
  local writable, places = writable_places(run, partial)
  local gap, is_the_kernels = evidence_gap(writable, run.job_directory, abi)
  if unknown then
    gap, is_the_kernels = "it cannot be told whether commands can write the result: " .. unknown.message, false
  end
  if gap and mode == "require" then return refused(gap) end
  if is_the_kernels then gap = nil end
  partial[#partial + 1] = gap
  local hidden, open = hidden_files(places)
  local ok, failure = set_rules(run, places, hidden, open)
  if not ok and mode == "require" then return refused("commands cannot be confined: " .. failure.message) end
  if open[1] and mode == "require" then return refused(open[1]) end
  table.move(open, 1, #open, #partial + 1, partial)
  if not ok then return { writes = "none", partial = array { failure.message } }, nil, {} end
  local avoidable = #partial > 0 and { evidence = gap } or nil
  table.move(kernel, 1, #kernel, #partial + 1, partial)
  return { writes = "landlock", abi = abi, writable = writable, partial = #partial > 0 and partial or nil }, nil, avoidable
end

return confinement
