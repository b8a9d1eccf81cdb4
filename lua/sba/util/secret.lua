-- SPDX-License-Identifier: Apache-2.0
-- The secrets of the environment: the agent's token for the gateway, the API key for models,
-- passwords in URLs, those of the operator (operator_secrets.lua). Only this module knows token and
-- key.

local file = require "native.file"
local identity = require "native.identity"
local lazy = require "sba.util.lazy"
local native = require "native.secret"
local native_text = require "native.text"
local percent = require "sba.util.percent"

local humanize = lazy "sba.util.humanize"
local operator = lazy "sba.util.operator_secrets"
local upload_urls = lazy "sba.util.upload_urls"

local secret = {}

-- Bytes that servers take in a header.
local LARGEST_TOKEN <const> = 8 * 1024

local proxies <const> = { HTTP_PROXY = true, HTTPS_PROXY = true, ALL_PROXY = true,
  http_proxy = true, https_proxy = true, all_proxy = true }
-- Not for commands.
local own_urls <const> = {
  SBA_JOB_STATUS_URL = true, SBA_CALLBACK_URL = true, OPENAI_BASE_URL = true,
  INFERENCE_PROXY_URL = true, OLLAMA_BASE_URL = true, SBA_API_EGRESS_URL = true,
  SBA_MCP_GATEWAY_URL = true, MCP_GATEWAY_PROXY_URL = true, MCP_GATEWAY_URL = true,
  OTEL_EXPORTER_OTLP_ENDPOINT = true, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = true,
}
local operator_variables <const> = { "SBA_SECRETS", "SBA_SECRETS_DIR" }
local upload_variables <const> = { "SBA_ARTIFACT_URL_TEMPLATE", "SBA_ARTIFACT_URLS_FILE" }
-- Headers, which may hold a key.
local otlp_variables <const> = { "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS" }

-- The last word of names of variables with a key, and the one before "_KEY".
local LAST_WORDS <const> = { _TOKEN = true, _SECRET = true, _PASSWORD = true }
local BEFORE_KEY <const> = { _API = true, _ACCESS = true, _PRIVATE = true, _SECRET = true }
local SHORTEST_KEY <const> = 8 -- bytes

local function is_own_url(name) return own_urls[name] or name:find("^ORCHESTRATOR_") ~= nil end

-- No secret of the operator may have such a name. A key that the runner uses too may be one:
-- OPENAI_API_KEY.
local function is_reserved(name)
  local is_ours = name:find "^SBA_" or name:find "^CYNODE_"
  return is_ours ~= nil or is_own_url(name) or proxies[name]
end

---@param environment table<string, string>
---@param names string[]
---@return string? value, string? name of the first that is not empty
function secret.first_set(environment, names)
  for _, name in ipairs(names) do
    local value = environment[name]
    if value and value ~= "" then return value, name end
  end
end

-- The file wins. take_token adds value, path and failure.
local agent_token <const> = {
  file_variable = "SBA_MCP_TOKEN_FILE", variable = "SBA_MCP_TOKEN",
  what = "the agent's token", unused = "the gateway is not used",
}
local api_key <const> = {
  file_variable = "SBA_API_KEY_FILE", variable = "OPENAI_API_KEY",
  what = "the API key", unused = "OPENAI_BASE_URL is not used",
}
local otlp_headers
local has_operator, has_upload_urls = false, false
local warnings = {}

local function warn_short(what)
  local words = "%s has fewer than %d characters: it is redacted only together with its user"
  warnings[#warnings + 1] = words:format(what, native.SHORTEST)
end

local function add(value, what)
  if not native.add(value) then warn_short(what) end
end

-- As the user who started the runner: before --user takes effect. A path may hold the token itself.
local function read_token(path, what)
  local bytes, problem = file.read(path, LARGEST_TOKEN, { regular = true })
  if not bytes then
    return nil, "cannot read " .. what .. ": " .. native.redact(problem.message)
  end
  bytes = native_text.trim_end(bytes, "\r\n")
  if bytes ~= "" then return bytes end
  return nil, "the file " .. native.redact(path) .. ", which should hold " .. what .. ", is empty"
end

local function take_token(environment, token)
  local value, path = environment[token.variable] or "", environment[token.file_variable] or ""
  if value ~= "" then
    token.value = value
    add(value, token.variable)
  end
  if path == "" then return end
  local problem
  token.path = path
  token.value, problem = read_token(path, token.what)
  if token.value then return add(token.value, token.what) end
  token.failure = { code = "invalid_token", message = problem }
  warnings[#warnings + 1] = ("%s; %s"):format(problem, token.unused)
end

-- What stands before each "@" of an address: "user:password" or "user". A raw "/", "?" or "#" ends
-- the host for RFC 3986, but whoever wrote the password meant it to go on.
local function user_infos(address)
  local found, given = {}, native_text.trim(address)
  local rest = given:match "^%a[%w+.-]*:[/\\]+(.*)$" or given:match "^[Hh][Tt][Tt][Pp][Ss]?:(.*)$"
  rest = rest or given:match "^[/\\]*(.*)$"
  for before in rest:gmatch "()@" do
    if before > 1 then found[#found + 1] = rest:sub(1, before - 1) end
  end
  return found
end

-- As it stands there and decoded. A user name without a password counts as one.
local function take_password(address, variable)
  local found, is_short = user_infos(address), false
  for _, info in ipairs(found) do
    local password = info:match("^[^:]*:(.+)$")
    if password then
      -- The longest comes last: it decides whether there is a warning.
      is_short = not native.add(percent.decode(password))
      native.add(password)
    end
    -- Name and password are long enough even if the password alone is not.
    native.add(info)
    -- What the header of Basic authentication encodes.
    native.add(percent.decode(info))
  end
  if is_short then warn_short("the password in " .. variable) end
end

local function take_headers(value)
  for pair in value:gmatch("[^,]+") do
    local word = native_text.trim(pair:match("=(.*)") or "")
    native.add(word)
    native.add(percent.decode(word))
  end
end

local function last_word(name) return name:match "^.*(_.+)$" end

local function looks_like_key(name)
  local last = last_word(name)
  if last ~= "_KEY" then return LAST_WORDS[last] end
  return BEFORE_KEY[last_word(name:sub(1, -#"_KEY" - 1))]
end

-- Of variables that look like keys, and reach every command because the operator did not name them.
local function warn_unnamed(environment)
  local found = {}
  for name, value in pairs(environment) do
    if #value >= SHORTEST_KEY and looks_like_key(name) then found[#found + 1] = name end
  end
  if not found[1] then return end
  table.sort(found)
  local words = "commands get %s, and the result what they print of it; SBA_SECRETS keeps it for those that list it"
  warnings[#warnings + 1] = words:format(humanize.list(found, "and"))
end

-- Adds elements to a list.
local function extend(list, more) table.move(more, 1, #more, #list + 1, list) end

---Takes the secrets, before anything is logged. Token, key and the operator's secrets leave the
---table; they and the runner's own URLs leave the process's environment too, which children could
---read in /proc. Blanks around those URLs go.
---@param environment table<string, string>
---@return string[] warnings for the log, one sentence each
function secret.take(environment)
  local names, of_operator = {}, {}
  has_operator = secret.first_set(environment, operator_variables) ~= nil
  if has_operator then names, of_operator = operator.take(environment, is_reserved) end
  take_token(environment, agent_token)
  take_token(environment, api_key)
  if secret.first_set(environment, upload_variables) then
    warnings[#warnings + 1] = upload_urls.take(environment, take_password)
    has_upload_urls = upload_urls.any()
  end
  otlp_headers = secret.first_set(environment, otlp_variables)
  for _, name in ipairs(otlp_variables) do take_headers(environment[name] or "") end
  for _, token in ipairs { agent_token, api_key } do extend(names, { token.variable, token.file_variable }) end
  extend(names, operator_variables)
  extend(names, upload_variables)
  extend(names, otlp_variables)
  for _, name in ipairs(names) do environment[name] = nil end
  for name, value in pairs(environment) do
    local is_own = is_own_url(name)
    if is_own then names[#names + 1], environment[name] = name, native_text.trim(value) end
    if is_own or proxies[name] then take_password(value, name) end
  end
  identity.environment(names)
  extend(warnings, of_operator)
  warn_unnamed(environment)
  return warnings
end

---@param environment table<string, string>
---@return table<string, string> without the runner's own URLs that hold a password
function secret.for_commands(environment)
  local result = {}
  for name, value in pairs(environment) do
    if not (is_own_url(name) and user_infos(value)[1]) then result[name] = value end
  end
  return result
end

---For the gateway only.
---@return string? token, native.failure? failure where a file is named that cannot be read
function secret.agent_token() return agent_token.value, agent_token.failure end

---Reads the agent token's file again, which a node may have replaced.
---@return string? token nil: there is no other
function secret.renew_agent_token()
  local value = agent_token.path and read_token(agent_token.path, agent_token.what)
  if not value or value == agent_token.value then return nil end
  agent_token.value = value
  add(value, agent_token.what)
  return value
end

---For OPENAI_BASE_URL only.
---@return string? key, native.failure? failure where there is one that cannot be used
function secret.api_key()
  local key, message = api_key.value, "the API key has characters that a header cannot carry"
  if not key or key:find "^[\x21-\x7E]+$" then return key, api_key.failure end
  return nil, { code = "invalid_token", message = message }
end

---@return string?
function secret.otlp_headers() return otlp_headers end

---@return { path: string, what: string }[] what commands must not open; a directory comes before what lies in it
function secret.files()
  local list = {}
  if has_operator then extend(list, operator.files()) end
  for _, token in ipairs { agent_token, api_key } do
    if token.path then list[#list + 1] = { path = token.path, what = token.what } end
  end
  if has_upload_urls then list[#list + 1] = upload_urls.file() end
  return list
end

---For the commands that list it.
---@param name string
---@return string?
function secret.of_operator(name) return operator.value(name) end

---@param name string
---@return string? why the operator gives no secret of this name
function secret.unknown(name) return operator.unknown(name) end

---@return failure? why no job runs
function secret.failure() return has_operator and operator.failure() or nil end

---@return boolean there are addresses for artifacts and the result
function secret.has_upload_urls() return has_upload_urls end

-- They hold no text from outside; nor do enumerations.
local own_fields <const> = {
  id = true, job_id = true, task_id = true, type = true, protocol_version = true, error_code = true,
  started_at = true, finished_at = true, signal = true, action = true, mode = true, sha256 = true,
}

local function clean_names(value)
  local changed = {}
  for name in pairs(value) do
    if type(name) == "string" and native.redact(name) ~= name then changed[#changed + 1] = name end
  end
  for _, name in ipairs(changed) do value[native.redact(name)], value[name] = value[name], nil end
end

local function clean(value, schema)
  if type(value) == "string" then return native.redact(value) end
  if type(value) ~= "table" then return value end
  local properties = schema and schema.properties or {}
  for name, item in pairs(value) do
    local property = properties[name]
    local is_own = property and (own_fields[name] or property.enum)
    if (type(item) == "string" or type(item) == "table") and not is_own then
      value[name] = clean(item, property or schema and schema.items)
    end
  end
  if not schema then clean_names(value) end
  return value
end

---Redacts tables in place. Of an object that a schema describes, keys, enumerations and ids are
---ours and stay.
---@generic T
---@param value T
---@param schema? table
---@return T
function secret.clean(value, schema)
  return native.is_known() and clean(value, schema) or value
end

secret.redact = native.redact

return secret
