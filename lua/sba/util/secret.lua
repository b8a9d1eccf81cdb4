-- SPDX-License-Identifier: Apache-2.0
-- The runner's secrets: the agent's token for the gateway, and the passwords in URLs of the environment. They are redacted in
-- text from outside, where it comes in; only this module knows the token.

local file = require "native.file"
local identity = require "native.identity"
local native = require "native.secret"
local native_text = require "native.text"

local secret = {}

local LARGEST_TOKEN <const> = 8 * 1024 -- bytes, as much as servers take in a header

-- URLs that commands use too.
local proxies <const> = {
  HTTP_PROXY = true, HTTPS_PROXY = true, ALL_PROXY = true, http_proxy = true, https_proxy = true, all_proxy = true,
}
-- URLs that only the runner uses.
local own_urls <const> = {
  SBA_JOB_STATUS_URL = true, SBA_CALLBACK_URL = true, INFERENCE_PROXY_URL = true, OLLAMA_BASE_URL = true,
  SBA_API_EGRESS_URL = true, OPENAI_BASE_URL = true, SBA_MCP_GATEWAY_URL = true, MCP_GATEWAY_PROXY_URL = true,
  MCP_GATEWAY_URL = true, OTEL_EXPORTER_OTLP_ENDPOINT = true, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = true,
}
-- Headers for the collector of traces, which may hold its key. The first that is set wins.
local otlp_variables <const> = { "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS" }

local function is_own_url(name)
  return own_urls[name] or name:find("^ORCHESTRATOR_") ~= nil
end

local token, failure, token_file, otlp_headers
local warnings = {}

local function add(value, what)
  if native.add(value) then return end
  warnings[#warnings + 1] = ("%s has fewer than %d characters: it is redacted only together with its user"):format(what, native.SHORTEST)
end

--- Reads the file once, as the user who started the runner: before --user takes effect.
local function read_token(path)
  local bytes, problem = file.read(path, LARGEST_TOKEN, { regular = true })
  if not bytes then return nil, "cannot read the agent's token: " .. native.redact(problem.message) end -- a path may hold the token itself
  bytes = native_text.trim_end(bytes, "\r\n")
  if bytes == "" then return nil, ("the file %s, which should hold the agent's token, is empty"):format(native.redact(path)) end
  return bytes
end

local function take_token(environment)
  local value, path = environment.SBA_MCP_TOKEN, environment.SBA_MCP_TOKEN_FILE
  environment.SBA_MCP_TOKEN, environment.SBA_MCP_TOKEN_FILE = nil, nil
  if value and value ~= "" then
    token = value
    add(value, "SBA_MCP_TOKEN")
  end
  if not path or path == "" then return end
  token_file = path
  local problem
  token, problem = read_token(path)
  if token then return add(token, "the agent's token") end
  failure = { code = "invalid_token", message = problem }
  warnings[#warnings + 1] = problem .. "; the gateway is not used"
end

local function unescaped(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- User name and password of a URL; nil if it has none.
local function user_info(url)
  local found = url:gsub("^[^/?#:]*://", ""):match("^[^/?#]*"):match("^(.*)@")
  return found ~= "" and found or nil
end

--- Adds the password of a URL as it stands there and decoded. A user name without one counts as a password.
local function take_password(url, variable)
  local found = user_info(url)
  if not found then return end
  local user, password = found:match("^([^:]*):(.+)$")
  if not password then
    native.add(found)
    native.add(unescaped(found))
    return
  end
  add(unescaped(password), "the password in " .. variable)
  native.add(password)
  -- Long enough even if the password alone is not; and what the header of Basic authentication encodes.
  native.add(found)
  native.add(unescaped(user) .. ":" .. unescaped(password))
end

--- The values of these headers are secrets. Commands do not get the variables.
local function take_otlp_headers(environment, names)
  for _, name in ipairs(otlp_variables) do
    local value = environment[name]
    if value and value ~= "" then
      otlp_headers = otlp_headers or value
      for pair in value:gmatch("[^,]+") do
        local at = pair:find("=", 1, true)
        local word = at and native_text.trim(pair:sub(at + 1)) or ""
        if #word >= native.SHORTEST then
          native.add(word)
          native.add(unescaped(word))
        end
      end
    end
    environment[name], names[#names + 1] = nil, name
  end
end

---Takes the secrets of the environment, once, before anything is logged. The token leaves the table; it and the runner's own
---URLs leave the process's environment too, where children could read it in /proc. Blanks around those URLs are taken off.
---@param environment table<string, string>
---@return string[] warnings for the log, one sentence each
function secret.take(environment)
  local names = { "SBA_MCP_TOKEN", "SBA_MCP_TOKEN_FILE" }
  take_token(environment)
  take_otlp_headers(environment, names)
  for name, value in pairs(environment) do
    if is_own_url(name) then names[#names + 1], environment[name] = name, native_text.trim(value) end
    if is_own_url(name) or proxies[name] then take_password(value, name) end
  end
  identity.environment(names)
  return warnings
end

---The environment without URLs of the runner's own that hold a password: what a command may have.
---@param environment table<string, string>
---@return table<string, string>
function secret.for_commands(environment)
  local result = {}
  for name, value in pairs(environment) do
    if not (is_own_url(name) and user_info(value)) then result[name] = value end
  end
  return result
end

---The agent's token.
---@return string? token nil if there is none
---@return native.failure? failure if one was named and cannot be had
function secret.token()
  return token, failure
end

---@return string? headers for the collector of traces, as the environment has them
function secret.otlp_headers() return otlp_headers end

---@return string? path of the file that holds the agent's token
function secret.token_file() return token_file end

-- Fields of ours that hold no text from outside. So do enumerations, which their schema tells.
local own_fields <const> = {
  id = true, job_id = true, task_id = true, type = true, protocol_version = true, error_code = true, started_at = true,
  finished_at = true, signal = true, action = true, mode = true, sha256 = true,
}

local function is_own(schema, name)
  local property = schema and schema.properties and schema.properties[name]
  return property and (own_fields[name] or property.enum) and true or false
end

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
  for name, item in pairs(value) do
    if not is_own(schema, name) then
      value[name] = clean(item, schema and (schema.properties and schema.properties[name] or schema.items))
    end
  end
  if not schema then clean_names(value) end
  return value
end

---Redacts a value from outside, tables in place. Where a schema describes an object, its keys, its enumerations and its
---identifiers are ours and stay; elsewhere keys are redacted too.
---@generic T
---@param value T
---@param schema? table
---@return T
function secret.clean(value, schema)
  return native.is_known() and clean(value, schema) or value
end

---Text from outside without secrets; `cut` says at which ends the caller cut it. src/core/secret.h has the details.
---@type fun(text: string, cut?: "none"|"start"|"end"|"both"): string
secret.redact = native.redact

return secret
