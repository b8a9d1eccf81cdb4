-- SPDX-License-Identifier: Apache-2.0
-- Where artifacts and the result are put: SBA_ARTIFACT_URLS_FILE has an address for each path
-- (presigned, so each has a signature of its own), SBA_ARTIFACT_URL_TEMPLATE makes one for any
-- path. Their queries are credentials.

local file = require "native.file"
local json = require "sba.util.json"
local native = require "native.secret"
local percent = require "sba.util.percent"
local text = require "native.text"

local upload_urls = {}

local TEMPLATE <const>, FILE <const> = "SBA_ARTIFACT_URL_TEMPLATE", "SBA_ARTIFACT_URLS_FILE"
local LARGEST <const> = 4 * 1024 * 1024 -- bytes of the file
-- Bytes of a query's value, from which on it is a secret whatever its name.
local LONG <const> = 20
-- Words in names of values that are secrets.
local of_secrets <const> = { "sig", "token", "key", "secret", "pass", "auth", "credential" }

local template, path = "", "" -- as given
local urls, failure

local function is_secret(name, value)
  if #value >= LONG then return true end
  for _, word in ipairs(of_secrets) do
    if name:lower():find(word, 1, true) then return true end
  end
  return false
end

local function learn(url)
  local query = url:match "%?(.*)$"
  if not query then return end
  if not query:find "[{}]" then native.add(query) end
  for pair in query:gmatch "[^&]+" do
    local at = pair:find("=", 1, true) or #pair
    local name, value = pair:sub(1, at - 1), pair:sub(at + 1)
    if not value:find "[{}]" and is_secret(name, value) then
      native.add(value)
      native.add(percent.decode(value))
    end
  end
end

local function read(from)
  local bytes, problem = file.read(from, LARGEST, { regular = true })
  if not bytes then return nil, problem.message end
  local value, mistake = json.decode(bytes)
  if mistake then return nil, mistake.message end
  for _, url in pairs(json.is_object(value) and value or {}) do
    if type(url) ~= "string" then return nil, "each member must be a string, the URL of its path" end
  end
  return json.is_object(value) and value or nil, "it must be a JSON object: a URL for each path"
end

---Takes the addresses out of the environment, as the user who started the runner, and learns their
---secrets.
---@param environment table<string, string>
---@param take_password fun(url: string, variable: string)
---@return string? warning
function upload_urls.take(environment, take_password)
  template, path = text.trim(environment[TEMPLATE] or ""), environment[FILE] or ""
  local warning, problem
  if template ~= "" and not template:find("{path}", 1, true) then
    warning = ("%s has no {path}: nothing is put there"):format(TEMPLATE)
    template = ""
  end
  if path ~= "" then
    urls, problem = read(path)
    if not urls then
      failure = ("cannot read the file of %s: %s"):format(FILE, native.redact(problem))
      warning = failure
    end
  end
  learn(template)
  take_password(template, TEMPLATE)
  for _, url in pairs(urls or {}) do
    learn(url)
    take_password(url, FILE)
  end
  return warning
end

---@return boolean
function upload_urls.any() return template ~= "" or path ~= "" end

---@return { path: string, what: string }? the file, which commands must not open
function upload_urls.file() return path ~= "" and { path = path, what = "the file of " .. FILE } or nil end

-- Servers and libraries take "." and ".." for steps in the tree.
local function climbs(value)
  for segment in value:gmatch "[^/]+" do
    if segment == "." or segment == ".." then return true end
  end
  return false
end

local function filled(part, values, keeps_slashes)
  return (part:gsub("{([%a_]+)}", function(name)
    if not values[name] then return nil end
    local encoded = values[name]:gsub("[^%w._~/-]", percent.encode)
    if not (keeps_slashes and name == "path") then encoded = encoded:gsub("/", percent.encode) end
    return encoded
  end))
end

---The address of a path: {path}, {job_id} and {task_id} are percent-encoded; a path keeps its
---slashes, but in a query.
---@param values { path: string, job_id: string, task_id: string }
---@return string? url, native.failure? failure
function upload_urls.of(values)
  local url = urls and urls[values.path]
  if url then return url end
  if template == "" then
    return nil, { code = "no_url", message = failure or ("%s has no URL for it"):format(FILE) }
  end
  for name, value in pairs(values) do
    if template:find("{" .. name .. "}", 1, true) and (value == "" or climbs(value)) then
      return nil, { code = "no_url", message = ("its %s cannot be part of a URL"):format(name) }
    end
  end
  local at = template:find("?", 1, true) or #template + 1
  return filled(template:sub(1, at - 1), values, true) .. filled(template:sub(at), values, false)
end

return upload_urls
