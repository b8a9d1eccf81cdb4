-- SPDX-License-Identifier: Apache-2.0
-- JSON-RPC 2.0 with a child process: one message a line, on its stdin and stdout. Knows nothing of
-- the protocol above it, and moves no bytes: what came goes in, what is to be sent comes out.
-- Source: jsonrpc.org/specification; the lines are those of the Agent Client Protocol's and of
-- MCP's stdio transport.

local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"

local json_rpc = {}
json_rpc.__index = json_rpc

local LONGEST_LINE <const> = 4 * 1024 * 1024 -- bytes
-- Bytes of what is to be sent, from which on requests are refused: one of a hundred bytes may ask
-- for a megabyte.
local MOST_UNSENT <const> = 16 * 1024 * 1024

local TOO_LONG <const> = ("a line is longer than %d bytes"):format(LONGEST_LINE)

json_rpc.INVALID_PARAMS, json_rpc.INTERNAL_ERROR = -32602, -32603
local METHOD_NOT_FOUND <const> = -32601

---@class json_rpc.error: { code: integer, message: string }

---@class json_rpc
---@field owner any the first argument of the functions below
---@field requests table<string, fun(owner: any, params: table): table?, json_rpc.error?> what the
---other side may ask, by method
---@field notices table<string, fun(owner: any, params: table)> what it may tell
---@field unread fun(owner: any, why: string) told of what is not understood: it is not acted upon

---@param fields json_rpc
---@return json_rpc
function json_rpc.new(fields)
  fields.waiting, fields.last_id = {}, 0
  fields.outgoing, fields.unsent = {}, 0
  fields.rest, fields.size = {}, 0
  return setmetatable(fields, json_rpc)
end

local function send(self, message)
  message.jsonrpc = "2.0"
  local line = json.encode(message) .. "\n"
  self.outgoing[#self.outgoing + 1], self.unsent = line, self.unsent + #line
end

---@param method string
---@param params table
---@param answer fun(result: any, failure?: json_rpc.error) called once, when the answer comes
function json_rpc:request(method, params, answer)
  self.last_id = self.last_id + 1
  self.waiting[self.last_id] = answer
  send(self, { id = self.last_id, method = method, params = params })
end

---@param method string
---@param params table
function json_rpc:notify(method, params) send(self, { method = method, params = params }) end

---@return string? bytes what is to be sent since the last call
function json_rpc:take()
  if #self.outgoing == 0 then return nil end
  local bytes = table.concat(self.outgoing)
  self.outgoing, self.unsent = {}, 0
  return bytes
end

local function take_answer(self, message)
  local answer = self.waiting[message.id]
  if not answer then return self.unread(self.owner, "an answer that nobody waits for") end
  self.waiting[message.id] = nil
  local failure = message.error
  if failure == nil or failure == json.null then return answer(message.result) end
  local said = json.table_of(failure)
  local code, words = math.tointeger(said.code), said.message
  if type(words) ~= "string" then words = "no reason is given" end
  answer(nil, { code = code or json_rpc.INTERNAL_ERROR, message = words })
end

local function answer_to(self, method, params)
  local respond = self.requests[method]
  if not respond then
    return nil, { code = METHOD_NOT_FOUND, message = "there is no method " .. method }
  end
  if self.unsent < MOST_UNSENT then return respond(self.owner, params) end
  return nil, { code = json_rpc.INTERNAL_ERROR, message = "too many answers wait to be read" }
end

local function take_request(self, message)
  local method, params = message.method, json.table_of(message.params)
  if message.id == nil then
    local notice = self.notices[method]
    return notice and notice(self.owner, params)
  end
  local result, failure = answer_to(self, method, params)
  send(self, { id = message.id, result = result, error = failure })
end

local function take_line(self, line)
  if line:find "^%s*$" then return end
  local message = json_tolerant.decode(line)
  if not json.is_object(message) then
    return self.unread(self.owner, "a line that is no message: " .. line)
  end
  if type(message.method) == "string" then return take_request(self, message) end
  local is_answer = message.result ~= nil or message.error ~= nil
  if is_answer and message.id ~= nil then return take_answer(self, message) end
  self.unread(self.owner, "neither a request nor an answer: " .. line)
end

---Takes what came. An error of a callback goes through.
---@param bytes string
---@return true?, string? message a line is too long: the talk cannot go on
function json_rpc:receive(bytes)
  local from = 1
  while true do
    local newline = bytes:find("\n", from, true)
    local part = bytes:sub(from, (newline or 0) - 1)
    self.size = self.size + #part
    if self.size > LONGEST_LINE then return nil, TOO_LONG end
    table.insert(self.rest, part)
    if not newline then return true end
    local line = table.concat(self.rest)
    self.rest, self.size, from = {}, 0, newline + 1
    take_line(self, line)
  end
end

return json_rpc
