-- SPDX-License-Identifier: Apache-2.0
-- The secrets of the runner: the agent's token for the gateway, and the passwords in the URLs that the environment gives.
-- Nobody else knows the token; whatever leaves the runner goes through redact.

local file = require "native.file"
local native = require "native.secret"
local native_text = require "native.text"

local secret = {}

local LARGEST_FILE <const> = 64 * 1024 -- bytes

-- URLs that the runner uses itself, or that every command uses.
local urls = {
  "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
  "SBA_JOB_STATUS_URL", "SBA_CALLBACK_URL", "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL", "SBA_API_EGRESS_URL", "OPENAI_BASE_URL",
  "SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_PROXY_URL", "MCP_GATEWAY_URL",
}

local token, failure, token_file
local warnings = {}

--- Makes a secret known to the redactor.
local function learn(value, what)
  if native.add(value) then return end
  warnings[#warnings + 1] = ("%s has fewer than %d characters: where it stands alone, it is not redacted"):format(what, native.SHORTEST)
end

--- The token of a file. It is read once, as whoever started the runner: before --user takes effect.
local function read_token(path)
  local bytes, problem = file.read(path, LARGEST_FILE, { regular = true })
  if not bytes then return nil, "cannot read the agent's token: " .. problem.message end
  bytes = native_text.trim_end(bytes, "\r\n")
  if bytes == "" then return nil, ("the file %s, which should hold the agent's token, is empty"):format(path) end
  return bytes
end

local function take_token(environment)
  local value, path = environment.SBA_MCP_TOKEN, environment.SBA_MCP_TOKEN_FILE
  environment.SBA_MCP_TOKEN, environment.SBA_MCP_TOKEN_FILE = nil, nil
  if value and value ~= "" then
    token = value
    learn(value, "SBA_MCP_TOKEN")
  end
  if not path or path == "" then return end
  token_file = path
  local problem
  token, problem = read_token(path)
  if token then return learn(token, "the agent's token") end
  failure = { code = "invalid_token", message = problem }
  warnings[#warnings + 1] = problem .. "; without it the gateway is not used"
end

local function unescaped(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

--- The password of a URL, as it stands there and as it is meant; a user name without one counts as a password.
local function take_password(url, variable)
  local authority = url:gsub("^%a[%w+.-]*://", ""):match("^[^/?#]*")
  local user_info = authority:match("^(.*)@")
  if not user_info or user_info == "" then return end
  local user, password = user_info:match("^([^:]*):(.+)$")
  if not password then
    native.add(user_info)
    native.add(unescaped(user_info))
    return
  end
  learn(unescaped(password), "the password in " .. variable)
  native.add(password)
  -- As a whole it is long enough even where the password alone is not; and this is what a Basic header encodes.
  native.add(user_info)
  native.add(unescaped(user) .. ":" .. unescaped(password))
end

---Takes the secrets out of the environment, once, before anything is logged. The token leaves the table; passwords stay, for
---the commands that need them.
---@param environment table<string, string>
---@return string[] warnings what an operator should know of them: sentences for the log
function secret.take(environment)
  take_token(environment)
  for _, variable in ipairs(urls) do
    local url = environment[variable]
    if url then take_password(url, variable) end
  end
  return warnings
end

---The agent's token.
---@return string? token nil where there is none
---@return native.failure? failure why not, where one was named
function secret.token()
  return token, failure
end

---@return string? path of the file that holds the agent's token
function secret.token_file() return token_file end

local function clean_table(value)
  local names
  for name, item in pairs(value) do
    local kind = type(item)
    if kind == "table" then
      clean_table(item)
    elseif kind == "string" and #item >= native.SHORTEST then
      value[name] = native.redact(item)
    end
    if type(name) == "string" and #name >= native.SHORTEST and native.redact(name) ~= name then
      names = names or {}
      names[#names + 1] = name
    end
  end
  for _, name in ipairs(names or {}) do value[native.redact(name)], value[name] = value[name], nil end
end

---Redacts every string of a value, in place: names too.
---@generic T
---@param value T
---@return T
function secret.clean(value)
  if not native.is_known() then return value end
  if type(value) == "string" then return native.redact(value) end
  if type(value) == "table" then clean_table(value) end
  return value
end

---Text without secrets: each is replaced by "[redacted]", however it is written, whole or cut at an end of the text. See
---src/core/secret.h. Costs nothing where no secret is known.
secret.redact = native.redact

return secret
