-- SPDX-License-Identifier: Apache-2.0
-- What commands may write, and what the result says about it. The kernel keeps the rules (native.confine).

local array = require "sba.util.json".array
local confine = require "native.confine"

local confinement = { real_path = confine.real_path }

-- Landlock versions that close a gap.
local RENAMES <const>, TRUNCATES <const>, SIGNALS <const> = 2, 3, 6
local SHARED <const> = { "/tmp", "/var/tmp", "/dev", "/proc" }

---@class confinement the result's `confinement`
---@field writes "landlock"|"none"
---@field abi? integer version of the kernel's Landlock
---@field writable? string[] where commands may write, without links
---@field partial? string[] what could not be kept apart, and why

--- The directories that commands may write, as the environment names them.
local function named(options)
  local environment = options.environment
  local list = { options.workspace }
  for _, path in ipairs { options.artifacts or "", environment.HOME or "", environment.TMPDIR or "" } do list[#list + 1] = path end
  table.move(SHARED, 1, #SHARED, #list + 1, list)
  for path in (environment.SBA_WRITABLE or ""):gmatch "[^:]+" do list[#list + 1] = path end
  return list
end

--- Those that exist, without links and each once.
local function real(list)
  local found, seen = array {}, {}
  for _, path in ipairs(list) do
    local place = path:sub(1, 1) == "/" and confine.real_path(path)
    if place and not seen[place] then
      found[#found + 1], seen[place] = place, true
    end
  end
  return found
end

--- The first of the directories that holds the path.
local function holder(directories, path)
  for _, directory in ipairs(directories) do
    if directory == "/" or path == directory or path:sub(1, #directory + 1) == directory .. "/" then return directory end
  end
end

local function gaps_of(abi)
  local gaps = array {}
  local function gap(least, words)
    if abi < least then gaps[#gaps + 1] = ("%s (the kernel's Landlock has version %d; from %d on it can)"):format(words, abi, least) end
  end
  gap(RENAMES, "commands cannot rename or link a file from one directory to another")
  gap(TRUNCATES, "commands cannot be kept from truncating files elsewhere that their user owns")
  gap(SIGNALS, "commands cannot be kept from signalling the runner")
  return gaps
end

--- The token's file where it can be hidden; else a gap says why not.
local function hidden_file(path, writable, gaps)
  local place = path and confine.real_path(path)
  local parent = place and holder(writable, place)
  if parent then
    gaps[#gaps + 1] = ("the agent's token %s can be read by commands: it lies below %s, which they may write"):format(place, parent)
    return nil
  end
  return place
end

-- What a command prints where the kernel denied it something: the end of the C library's words for EACCES.
local DENIED <const> = "ermission denied"
local MOST_READ <const> = 64 * 1024 -- bytes of a command's output, from its end
local MOST_PATHS <const> = 20

--- The directory in which a path could not be written, if its user may write there and the rules do not let commands.
local function forbidden(state, path)
  local place = confine.real_path(path)
  while not place and #path > 1 do
    path = path:match "^(.*)/" or ""
    place = confine.real_path(path == "" and "/" or path)
  end
  if not place or holder(state.writable, place) or not confine.may_write(place) then return nil end
  return place
end

--- The first path of a line that only the rules forbid, as words.
local function explain_line(state, line, job_directory)
  local tried = 0
  for path in line:gmatch "/[^%s'\"`:;,()]*" do
    tried = tried + 1
    local place = tried <= MOST_PATHS and forbidden(state, path)
    if place and job_directory and holder({ job_directory }, place) then
      return place .. " is written by the runner alone"
    elseif place then
      return ("commands may not write %s (`confinement` in the result lists where they may); SBA_WRITABLE=%s would allow it")
        :format(place, place)
    end
  end
end

---Explains why a command could not write: looks for the paths that it named with "Permission denied". What its user may not
---write anyway is none of the rules' doing.
---@param state confinement
---@param output string what the command printed
---@param job_directory? string
---@return string? explanation
function confinement.explain(state, output, job_directory)
  if not state.writable then return nil end
  for line in output:sub(-MOST_READ):gmatch "[^\n]+" do
    local words = line:find(DENIED, 1, true) and explain_line(state, line, job_directory)
    if words then return words end
  end
end

---@class confinement.options
---@field mode "auto"|"require"|"off"
---@field environment table<string, string>
---@field workspace string
---@field artifacts? string
---@field job_directory? string where result and journal lie; nil: on stdout
---@field token_file? string

--- Confines every command from now on.
---@param options confinement.options
---@return confinement? confinement
---@return native.failure? failure where the mode is "require" and the kernel cannot
function confinement.begin(options)
  local abi = options.mode ~= "off" and confine.abi() or 0
  if abi == 0 and options.mode == "require" then
    return nil, {
      code = "environment_invalid",
      message = "SBA_CONFINE=require, but this kernel has no Landlock or the container forbids it; allow the landlock system calls, "
        .. "or set SBA_CONFINE=auto",
    }
  end
  if abi == 0 then return { writes = "none" } end

  local writable, partial = real(named(options)), gaps_of(abi)
  local directory = options.job_directory and confine.real_path(options.job_directory)
  local parent = directory and holder(writable, directory)
  if parent then
    partial[#partial + 1] = ("the job directory %s lies below %s, which commands may write"):format(directory, parent)
  end
  local hidden = hidden_file(options.token_file, writable, partial)
  local ok, failure = confine.set_rules(writable, hidden)
  if not ok and hidden then
    partial[#partial + 1] = ("the agent's token %s can be read by commands: %s"):format(hidden, failure.message)
    ok, failure = confine.set_rules(writable)
  end
  if ok then return { writes = "landlock", abi = abi, writable = writable, partial = #partial > 0 and partial or nil } end
  if options.mode == "auto" then return { writes = "none", partial = array { failure.message } } end
  return nil, { code = "environment_invalid", message = "SBA_CONFINE=require, but commands cannot be confined: " .. failure.message }
end

return confinement
