-- SPDX-License-Identifier: Apache-2.0
-- What commands may write, and what the result says about it.

local array = require "sba.util.json".array
local confine = require "native.confine"
local fail = require "sba.util.fail"
local json = require "sba.util.json"
local lazy = require "sba.util.lazy"
local secret = require "sba.util.secret"
local workspace = require "native.workspace"

local listing = lazy "sba.util.files"

local confinement = {}

-- Versions of Landlock that close a gap.
local RENAMES <const>, TRUNCATES <const>, SIGNALS <const> = 2, 3, 6
local SHARED <const> = { "/tmp", "/var/tmp", "/dev", "/proc" }
local MOST_BESIDE <const> = 4096 -- entries
-- Bytes of a command's output, from its end.
local MOST_READ <const> = 8 * 1024

local function append(list, more) return table.move(more, 1, #more, #list + 1, list) end

--- The first of the directories in which the path is, or which it is.
local function holder(directories, path)
  for _, directory in ipairs(directories) do
    local is_below = path:sub(1, #directory + 1) == directory .. "/"
    if directory == "/" or path == directory or is_below then return directory end
  end
end

--- What lies beside the way from top down to the job directory, without links; nil: too much, or not
--- to be read.
local function beside(top, job_directory)
  local list, place = {}, top
  for name in job_directory:sub(#top + 1):gmatch "[^/]+" do
    local directory <close> = workspace.open(place)
    if not directory then return nil end
    local entries, more = listing.entries(directory, ".", MOST_BESIDE)
    if not entries or more or #list + #entries > MOST_BESIDE then return nil end
    for _, entry in ipairs(entries) do
      local is_beside = entry.name ~= name and entry.type ~= "symlink"
      if is_beside then list[#list + 1] = place .. "/" .. entry.name end
    end
    place = place .. "/" .. name
  end
  return list
end

--- The directories that commands may write, and these with the other paths: of a HOME or TMPDIR above
--- the job directory, what lies beside the way to it.
local function writable_places(run, job_directory, gaps)
  local found, others, seen = array {}, {}, {}
  local environment = run.environment
  local function add(path, variable, needed)
    if not path or path:sub(1, 1) ~= "/" or seen[path] then return end
    local place, failure = confine.real_path(path)
    if failure and needed then
      gaps[#gaps + 1] = "commands cannot write " .. needed .. ": " .. failure.message
    end
    if not place or seen[place] or variable and place == "/" then return end
    seen[place] = true
    local is_above = variable and job_directory and holder({ place }, job_directory)
    if not is_above or json.contains(SHARED, place) then return table.insert(found, place) end
    local entries = beside(place, job_directory)
    if entries then return append(others, entries) end
    local gap = "commands can write nothing in %s (%s), which holds the job directory %s "
      .. "and too many entries to tell apart; keep the job directory elsewhere"
    gaps[#gaps + 1] = gap:format(place, variable, job_directory)
  end
  add(run.workspace:path(), nil, "the workspace")
  add(run.artifacts and run.artifacts:path(), nil, "the artifacts")
  for path in (environment.SBA_WRITABLE or ""):gmatch "[^:]+" do add(path) end
  add(environment.HOME, "HOME")
  add(environment.TMPDIR, "TMPDIR")
  for _, path in ipairs(SHARED) do add(path) end
  return found, append(others, found)
end

--- What this kernel cannot. abi 0: nothing is asked of its Landlock.
local function gaps_of_kernel(abi)
  local gaps = array {}
  local function need(least, what)
    if abi == 0 or abi >= least then return end
    local gap = "%s (the kernel's Landlock has version %d; from %d on it can)"
    gaps[#gaps + 1] = gap:format(what, abi, least)
  end
  need(RENAMES, "commands cannot rename or link a file from one directory to another")
  need(TRUNCATES, "commands cannot be kept from truncating files elsewhere that their user owns")
  if confine.filters() then return gaps end
  local gap = "commands can %schange the runner's limits and priority: "
    .. "the kernel has no seccomp filters, or the container forbids them"
  gaps[#gaps + 1] = gap:format(abi < SIGNALS and "signal the runner and " or "")
  return gaps
end

--- Why a command can read a file of secrets; nil: it cannot. writable: see hidden_files.
local function exposure(place, writable)
  if not writable then return "nothing confines them" end
  local parent = holder(writable, place)
  if parent == place then return "they may write it" end
  return parent and ("it lies below %s, which they may write"):format(parent)
end

--- The files of secrets that commands cannot open, and sentences about the others. writable: nil where
--- nothing confines commands.
local function hidden_files(writable)
  local list, seen, open = {}, {}, {}
  for _, file in ipairs(secret.files()) do
    -- Without a place our user cannot reach it, nor can commands.
    local place = confine.real_path(file.path)
    -- What lies in the directory of secrets was judged with it.
    if place and not holder(seen, place) then
      local why = exposure(place, writable)
      if why then
        open[#open + 1] = file.what .. " " .. place .. " can be read by commands: " .. why
      else
        list[#list + 1] = place
      end
    end
    seen[#seen + 1] = place
  end
  return list, open
end

--- Of a line with paths; nil: it is denied for another reason than our rules.
local function reason_of_denial(line, writable, job_directory)
  for path in line:gmatch "/[^%s'\"`:;,()]*" do
    local place = confine.real_path(path) or confine.real_path(path:match "^(.+)/" or "/")
    if place and not holder(writable, place) and confine.may_write(place) then
      local is_ours = job_directory and holder({ job_directory }, place)
      if is_ours then return place .. " is written by the runner alone" end
      return "commands may not write " .. place .. " (`confinement` in the result lists "
        .. "where they may); SBA_WRITABLE=" .. place .. " would allow it"
    end
  end
end

---Explains a command's "Permission denied" at a path that its user may write, but commands may not.
---@param run run
---@param output string of the command
---@return string?
function confinement.explain(run, output)
  local writable, reason = run.record.confinement.writable, nil
  if not writable then return nil end
  local job_directory = run.result_directory and confine.real_path(run.result_directory)
  for line in output:sub(-MOST_READ):gmatch "[^\n]+" do
    local is_denial = line:find("ermission denied", 1, true)
    reason = reason or is_denial and reason_of_denial(line, writable, job_directory)
  end
  return reason
end

--- Whether a step, a check or a model may start one.
local function may_run_commands(run)
  if not run.steps or run.record.acceptance then return true end
  for _, step in ipairs(run.steps) do
    if not run.catalogue.get(step.type).brief then return true end
  end
  return false
end

--- Where the files of secrets cannot be hidden, it goes without. Each place takes four system calls: where no command
--- is to come, one that comes all the same may write nowhere.
local function set_rules(run, writable, hidden, open)
  if not may_run_commands(run) then writable = {} end
  local ok, failure = confine.set_rules(writable, hidden)
  if ok or #hidden == 0 then return ok, failure end
  open[#open + 1] = table.concat(hidden, ", ") .. " can be read by commands: " .. failure.message
  return confine.set_rules(writable, {})
end

--- How commands could write result and journal, and whether that is the kernel's fault.
local function evidence_gap(job_directory, writable, abi)
  local parent = holder(writable, job_directory)
  if parent then
    local where = job_directory .. " lies below " .. parent .. ", which"
    if parent == job_directory then where = parent .. " is one that" end
    return "a command could change this job's result: the job directory " .. where
      .. " commands may write"
  end
  if abi >= TRUNCATES then return nil end
  local gap = "commands can truncate the result and the journal: the kernel's Landlock "
    .. "has version %d, and only %d (Linux 6.2) keeps them from it"
  return gap:format(abi, TRUNCATES), true
end

local function list_or_nil(list) return #list > 0 and array(list) or nil end

local function refuse(why) fail.raise("environment_invalid", "SBA_CONFINE=require, but %s", why) end

--- Without Landlock.
local function unconfined(is_required)
  local help <const> = "allow the landlock system calls, or set SBA_CONFINE=auto"
  if is_required then refuse("this kernel has no Landlock or the container forbids it; " .. help) end
  local _, open = hidden_files()
  return { writes = "none", partial = list_or_nil(append(open, gaps_of_kernel(0))) }
end

---Confines every command from now on. Raises, with SBA_CONFINE=require, that the kernel cannot, or that commands
---could write result and journal, or read a file of secrets.
---@param run run
---@return table confinement as the result has it
---@return { evidence?: string }? avoidable whoever starts the runner can change what is `partial`;
---evidence: what of it says how commands could write result and journal
function confinement.begin(run)
  local mode, partial = run.settings.confine, array {}
  local abi = mode ~= "off" and confine.abi() or 0
  local is_required, directory = mode == "require", run.result_directory
  local job_directory, unknown, evidence, is_the_kernels
  if directory then job_directory, unknown = confine.real_path(directory) end
  if abi == 0 then return unconfined(is_required) end
  local writable, places = writable_places(run, job_directory, partial)
  if unknown then
    evidence = "it cannot be told whether commands can write the result: " .. unknown.message
  elseif job_directory then
    evidence, is_the_kernels = evidence_gap(job_directory, writable, abi)
  end
  local hidden, open = hidden_files(places)
  local ok, failure = set_rules(run, places, hidden, open)
  local problem = evidence or open[1]
  if not ok then problem = evidence or "commands cannot be confined: " .. failure.message end
  if problem and is_required then refuse(problem) end
  if not ok then return { writes = "none", partial = array { failure.message } }, {} end
  if is_the_kernels then evidence = nil end
  partial[#partial + 1] = evidence
  append(partial, open)
  local avoidable = #partial > 0 and { evidence = evidence } or nil
  partial = list_or_nil(append(partial, gaps_of_kernel(abi)))
  return { writes = "landlock", abi = abi, writable = writable, partial = partial }, avoidable
end

return confinement
