-- SPDX-License-Identifier: Apache-2.0
-- What a worker tells of its work: one JSON object in the file that CYNODE_REPORT names to a
-- command. It is a claim.

local file = require "native.file"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local secret = require "sba.util.secret"
local workspace = require "native.workspace"

local worker_report = {}

local LARGEST <const> = 64 * 1024 -- bytes
-- Seconds: what a command piles up there beside its report may stay.
local REMOVING <const> = 1
-- As far as every reader of JSON counts.
local MOST_TOKENS <const> = 1 << 53
local WORD <const> = "^%x+%-%d+%-%d+%-%d+$" -- as process.runner makes it

local function tokens() return is.count(nil, { maximum = MOST_TOKENS }) end

worker_report.schema = is.object({
  "answer", is.text "What the worker says at its end; the result's final_answer.",
  "model", is.text "The model that it used.",
  "prompt_tokens", tokens(),
  "completion_tokens", tokens(),
  "cost_usd", is.typed("number", "What that cost, in US dollars.", { minimum = 0 }),
}, {
  title = "Report of a worker in a job of cynode-sba",
  printed = { ["$id"] = "urn:cynode-sba:schema:report:1" },
  description = "What a command may write into the file that CYNODE_REPORT names; at most 64 KiB.",
})

-- Where a run's reports may be. Commands may always write in the first two.
local function directories_of(word, environment)
  local list = { "/tmp", "/var/tmp", environment.TMPDIR }
  for i, above in ipairs(list) do list[i] = above .. "/cynode-sba-" .. word end
  return list
end

---The directory of a run's reports.
---@class worker_report.place
---@field above native.root a directory of temporary files, in which it lies
---@field directory string its path
---@field count integer reports that commands were asked for

---@param word string of the run
---@param environment table<string, string>
---@param root native.root of the workspace, in which it must not be
---@return worker_report.place|false
---@return string? problem why there is none
function worker_report.open(word, environment, root)
  local problem = "the directories of temporary files are in the workspace"
  for _, directory in ipairs(directories_of(word, environment)) do
    local ok, failure = not root:relative(directory), nil
    if ok then ok, failure = file.make_private_directory(directory) end
    local above = ok and workspace.open(directory:match "^(.*)/")
    if above then return { above = above, directory = directory, count = 0 } end
    problem = failure and failure.message or problem
  end
  return false, problem .. "; commands have no CYNODE_REPORT"
end

---@param place worker_report.place
---@return string? path for another report; nil: there is no such directory any more
function worker_report.path(place)
  if not file.make_private_directory(place.directory) then return nil end -- a command may have removed it
  place.count = place.count + 1
  return place.directory .. "/" .. place.count .. ".json"
end

---@param word string of a run, maybe an earlier one
---@param environment table<string, string>
function worker_report.remove(word, environment)
  if type(word) ~= "string" or not word:find(WORD) then return end
  for _, directory in ipairs(directories_of(word, environment)) do
    file.remove_directory(directory, REMOVING)
  end
end

---Reads what there is, also when the job's time is up. No link leads out of where temporary files
---are, and nothing is waited for.
---@param place worker_report.place
---@param path string of worker_report.path
---@return table? report without secrets; nil: there is none
---@return string? mistake
function worker_report.read(place, path)
  local opened <close>, failure = place.above:open(path)
  if not opened then
    if failure.code == "path_escape" then return nil, "it is a link that leads elsewhere" end
    return nil, failure.code ~= "not_found" and failure.message or nil
  end
  local bytes = opened:read(LARGEST + 1)
  place.above:remove(path, "file")
  if #bytes > LARGEST then return nil, ("it is larger than %d bytes"):format(LARGEST) end
  local value, broken = json.decode(bytes)
  if broken then return nil, broken.message end
  local report, errors = is.check(value, worker_report.schema, { total = 0, limit = 1 })
  if errors[1] then return nil, is.line(errors[1], "report") end
  return secret.clean(report, worker_report.schema)
end

return worker_report
