-- SPDX-License-Identifier: Apache-2.0
-- Requests to an inference endpoint, and what went wrong with one: every failure says whom it is about, whether its cause passes,
-- and what the server asked for.

local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local page = require "sba.util.page"
local printable = require "sba.util.printable"
local retry = require "sba.util.retry"
local stream = require "sba.inference.stream"
local text = require "native.text"

local wire = {}

local LARGEST_ANSWER <const> = 32 * 1024 * 1024 -- bytes of one answer on the wire; a streamed token costs some 150
local LARGEST_ERROR <const> = 64 * 1024 -- bytes of an error's body that are read
local MOST_SHOWN <const> = 300 -- bytes of a server's own words in a message

---@class inference.endpoint
---@field variable string of the environment that names it
---@field base string URL without a slash at its end
---@field http native.http.client
---@field patience { connect: number, first: number, idle: number, probe: number } seconds

---@class inference.failure
---@field code "timeout"|"cancelled"|"context_cut"|"inference_unavailable"
---@field cause string finer: "connection_refused", "cut_off", "too_large", "bad_answer", "busy", "rate_limited", "quota", "refused",
---                    "model_missing", "tools_unsupported", "think_unsupported", "max_tokens_unsupported", "server_failed", ...
---@field message string one line for people
---@field passing boolean whether trying again may help
---@field once? boolean tried once more at most
---@field retry_after? number seconds, as the server asked
---@field status? integer of HTTP
---@field context_length? integer of a context_cut: what the server says it has
---@field tries? integer how often the request was sent

local own_codes = { timeout = true, cancelled = true, context_cut = true }

-- Causes below HTTP that may be gone at the next try.
local passing = {
  connection_refused = true, connection_failed = true, network_unreachable = true, name_not_resolved = true, proxy_failed = true,
  slow_connect = true, slow_first_byte = true, slow_answer = true, cut_off = true,
}

---Where an endpoint is, for people: never a user name, a path or a query.
---@param base string
---@return string
function wire.place(base)
  local socket = base:match("^http%+unix://([^/?#]*)")
  if not socket then return base:match("^%a[%w+.-]*://[^/?#@]*%f[/?#\0]") or "its URL" end
  return "the socket " .. printable.line((socket:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)))
end

---Makes a failure of the session's out of one of native.http or of the modules here.
---@param endpoint inference.endpoint
---@param failure { code: string, message: string }
---@return inference.failure
function wire.failure(endpoint, failure)
  if failure.cause then return failure end
  local own = own_codes[failure.code]
  local message = failure.message
  if failure.code == "bad_answer" or failure.code == "too_large" or failure.code == "cut_off" then
    if not message:find(wire.place(endpoint.base), 1, true) then message = ("%s: %s"):format(wire.place(endpoint.base), message) end
  end
  return {
    code = own and failure.code or "inference_unavailable", cause = failure.code, message = message,
    passing = passing[failure.code] or false,
  }
end

--- A server's own words, on one line and cut.
local function shown(words)
  local line = printable.line(words)
  return #line > MOST_SHOWN and text.cut(line, MOST_SHOWN) .. "..." or line
end

local function of_kind(value, kind)
  return type(value) == kind and value or nil
end

---What an error of a server says, whatever form it comes in.
---@param body any decoded, or a string
---@return string words, table details the error's object where there is one
function wire.words(body)
  if type(body) == "string" then
    local inner = body:find("^%s*{") and stream.decode(body)
    if type(inner) == "table" then return wire.words(inner) end
    return page(body) or body:find("%S") and body or "an empty answer", {}
  end
  if type(body) ~= "table" then return tostring(body), {} end
  local details = of_kind(body.error, "table") or body
  if type(body.error) == "string" then return wire.words(body.error) end
  local words = of_kind(details.message, "string") or of_kind(body.detail, "string")
  return words or json.encode(body), details
end

-- Causes by the server's words, the first that fits; lower case.
local spellings = {
  { "does not support tools", "tools_unsupported" },
  { "requires --enable-auto-tool-choice", "tools_unsupported" },
  { "tools param requires --jinja", "tools_unsupported" },
  { "does not support thinking", "think_unsupported" },
  { "max_completion_tokens", "max_tokens_unsupported" },
  { "exceed_context_size_error", "context_cut" },
  { "context_length_exceeded", "context_cut" },
  { "exceeds the available context size", "context_cut" },
  { "maximum context length", "context_cut" },
  { "longer than the context length", "context_cut" },
  { "insufficient_quota", "quota" },
  { "response_format", "format_unsupported" },
  { "json_schema", "format_unsupported" },
  { "grammar", "format_unsupported" },
}

-- Causes by the status, where the words say nothing. once: a server's own bug mostly stays.
local statuses = {
  [404] = { "model_missing" }, [408] = { "slow_answer", passing = true }, [409] = { "busy", passing = true },
  [429] = { "rate_limited", passing = true }, [500] = { "server_failed", passing = true, once = true },
  [502] = { "server_failed", passing = true }, [503] = { "busy", passing = true }, [504] = { "server_failed", passing = true },
  [529] = { "busy", passing = true },
}

local function cause_of(status, words, details)
  local all = (words .. " " .. tostring(details.code or "") .. " " .. tostring(details.type or "")):lower()
  for _, spelling in ipairs(spellings) do
    if all:find(spelling[1], 1, true) then return { spelling[2] } end
  end
  return statuses[status] or { "refused", passing = status >= 500 }
end

---The failure that an error status, or an error in the middle of a stream, means.
---@param endpoint inference.endpoint
---@param status integer
---@param body any decoded, or a string
---@param retry_after? string
---@return inference.failure
function wire.refusal(endpoint, status, body, retry_after)
  local words, details = wire.words(body)
  local cause = cause_of(status, words, details)
  local window = math.tointeger(details.n_ctx) or math.tointeger(tonumber(words:match("maximum context length is (%d+)")))
  return {
    code = own_codes[cause[1]] and cause[1] or "inference_unavailable", cause = cause[1], status = status,
    message = ("%s answered with status %d: %s"):format(wire.place(endpoint.base), status, shown(words)),
    passing = cause.passing or false, once = cause.once, retry_after = retry.after(retry_after), context_length = window,
  }
end

---An error that came after the status 200: the stream broke.
---@param endpoint inference.endpoint
---@param body any
---@return inference.failure
function wire.broken(endpoint, body)
  local failure = wire.refusal(endpoint, 502, body)
  failure.status = nil
  failure.message = ("%s broke off its reply: %s"):format(wire.place(endpoint.base), shown((wire.words(body))))
  return failure
end

local function read_whole(exchange, limit)
  local parts, size = {}, 0
  while true do
    local piece, failure = exchange:read()
    if failure then return nil, failure end
    if not piece then return table.concat(parts) end
    parts[#parts + 1], size = piece, size + #piece
    if limit and size >= limit then return table.concat(parts) end
  end
end

--- What else is to be known of an answer that is an error: where it would lead, who else may have given it.
local function whence(exchange, status)
  local location, proxy = status >= 300 and status < 400 and exchange:header "Location", exchange:proxy()
  local redirect = location and ("; it redirects to %s, which is not followed"):format(shown(wire.place(location))) or ""
  return redirect .. (proxy and ("; %s may have answered in its place"):format(proxy) or "")
end

--- Sends a request; returns the exchange where its status is 200.
local function send(endpoint, request)
  request.body_limit = LARGEST_ANSWER
  request.connect_patience, request.idle_patience = endpoint.patience.connect, endpoint.patience.idle
  local exchange, failure = endpoint.http:open(request)
  local status
  if exchange then status, failure = exchange:status() end
  if not status then return nil, wire.failure(endpoint, failure) end
  if status == 200 then return exchange end
  local body = read_whole(exchange, LARGEST_ERROR)
  failure = wire.refusal(endpoint, status, body or "", exchange:header("Retry-After"))
  failure.message = failure.message .. whence(exchange, status)
  exchange:close()
  return nil, failure
end

local JSON_HEADERS <const> = { "Content-Type: application/json", "Accept: application/json" }

---Asks for one JSON object: GET, or POST of a body.
---@param endpoint inference.endpoint
---@param path string
---@param body? string
---@return table?, inference.failure?
function wire.ask(endpoint, path, body)
  local exchange, failure = send(endpoint, {
    method = body and "POST" or "GET", url = endpoint.base .. path, body = body, headers = JSON_HEADERS,
    first_patience = endpoint.patience.probe,
  })
  if not exchange then return nil, failure end
  return wire.object(endpoint, exchange)
end

---The rest of an answer as one JSON object.
---@param endpoint inference.endpoint
---@param exchange native.http.exchange
---@return table?, inference.failure?
function wire.object(endpoint, exchange)
  local bytes, failure = read_whole(exchange)
  exchange:close()
  if not bytes then return nil, wire.failure(endpoint, failure) end
  local value = stream.decode(bytes)
  if json.is_object(value) then return value end
  local html = page(bytes)
  local what = not bytes:find("%S") and "sent an empty answer" or html and ("sent %s, not JSON"):format(html)
    or "sent what is not JSON: " .. shown(bytes:sub(1, 100))
  return nil, wire.failure(endpoint, { code = "bad_answer", message = what })
end

---Posts a request whose answer is streamed.
---@param endpoint inference.endpoint
---@param path string
---@param body string
---@param accept string content type
---@return native.http.exchange?, inference.failure?
function wire.post(endpoint, path, body, accept)
  return send(endpoint, {
    method = "POST", url = endpoint.base .. path, body = body, first_patience = endpoint.patience.first,
    headers = { "Content-Type: application/json", "Accept: " .. accept },
  })
end

---What is no JSON in the middle of a reply is as if it had been cut off there: something between the server and us broke it.
---@param endpoint inference.endpoint
---@param failed { code: string, message: string }
---@param begun boolean whether something of the reply was there
---@return inference.failure
function wire.unread(endpoint, failed, begun)
  local failure = wire.failure(endpoint, failed)
  failure.passing = failure.passing or begun and failure.cause == "bad_answer"
  return failure
end

---The failure of a reply that ended before its end.
---@param endpoint inference.endpoint
---@return inference.failure
function wire.cut_off(endpoint)
  return wire.failure(endpoint, interrupt.reason() or { code = "cut_off", message = "the reply ended before its end" })
end

return wire
