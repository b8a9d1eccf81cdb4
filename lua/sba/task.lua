-- SPDX-License-Identifier: Apache-2.0
-- --task: an agent's job without JSON. Its directory is private and out of commands' way; at the end, result, journal
-- and report are kept in the user's state directory, and the model's final answer goes to stdout.

local fail = require "sba.util.fail"
local file = require "native.file"
local http = require "sba.util.http"
local humanize = require "sba.util.humanize"
local identity = require "native.identity"
local json = require "sba.util.json"
local models = require "sba.model.connect"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local report = require "sba.report"
local text = require "native.text"

local task = {}

local check = fail.check

local OUTPUT_BYTES <const> = 1024 * 1024
-- Seconds without progress until a reader of stdout counts as gone.
local TIMEOUT <const> = 30
-- Bytes; a larger journal stays where it is.
local LARGEST_KEPT <const> = 512 * 1024 * 1024
local STDOUT <const> = 1
local MOST_NAMED <const> = 10 -- changed files
local JOURNAL <const> = "journal.jsonl" -- a job that is refused has none
local NAMES <const> = { "job.json", "result.json", JOURNAL }

-- Of version 4, which is random.
local function uuid()
  local source <close> = assert(io.open("/dev/urandom", "rb"))
  local hex = ("%02x"):rep(16):format(source:read(16):byte(1, 16))
  -- "x" leaves out the digits that are always the same: the version, and the variant.
  return ("%s-%s-4%s-a%s-%s"):format(("c8c4xc3xc3c12"):unpack(hex))
end

-- The variable's value, if it is an absolute path.
local function path_of(environment, variable)
  return (environment[variable] or ""):match "^/.*"
end

-- Nobody else can enter it.
local function make_directory(environment, id)
  local runtime = path_of(environment, "XDG_RUNTIME_DIR")
  local places, failure = { "/var/tmp/cynode-sba-" .. identity.uid() }, nil
  if runtime then table.insert(places, 1, runtime .. "/cynode-sba") end
  for _, above in ipairs(places) do
    local made
    made, failure = file.make_private_directory(above)
    if made then made, failure = file.make_private_directory(above .. "/" .. id) end
    if made then return above .. "/" .. id .. "/" end
  end
  error(failure)
end

-- Where the job is kept at the end, and its artifacts from the start.
local function make_archive(environment, id)
  local home, state = path_of(environment, "HOME"), path_of(environment, "XDG_STATE_HOME")
  if not state and home then state = home .. "/.local/state" end
  if not state then return nil end
  local above = state .. "/cynode-sba"
  local archive = above .. "/" .. id
  local made = file.make_directory(above) and file.make_private_directory(archive)
  return made and archive .. "/"
end

local function model_of(settings, environment)
  local named = settings.model or text.trim(environment.INFERENCE_MODEL or "")
  if named ~= "" then return named end
  local names = check(models.served { environment = environment, http = check(http.client(environment)) })
  if #names == 1 then return names[1] end
  local message = "there are several models: %s; name one of them with --model"
  error { message = message:format(humanize.list(names, "and")) }
end

-- One line that begins with /job/ would be the path of a file.
local function as_text(words) return words:find "^/job/" and words .. "\n" or words end

local function job_of(settings, id, model)
  local criteria = json.array {}
  for i, command in ipairs(settings.check or {}) do
    criteria[i] = { criterion = as_text(command .. " ends with exit code 0"), check = { shell = command } }
  end
  return {
    protocol_version = "1.0", job_id = id, task_id = uuid(),
    execution_mode = "agent_inference", steps = json.array {},
    constraints = {
      max_runtime_seconds = settings.time, max_output_bytes = OUTPUT_BYTES,
      report_changes = true,
    },
    inference = { allowed_models = json.array { model } },
    context = { requirements = json.array { as_text(settings.task) }, acceptance_criteria = criteria },
  }
end

local function say_answer(run)
  local answer = run.final.fields.final_answer
  if type(answer) ~= "string" then return end
  answer = redact(answer)
  local is_terminal = file.terminal_columns(STDOUT) ~= nil
  if is_terminal then answer = printable.replace(answer, "%s") end
  run.settings.is_answered = is_terminal
  file.write(STDOUT, { answer, "\n" }, TIMEOUT)
end

local function keep_file(path, parts)
  check(file.replace(path, parts, { mode = tonumber("600", 8) }))
end

-- Raises failures.
local function keep_files(directory, archive)
  for _, name in ipairs(NAMES) do
    local bytes, failure = file.read(directory .. name, LARGEST_KEPT)
    local is_refused = not bytes and name == JOURNAL and failure.code == "not_found"
    if not is_refused then keep_file(archive .. name, { check(bytes, failure) }) end
  end
  local page, message = report.page(archive .. NAMES[2], archive .. NAMES[1])
  if not page then error { message = message } end
  keep_file(archive .. "report.html", page)
end

-- "changed: 2 modified, 1 created: a.c, b.c, c.c"
local function changed(changes)
  local counts, names = {}, {}
  for action, count in pairs(changes.counts) do
    if count > 0 then counts[#counts + 1] = count .. " " .. action:gsub("_", " ") end
  end
  if #counts == 0 then return "changed: nothing" end
  table.sort(counts)
  local files, comma = changes.files, ", "
  for i = 1, math.min(#files, MOST_NAMED) do names[i] = files[i].path end
  if #files > #names then names[#names + 1] = "..." end
  return "changed: " .. table.concat(counts, comma) .. ": " .. table.concat(names, comma)
end

-- What somebody at the terminal asks next: what changed, how to undo it, was it checked, where is
-- the page.
local function say_outcome(run, archive)
  local function note(words) run.log.view:note(words) end
  local fields = run.final.fields
  local changes = fields.workspace_changes
  local patch = changes and changes.patch
  if changes then note(changed(changes)) end
  if patch then note("to undo: git apply -R " .. archive .. "artifacts/" .. patch) end
  if fields.status == "success" and not fields.acceptance then
    note "nothing but the model says that it is done: --check COMMAND would make sure"
  end
  note("report: " .. archive .. "report.html")
end

---What cannot be kept stays where it is.
---@param run run of a task; settings.archive is where its files go
function task.keep(run)
  local archive, directory = run.settings.archive, run.result_directory
  say_answer(run)
  if not archive then return end
  os.remove(archive .. "artifacts") -- unless there are any
  local _, failure = fail.caught(keep_files, directory, archive)
  if failure then return run:warn("task.not_kept", redact(failure.message)) end
  run.settings.job, run.settings.result = archive .. NAMES[1], archive .. NAMES[2]
  file.remove_directory(directory)
  say_outcome(run, archive)
end

---Makes the job, and sets job, result, keep and archive of the settings. Raises failures.
---@param settings cli.settings
---@param environment table<string, string>
function task.prepare(settings, environment)
  for _, given in ipairs { settings.task, table.unpack(settings.check or {}) } do
    if not text.is_utf8(given) then
      error { message = "the task and its checks must be UTF-8 text" }
    end
  end
  local id, model = uuid(), model_of(settings, environment)
  local directory = make_directory(environment, id)
  local archive = make_archive(environment, id)
  settings.job, settings.result = directory .. NAMES[1], directory .. NAMES[2]
  check(file.replace(settings.job, { json.encode(job_of(settings, id, model)), "\n" }))
  local has_artifacts = (environment.CYNODE_ARTIFACTS_DIR or "") ~= ""
  if archive and not has_artifacts then
    environment.CYNODE_ARTIFACTS_DIR = archive .. "artifacts"
  end
  settings.keep, settings.archive = task.keep, archive
end

return task
