-- SPDX-License-Identifier: Apache-2.0
-- --report --format junit: the form of test results that CI systems read. Each step and each
-- acceptance criterion is a test case.

local excerpt = require "sba.util.excerpt"
local parts = require "sba.report.parts"
local result_schema = require "sba.result.result_schema"
local text = require "native.text"

local junit = {}

local LONGEST_OUTPUT <const>, LONGEST_MESSAGE <const> = 64 * 1024, 2048 -- bytes

local entities <const> = {
  ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
  ["\n"] = "&#10;", ["\t"] = "&#9;", -- in attributes only
}

-- XML has no control characters but these, not even as references; nor U+FFFE and U+FFFF.
local function escaped(bytes)
  local whole = text.repair(bytes):gsub("[\0-\8\11-\31\127]", "\u{FFFD}")
  whole = whole:gsub("\u{FFFE}", "\u{FFFD}"):gsub("\u{FFFF}", "\u{FFFD}")
  return (whole:gsub('[&<>"]', entities))
end

local function in_attribute(bytes) return (escaped(bytes):gsub("[\n\t]", entities)) end

-- The attributes are written in their order: { "name", value, ... }.
local function element(name, attributes, content)
  local head = { "<" .. name }
  for i = 1, #attributes, 2 do
    local value = in_attribute(tostring(attributes[i + 1]))
    head[#head + 1] = (' %s="%s"'):format(attributes[i], value)
  end
  local opening = table.concat(head)
  if not content or content == "" then return opening .. "/>\n" end
  return ("%s>%s</%s>\n"):format(opening, content, name)
end

local function seconds(ms) return ("%.3f"):format(ms / 1000) end

local function shown(output) return escaped((excerpt.of(output, LONGEST_OUTPUT))) end

-- code: nil of what is skipped.
local function outcome(kind, message, code, output)
  message = excerpt.of(message, LONGEST_MESSAGE)
  local attributes = { "message", message, code and "type", code }
  return element(kind, attributes, output and shown(output))
end

-- ms: nil of a criterion.
local function test_case(class, name, ms, inside)
  local attributes = { "classname", class, "name", name, ms and "time", ms and seconds(ms) }
  return element("testcase", attributes, inside)
end

local function case_of_step(source, entry)
  local name = entry.id .. " " .. entry.type
  local what = parts.about(source.calls[entry.index + 1], entry.result)
  if what ~= "" then name = name .. ": " .. what end
  local inside, counter, message = nil, nil, entry.error or entry.status
  if entry.status == "skipped" then
    inside, counter = element("skipped", {}), "skipped"
  elseif entry.tolerated then
    inside, counter = outcome("skipped", "tolerated: " .. message), "skipped"
  elseif entry.status ~= "success" then
    local code = entry.error_code or entry.status
    inside, counter = outcome("failure", message, code, entry.output), "failures"
  elseif (entry.output or "") ~= "" then
    inside = element("system-out", {}, shown(entry.output))
  end
  return test_case("steps", name, entry.duration_ms, inside), counter
end

local function case_of_criterion(item)
  local inside, counter
  if item.met == false then
    inside, counter = outcome("failure", item.evidence, "acceptance_unmet"), "failures"
  elseif item.met ~= true then
    inside, counter = outcome("skipped", item.evidence), "skipped"
  end
  return test_case("acceptance", item.criterion, nil, inside), counter
end

-- What no step and no criterion shows: a refused job, an agent that gave up, a lost endpoint.
local function case_of_job(result)
  local code, message = result.failure_code, result.failure_message
  if type(code) ~= "string" then return nil end
  local inside = outcome("error", type(message) == "string" and message or code, code)
  return test_case("job", result.job_id, result.duration_ms, inside), "errors"
end

-- What a worker says that it used.
local function properties_of(used)
  if not used or not used.source then return "" end
  local list = {}
  for _, name in ipairs(result_schema.properties.inference.order) do
    local value = used[name]
    local attributes = { "name", "inference." .. name, "value", value }
    if value then list[#list + 1] = element("property", attributes) end
  end
  return element("properties", {}, "\n" .. table.concat(list))
end

---@param source report.source
---@return string[] parts of an XML document
function junit.of(source)
  local result, cases = source.result, {}
  local counts = { failures = 0, errors = 0, skipped = 0 }
  local function add(case, counter)
    if not case then return end
    cases[#cases + 1] = case
    if counter then counts[counter] = counts[counter] + 1 end
  end
  for _, entry in ipairs(result.steps) do
    if not entry.check then add(case_of_step(source, entry)) end
  end
  for _, item in ipairs(result.acceptance or {}) do add(case_of_criterion(item)) end
  if counts.failures == 0 then add(case_of_job(result)) end
  local content = properties_of(result.inference) .. table.concat(cases)
  local suite = element("testsuite", {
    "name", result.job_id, "tests", #cases, "failures", counts.failures,
    "errors", counts.errors, "skipped", counts.skipped,
    "time", seconds(result.duration_ms),
    "timestamp", (result.started_at:gsub("%.%d+Z$", "")),
  }, "\n" .. content)
  local declaration = '<?xml version="1.0" encoding="UTF-8"?>\n'
  return { declaration, element("testsuites", {}, "\n" .. suite) }
end

return junit
