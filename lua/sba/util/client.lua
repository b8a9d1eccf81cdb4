-- SPDX-License-Identifier: Apache-2.0
-- The runner's own way out: an HTTP client with the proxies and the trust that the environment names.

local http = require "native.http"

local client = {}

-- The lower-case names come first, as in other programs.
local function either(environment, name)
  local value = environment[name:lower()] or environment[name]
  return value ~= "" and value or nil
end

---@param environment table<string, string>
---@return native.http.client?, native.failure?
function client.new(environment)
  return http.client {
    http_proxy = either(environment, "HTTP_PROXY"), https_proxy = either(environment, "HTTPS_PROXY"),
    no_proxy = either(environment, "NO_PROXY"), ca_file = either(environment, "SSL_CERT_FILE"),
    ca_directory = either(environment, "SSL_CERT_DIR"),
  }
end

return client
