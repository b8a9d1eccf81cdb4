-- SPDX-License-Identifier: Apache-2.0
-- The envelope of a node's proxy: a request to the gateway, and its answer, as JSON objects whose body is base64.

local http = require "sba.util.http"
local json = require "sba.util.json"
local text = require "native.text"

local envelope = {}

local VERSION <const> = 1
local NAME <const> = "mcp:call" -- the end of the proxy's path
local LARGEST <const> = 10 * 1024 * 1024 -- bytes of a request that a node takes
local OVERHEAD <const> = 1024 -- bytes of an envelope around its body, at most
local LARGEST_BODY <const> = (LARGEST - OVERHEAD) // 4 * 3 -- bytes before base64

-- Bytes of a file that fits into a call as base64, the call's other arguments included.
envelope.LARGEST_FILE = (LARGEST_BODY - 65536) // 4 * 3

---Whether a URL is that of a node's proxy.
---@param url string
---@return boolean
function envelope.is_named_by(url)
  local path = url:match "^[^?#]*"
  return path:sub(-#NAME) == NAME
end

---A request as the proxy takes it.
---@param path string of the gateway
---@param body string JSON
---@return table? message
---@return mcp.failure? failure too_large
function envelope.wrap(path, body)
  if #body > LARGEST_BODY then
    return nil, http.failure("too_large", ("the call has %d bytes; the node's proxy accepts at most %d"):format(#body, LARGEST_BODY))
  end
  return {
    version = VERSION, method = "POST", path = path, headers = { ["Content-Type"] = json.array { "application/json" } },
    body_b64 = text.base64_encode(body),
  }
end

---The gateway's answer in the proxy's.
---@param bytes string
---@return integer? status of the gateway
---@return string body, or what is wrong with the answer
function envelope.unwrap(bytes)
  local value, problem = json.decode(bytes)
  if not json.is_object(value) then return nil, problem and "that is not JSON: " .. problem.message or "that is not an object" end
  local status = math.type(value.status) == "integer" and value.status or 0
  if status < 200 or status > 599 then return nil, "without the gateway's status" end
  local encoded = value.body_b64
  if encoded == nil or encoded == json.null then return status, "" end
  local body, undecodable = nil, nil
  if type(encoded) == "string" then body, undecodable = text.base64_decode(encoded) end
  if body then return status, body end
  return nil, "with a body_b64 that cannot be decoded" .. (undecodable and ": " .. undecodable.message or "")
end

return envelope
