-- SPDX-License-Identifier: Apache-2.0
-- The step sort_lines: puts the lines of a file of the workspace in order, and keeps of equal ones the first if asked to.

local LARGEST <const> = 16 * 1024 * 1024 -- bytes of a file that is sorted in memory

---The lines of a text, without their ends.
---@param content string
---@return string[]
local function lines_of(content)
  local lines = {}
  if content:find("[^\n]$") then content = content .. "\n" end -- the last line may lack its end
  for line in content:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

---@param sorted string[] changed in place
---@return integer dropped how many
local function drop_equal(sorted)
  local kept = 0
  for i = 1, #sorted do
    if i == 1 or sorted[i] ~= sorted[kept] then
      kept = kept + 1
      sorted[kept] = sorted[i]
    end
  end
  local dropped = #sorted - kept
  for i = kept + 1, #sorted do sorted[i] = nil end
  return dropped
end

local function too_large(path)
  local message = ("cannot sort %s: it is larger than %d MiB; sort it with a command"):format(path, LARGEST >> 20)
  return nil, { code = "constraint_violation", message = message }
end

---@param arguments { path: string, unique: boolean, save_to?: string }
---@param job_context sba.job_context
---@return table? result
---@return string|sba.step_failure text or failure
local function run(arguments, job_context)
  local workspace = job_context.workspace
  local read, failure = workspace:read(arguments.path, { max_bytes = LARGEST })
  if not read then return nil, failure end -- the failures of native.root say all that is to be said
  if read.truncated then return too_large(arguments.path) end

  local lines = lines_of(read.content)
  table.sort(lines)
  local dropped = arguments.unique and drop_equal(lines) or 0
  local content = #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
  local written
  written, failure = workspace:write(arguments.save_to or arguments.path, content)
  if not written then return nil, failure end

  local path = workspace:relative(arguments.save_to or arguments.path)
  return { path = path, lines = #lines, dropped = dropped }, ("%s: %d lines, %d dropped\n"):format(path, #lines, dropped)
end

---@param arguments { path: string, save_to?: string }
---@param result? { path: string, lines: integer }
---@return string
local function what(arguments, result)
  if result then return ("sorted %d lines into %s"):format(result.lines, result.path) end
  return arguments.path
end

return {
  name = "sort_lines",
  summary = "Sort the lines of a file of the workspace in byte order.",
  arguments = {
    type = "object",
    required = { "path" },
    order = { "path", "unique", "save_to" },
    additionalProperties = false,
    properties = {
      path = { type = "string", minLength = 1, description = "Relative to the workspace or absolute below it." },
      unique = { type = "boolean", default = false, description = "Keep one of lines that are equal." },
      save_to = { type = "string", minLength = 1, description = "Another file to write; else the same is replaced." },
    },
  },
  result = {
    type = "object",
    required = { "path", "lines", "dropped" },
    order = { "path", "lines", "dropped" },
    additionalProperties = false,
    properties = {
      path = { type = "string", description = "What was written, relative to the workspace." },
      lines = { type = "integer", minimum = 0, description = "That it has now." },
      dropped = { type = "integer", minimum = 0, description = "Because they were equal to another." },
    },
  },
  what = what,
  run = run,
}
