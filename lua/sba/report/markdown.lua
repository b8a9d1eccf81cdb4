-- SPDX-License-Identifier: Apache-2.0
-- --report --format markdown: a summary for merge requests and a CI system's page, in GitHub's
-- Markdown. Whatever a job or a model wrote stands in code, where no mark, link, HTML or mention of
-- it acts.

local excerpt = require "sba.util.excerpt"
local humanize = require "sba.util.humanize"
local outcome = require "sba.report.outcome"
local parts = require "sba.report.parts"
local printable = require "sba.util.printable"

local markdown = {}

local LONGEST_LINE <const>, LONGEST_BLOCK <const> = 300, 16 * 1024 -- bytes
local MOST_ROWS <const> = 200 -- steps, criteria or files

-- A run of backticks that is longer than each of the text; at least `least` of them.
local function fence_for(text, least)
  local longest = least - 1
  for run in text:gmatch "`+" do longest = math.max(longest, #run) end
  return ("`"):rep(longest + 1)
end

-- In one line. In a table a bar would end the cell, in code too.
local function code(text)
  local line = printable.line(tostring(text), LONGEST_LINE):gsub("|", "\\|")
  if line:find("^%s*$") then return "" end
  local fence = fence_for(line, 1)
  return #fence > 1 and ("%s %s %s"):format(fence, line, fence) or fence .. line .. fence
end

local function block(text, language)
  local shown = printable.replace(excerpt.of(text, LONGEST_BLOCK), "%s"):gsub("\n$", "")
  local fence = fence_for(shown, 3)
  return ("%s%s\n%s\n%s\n"):format(fence, language or "", shown, fence)
end

local function row(cells) return "| " .. table.concat(cells, " | ") .. " |" end

local function table_of(names, items, cells)
  local lines = { row(names), "|" .. ("---|"):rep(#names) }
  for i = 1, math.min(#items, MOST_ROWS) do lines[#lines + 1] = row(cells(items[i])) end
  local more = #items - MOST_ROWS
  if more > 0 then lines[#lines + 1] = ("\n... and %d more"):format(more) end
  return table.concat(lines, "\n") .. "\n"
end

local function head(source)
  local result, is = source.result, outcome.status(source)
  local status, failure_code = parts.status[is], result.failure_code
  local why, message = "", result.failure_message
  if failure_code ~= "interrupted" and type(failure_code) == "string" then
    -- A later version's code may be anything.
    why = ": " .. (failure_code:match "^[%a_]+$" or code(failure_code))
  end
  local count = humanize.counted(#result.steps, "step")
  local lines = {
    ("## %s job %s %s%s\n"):format(status.sign, code(result.job_id), status.name, why),
    humanize.duration(result.duration_ms) .. ", " .. count .. "\n",
  }
  if is ~= "running" and type(message) == "string" then lines[3] = block(message) end
  return table.concat(lines, "\n")
end

local STEP <const> = { "", "step", "what", "time" }
local CRITERION <const> = { "", "criterion", "by", "evidence" }

local function steps(source)
  local list = source.result.steps
  return #list > 0 and "### Steps\n\n" .. table_of(STEP, list, function(entry)
    local what = parts.about(source.calls[entry.index + 1], entry.result)
    local name = entry.type .. " " .. entry.id
    if entry.check then name = "check of criterion " .. entry.check end
    local sign = parts.status[parts.state(entry)].sign
    return { sign, code(name), code(what), humanize.duration(entry.duration_ms) }
  end)
end

local signs <const> = { [true] = "✓", [false] = "✗" }

local function acceptance(result)
  local list = result.acceptance or {}
  return #list > 0 and "### Acceptance\n\n" .. table_of(CRITERION, list, function(item)
    local by = type(item.verified_by) == "string" and item.verified_by or "not checked"
    return { signs[item.met] or "–", code(item.criterion), by, code(item.evidence) }
  end)
end

local function changes(source)
  local changed = source.result.workspace_changes
  if not changed then return false end
  local list, patch = "nothing changed\n", ""
  if #changed.files > 0 then
    list = table_of({ "file", "change" }, changed.files, function(one)
      return { code(one.path), (one.action:gsub("_", " ")) }
    end)
  end
  if source.patch then
    local form = "<details><summary>The differences</summary>\n\n%s\n</details>\n"
    patch = form:format(block(source.patch, "diff"))
  end
  return ("### Changes\n\n%s\n%s"):format(list, patch)
end

local function failed_output(result)
  for _, entry in ipairs(result.steps) do
    local state = parts.state(entry)
    if (state == "failure" or state == "timeout") and (entry.output or "") ~= "" then
      return ("### Output of %s\n\n%s"):format(code(entry.id), block(entry.output))
    end
  end
  return false
end

local function answer(result)
  if type(result.final_answer) ~= "string" then return false end
  local who, by = "model", ""
  if not result.inference_used then
    local claimed = (result.inference or {}).model
    who = "worker"
    if claimed then by = ("by its own report with %s\n\n"):format(code(claimed)) end
  end
  return ("### What the %s said\n\n%s%s"):format(who, by, block(result.final_answer))
end

---@param source report.source
---@return string[] parts of a page
function markdown.of(source)
  local result, sections = source.result, {}
  local all = {
    head(source), steps(source), failed_output(result), acceptance(result), changes(source),
    answer(result),
  }
  for _, part in ipairs(all) do
    if part then sections[#sections + 1] = part end
  end
  return { table.concat(sections, "\n"), "\n" }
end

return markdown
