-- SPDX-License-Identifier: Apache-2.0
-- The runner's own HTTP requests: URLs, redirects, bounded answers, failures.

local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local lpeg = require "lpeg"
local native = require "native.http"
local percent = require "sba.util.percent"
local printable = require "sba.util.printable"
local redact = require "native.secret".redact
local retry = require "sba.util.retry"
local text = require "native.text"

local http = {}

local LARGEST_ANSWER <const> = 32 * 1024 * 1024 -- bytes of a body on the wire
local LARGEST_ERROR <const> = 64 * 1024 -- bytes of an error's body
-- Bytes of a body that nobody needs.
local UNUSED <const> = 64 * 1024
-- Bytes of a server's words in a message.
local LONGEST_WORDS <const> = 300
local MOST_REDIRECTS <const> = 3
local SHORTEST_TRY <const> = 0.05 -- seconds

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Cg, Ct = lpeg.C, lpeg.Cg, lpeg.Ct
local digit <const>, character <const> = R "09", 1 - S "/?#"
local scheme <const> = R("az", "AZ") * (R("az", "AZ", "09") + S "+.-") ^ 0
local user <const> = ((character - "@") ^ 0 * "@") ^ 0 -- all up to the last @
local authority <const> = Cg(C(user), "user") * Cg(C(character ^ 1), "address")
local rest <const> = Cg(C(P(1) ^ 0), "rest")
local parts_of <const> = Ct(Cg(scheme / string.lower, "scheme") * "://" * authority * rest)
local host <const> = "[" * (1 - P "]") ^ 0 * "]" + (1 - P ":") ^ 0
local host_and_port <const> = C(host) * (":" * C(digit ^ 1)) ^ -1 * P ":" ^ -1 * -1
local PORTS <const> = { http = "80", https = "443" }

---A token for one URL may be sent to another of the same origin.
---@param url string
---@return string? origin
function http.origin(url)
  local parts = lpeg.match(parts_of, url)
  if not parts then return nil end
  if parts.scheme == "http+unix" then return parts.scheme .. "://" .. parts.address end
  local name, port = lpeg.match(host_and_port, parts.address:lower())
  port = port or PORTS[parts.scheme] or ""
  return ("%s://%s:%s"):format(parts.scheme, name or parts.address, port)
end

---@param base string a URL, perhaps with a query
---@param path string
---@return string url the path below the base's own, before its query
function http.below(base, path)
  local mark = base:find "[?#]" or #base + 1
  local before = text.trim_end(base:sub(1, mark - 1), "/")
  if before:sub(-#path) ~= path then before = before .. path end
  return before .. base:sub(mark)
end

---A URL for messages: without user name, path and query, or "its URL".
---@param url string
---@return string
function http.display_url(url)
  local parts = lpeg.match(parts_of, url)
  -- With an "@" in the rest, what is taken for the host may be the start of a password.
  if not parts or parts.rest:find("@", 1, true) then return "its URL" end
  local kind, address = parts.scheme, parts.address
  if kind == "http+unix" then return "the socket " .. printable.line(percent.decode(address)) end
  return kind .. "://" .. printable.line(address)
end

---A URL for results: without user name, query and fragment.
---@param url string
---@return string?
function http.without_credentials(url)
  local parts = lpeg.match(parts_of, url)
  return parts and parts.scheme .. "://" .. parts.address .. parts.rest:match "^[^?#]*" or nil
end

---@param url string
---@param location string
---@return string? url if it has the same origin
function http.redirected(url, location)
  local from, to = lpeg.match(parts_of, url), lpeg.match(parts_of, location)
  -- curl also takes an address with one slash, or three, of which we cannot tell the origin.
  if not from or location:find "[%c ]" then return nil end
  local is_path = location == "/" or location:find("^/[^/\\]")
  if not is_path and not (to and http.origin(location) == http.origin(url)) then return nil end
  return from.scheme .. "://" .. from.user .. from.address .. (is_path and location or to.rest)
end

---@class http.failure
---@field code string of native.http; "redirected", "refused" (an error status), "bad_answer"; or
---the caller's
---@field message string one line, without secrets
---@field transient boolean the same request may succeed later
---@field status? integer
---@field retry_after? number seconds
---@field words? string of the server
---@field details? table the answer's error object, or an empty one
---@field value? any the answer's JSON

-- Failures without an answer.
local transient <const> = {
  connection_refused = true, connection_failed = true, cut_off = true,
  network_unreachable = true, name_not_resolved = true, proxy_failed = true,
  slow_connect = true, slow_first_byte = true, slow_answer = true,
}
local lasting <const> = {
  permission_denied = true, tls_failed = true, timeout = true, cancelled = true,
}

---@param code string
---@param message string may hold secrets: curl quotes URLs
---@param more? table becomes the failure
---@return http.failure
function http.failure(code, message, more)
  local failure = more or {}
  failure.code, failure.message = code, redact(message)
  if failure.transient == nil then failure.transient = transient[code] or false end
  return failure
end

---Whether other requests to the server would probably fail too.
---@param failure http.failure
---@return boolean
function http.is_down(failure)
  local code = failure.code
  if code == "cut_off" then return false end
  return lasting[code] or transient[code] or failure.status == 401
end

-- Lower-case names come first, as in other programs.
local function either(environment, name)
  local value = environment[name:lower()] or environment[name]
  return value ~= "" and value or nil
end

-- Blanks around an address are ignored.
local function address(environment, name)
  local value = text.trim(either(environment, name) or "")
  return value ~= "" and value or nil
end

---@param environment table<string, string> names proxies and trusted authorities
---@return native.http.client?, native.failure?
function http.client(environment)
  local client, failure = native.client {
    http_proxy = address(environment, "HTTP_PROXY"),
    https_proxy = address(environment, "HTTPS_PROXY"), no_proxy = either(environment, "NO_PROXY"),
    ca_file = either(environment, "SSL_CERT_FILE"), ca_directory = either(environment, "SSL_CERT_DIR"),
  }
  if failure then failure.message = redact(failure.message) end
  return client, failure
end

---A server's own words as one short line.
---@param words string
---@return string
function http.shown(words) return printable.line(text.trim(words), LONGEST_WORDS) end

local function no_headers() return {} end
local propagated = no_headers

---@param headers? fun(): string[] that every request carries too; nil: none any more
function http.propagate(headers) propagated = headers or no_headers end

---Waits for the status. Follows redirects that keep method and body (307, 308) within the origin.
---@param client native.http.client
---@param request native.http.request its url becomes the one that answered
---@param until_when? number on the monotonic clock
---@return native.http.exchange?
---@return integer|http.failure status
function http.send(client, request, until_when)
  local own <const>, all <const> = request.headers or {}, propagated()
  request.headers = table.move(own, 1, #own, #all + 1, all)
  -- Without it a server may compress (RFC 9110, 12.5.3).
  table.insert(request.headers, "Accept-Encoding: identity")
  request.body_limit = request.body_limit or LARGEST_ANSWER
  for _ = 0, MOST_REDIRECTS do
    local left, status = until_when and until_when - interrupt.now(), nil
    if left then request.whole_timeout = math.max(SHORTEST_TRY, left) end
    local exchange, failure = client:open(request)
    if exchange then status, failure = exchange:status() end
    if not status then
      if exchange then exchange:close() end
      return nil, http.failure(failure.code, failure.message)
    end
    if status ~= 307 and status ~= 308 then return exchange, status end
    local target = http.redirected(request.url, exchange:header "Location" or "")
    if not target then return exchange, status end
    exchange:close()
    request.url = target
  end
  return nil, http.failure("redirected", http.display_url(request.url) .. " redirects in a loop")
end

---@param exchange native.http.exchange
---@param limit? integer bytes of the body; a little more may be returned
---@return string?, http.failure?
function http.read(exchange, limit)
  local chunks, size = {}, 0
  while not limit or size < limit do
    local chunk, failure = exchange:read()
    if failure then return nil, http.failure(failure.code, failure.message) end
    if not chunk then break end
    chunks[#chunks + 1], size = chunk, size + #chunk
  end
  return table.concat(chunks)
end

-- Comments and unknown fields are ignored.
local function add_line(event, data, line)
  local field, value = line:match("^([^:]*):? ?(.*)$")
  if field == "data" then
    data[#data + 1] = value
  elseif field == "event" then
    event.name = value
  elseif field == "error" then
    event.error = value
  elseif field == "id" and not value:find("\0", 1, true) then
    event.id = value
  elseif field == "retry" and value:find("^%d+$") then
    event.retry = math.tointeger(tonumber(value))
  end
end

---@param exchange native.http.exchange
---@return boolean
function http.is_stream(exchange)
  return (exchange:header "Content-Type" or ""):lower():find("text/event-stream", 1, true) ~= nil
end

---@class http.event
---@field data string may be empty
---@field name? string
---@field id? string
---@field retry? integer milliseconds
---@field error? string of some servers of models
---@field is_cut? boolean the stream ended before the event's blank line

-- Some servers end an event with one line end, so that the next one looks like its second line. In
-- JSON nothing begins right behind "}".
local function begins_another(data, line)
  local last = data[#data]
  return last and last:byte(-1) == 0x7D and line:find "^data: ?[%[{]"
end

---Reads server-sent events of JSON.
---@param next_line fun(): string?, boolean|table? a line, and whether it had its end; nil at the end;
---or nil and a failure
---@return fun(): http.event?, table? nil at the end; or nil and a failure
function http.events(next_line)
  -- held: a line that was read too early.
  local is_first, held, held_ended = true, nil, nil
  return function()
    local event, data = {}, {}
    while true do
      local line, ended = held, held_ended
      held = nil
      if not line then line, ended = next_line() end
      if not line and ended then return nil, ended end
      if is_first and line then is_first, line = false, line:gsub("^\xEF\xBB\xBF", "") end
      local is_over, is_cut = line == "", not line or not ended
      if line and begins_another(data, line) then
        held, held_ended = line, ended
        is_over, is_cut = true, false
      elseif line and not is_over then
        add_line(event, data, line)
      end
      local says_something = data[1] or event.id or event.retry or event.error
      if (is_over or is_cut) and says_something then
        event.data, event.is_cut = table.concat(data, "\n"), is_cut
        return event
      end
      if is_cut then return nil end
    end
  end
end

-- As S3 and its like say it: "AccessDenied: Request has expired".
local function xml_error(body)
  local code = body:match "<Code>([^<]*)</Code>" -- bounded: it has no other way
  return code and ("%s: %s"):format(code, body:match "<Message>([^<]*)</Message>" or "")
end

-- Mostly of a proxy in between.
local function other_than_json(body)
  if not body:find "%S" then return "an empty answer" end
  return body:find "^%s*<" and "an HTML page" or nil
end

---@param body any of an error: decoded, or a string
---@return string words, table details the error object, or an empty one
function http.words(body)
  if type(body) == "string" then
    local inner = body:find "^%s*[{%[]" and json_tolerant.decode(body)
    if type(inner) == "table" then return http.words(inner) end
    return xml_error(body) or other_than_json(body) or body, {}
  end
  if type(body) ~= "table" then return tostring(body), {} end
  -- Gemini sends its errors in an array.
  if type(body[1]) == "table" then return http.words(body[1]) end
  if type(body.error) == "string" then return http.words(body.error) end
  local details = type(body.error) == "table" and body.error or body
  local words = details.message
  if type(words) ~= "string" then words = details.msg or details.error_message or body.detail end
  if type(words) ~= "string" then return json.encode(body), details end
  local inner = json.table_of(details.metadata).raw -- what a router was answered
  if type(inner) == "string" then words = ("%s: %s"):format(words, (http.words(inner))) end
  return words, details
end

-- Statuses below 500 after which the same request may succeed, and those above after which it cannot:
-- not implemented, and the version of HTTP.
local passing <const> = { [408] = true, [425] = true, [429] = true }
local final <const> = { [501] = true, [505] = true }

---@param who string the server, as messages name it
---@param status integer
---@param body any decoded, or a string
---@param retry_after? number seconds
---@return http.failure
function http.refused(who, status, body, retry_after)
  local words, details = http.words(body)
  words = redact(words)
  local message = who .. " answered with status " .. status .. ": " .. http.shown(words)
  local is_transient = passing[status] or status >= 500 and not final[status]
  return http.failure("refused", message, {
    status = status, words = words, details = details,
    value = type(body) == "string" and json_tolerant.decode(body) or body,
    transient = is_transient, retry_after = retry_after,
  })
end

---Closes the answer.
---@param exchange native.http.exchange
---@param status integer
---@param who string
---@return http.failure
function http.refusal(exchange, status, who)
  local body, unread = http.read(exchange, LARGEST_ERROR)
  local asked = retry.after(exchange:header "Retry-After", exchange:header "Retry-After-Ms")
  local failure = http.refused(who, status, body or unread.message, asked)
  local location, proxy = exchange:header "Location", exchange:proxy()
  local message = failure.message
  if location and status >= 300 and status < 400 then
    local target = http.shown(http.display_url(location))
    message = ("%s; it redirects to %s, which is not followed"):format(message, target)
  end
  if proxy then message = ("%s; %s may have answered in its place"):format(message, proxy) end
  failure.message = message
  exchange:close()
  return failure
end

---@param who string
---@param bytes string that should be JSON
---@param problem? sba.json.failure
---@return http.failure
function http.not_json(who, bytes, problem)
  local what = other_than_json(bytes)
  if problem and problem.code ~= "invalid_json" then
    what = "JSON that is not read: " .. problem.message
  elseif not what then
    what = "what is not JSON: " .. http.shown(redact(bytes:sub(1, 100), "end"))
  end
  return http.failure("bad_answer", ("%s sent %s"):format(who, what))
end

---Sends, and reads the answer to its end, so that the connection can be used again. Its body is not
---used.
---@param client native.http.client
---@param request table as for send
---@param until_when number
---@param who string for messages
---@return integer? status of a 2xx, http.failure?
function http.deliver(client, request, until_when, who)
  local exchange <close>, code = http.send(client, request, until_when)
  if not exchange then return nil, code end
  if code >= 300 then return nil, http.refusal(exchange, code, who) end
  http.read(exchange, UNUSED)
  return code
end

return http
