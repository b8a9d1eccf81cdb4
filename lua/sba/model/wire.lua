-- SPDX-License-Identifier: Apache-2.0
-- Requests to an endpoint for models, and the JSON in its answers: one text, lines of JSON, or
-- server-sent events.

local http = require "sba.util.http"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local json_tolerant = require "sba.util.json_tolerant"
local redact = require "native.secret".redact
local table_of = json.table_of
local tools_of = require "sba.model.tools"

local wire = {}

---@class model.endpoint
---@field name string the variable that names it, or "the sidecar"
---@field base string URL without a final slash
---@field exact? boolean nothing is added to the base
---@field query? string with its question mark
---@field key? string bearer token
---@field http native.http.client
---@field timeout { connect: number, first: number, idle: number, probe: number } seconds
local endpoint = {}
endpoint.__index = endpoint

---@class model.failure: http.failure
---@field code "timeout"|"cancelled"|"context_cut"|"inference_unavailable"
---@field cause string a code of sba.util.http, a rule of sba.model.refusal, "too_large", "broken",
---...
---@field said? string of a refusal: the server's words, code, type and parameter, in lower case
---@field is_in_reply? boolean it came after the status 200
---@field context_length? integer of a context_cut
---@field repeated? string why a stream was stopped
---@field used? table estimated tokens and duration_ms after a timeout or signal
---@field thrown_away? model.reply as of model.reply
---@field unanswered? boolean the time was up while the endpoint had not answered since the last
---reply

---@class model.served
---@field name string
---@field entry table of the list

---@class model.dialect
---@field provider string
---@field path string of the chat
---@field accept string
---@field list fun(endpoint: model.endpoint): model.served[]?, model.failure?
---@field describe fun(endpoint: model.endpoint, served: model.served): model.description?,
---model.failure?
---@field message fun(message: model.message, session: model.session): string as JSON
---@field body fun(session: model.session, ask: model.ask): string[] parts of JSON
---@field add fun(builder: model.builder, value: table, text?: string) text: of the value, as it
---came

---@class model.description
---@field context_length integer tokens
---@field supports_tools? boolean nil: not known
---@field temperature? number nil: the server's own

local MOST_TOKENS <const> = 1000000000
local SHOWN <const> = 300 -- bytes of an answer that is no reply
-- Bytes of one JSON text; tiny values take some 40 times their size in memory.
local LARGEST <const> = 8 * 1024 * 1024

---@param fields table
---@return model.endpoint
function wire.endpoint(fields) return setmetatable(fields, endpoint) end

---A server's number of tokens, if it is one from 1.
---@param value any
---@return integer?
function wire.tokens(value)
  local count = type(value) == "number" and math.tointeger(value) or 0
  if count > 0 and count <= MOST_TOKENS then return count end
end

-- Failures

-- Codes of an answer, whose messages may name no server.
local of_answers <const> = { bad_answer = true, too_large = true, cut_off = true, broken = true }

---@return string
function endpoint:display_url() return http.display_url(self.base) end

---@param failure { code: string, message: string }
---@return model.failure
function endpoint:failure(failure)
  local cause, message, server = failure.code, failure.message, self:display_url()
  if of_answers[cause] and not message:find(server, 1, true) then message = server .. ": " .. message end
  local more = { cause = cause, repeated = failure.repeated, transient = failure.transient }
  local result = http.failure(cause, message, more)
  if cause ~= "timeout" and cause ~= "cancelled" then result.code = "inference_unavailable" end
  return result
end

---@param code string
---@param message string
---@return nil, model.failure
function endpoint:failed(code, message) return nil, self:failure { code = code, message = message } end

local function as_refusal(failure)
  local about = failure.details
  failure.code, failure.cause = "inference_unavailable", "refused"
  failure.transient = failure.transient or failure.status == 409
  failure.said = ("%s %s %s %s"):format(failure.words, about.code, about.type, about.param):lower()
  return failure
end

---A refusal as it came; sba.model.refusal says what follows from it.
---@param status integer
---@param body any decoded, or a string
---@return model.failure
function endpoint:refusal(status, body) return as_refusal(http.refused(self:display_url(), status, body)) end

-- Requests

---GET, or POST of a body. Returns the exchange if its status is a 2xx.
---@param path string
---@param accept string
---@param body? string|string[]
---@param first_timeout? number seconds
---@return native.http.exchange?, model.failure?
function endpoint:send(path, accept, body, first_timeout)
  local timeout, url = self.timeout, self.base .. path .. (self.query or "")
  local headers = { "Content-Type: application/json", "Accept: " .. accept }
  if self.key then headers[3] = "Authorization: Bearer " .. self.key end
  local exchange, status = http.send(self.http, {
    method = body and "POST" or "GET", url = url, headers = headers, body = body,
    connect_timeout = timeout.connect, first_timeout = first_timeout or timeout.first, idle_timeout = timeout.idle,
  })
  if not exchange then return nil, self:failure(status) end
  if status // 100 == 2 then return exchange end
  return nil, as_refusal(http.refusal(exchange, status, self:display_url()))
end

-- Also returns whether the JSON had to be mended. is_cut: the answer ended in the text.
local function value_of(self, bytes, is_cut)
  if #bytes > LARGEST then
    return self:failed("too_large", ("sent a line of more than %d bytes"):format(LARGEST))
  end
  local value, problem, is_mended = json_tolerant.decode(bytes)
  if not problem and type(value) == "table" then return value, nil, is_mended end
  if is_cut and bytes:find "^%s*[{%[]" then
    return self:failed("cut_off", "the answer ended in the middle of a line")
  end
  return nil, self:failure(http.not_json(self:display_url(), bytes, problem))
end

---GET, or POST of a body, for one JSON object or array.
---@param path string
---@param body? string
---@return table?, model.failure?
function endpoint:ask(path, body)
  local exchange <close>, failure = self:send(path, "application/json", body, self.timeout.probe)
  if not exchange then return nil, failure end
  local bytes, unread = http.read(exchange)
  if not bytes then return nil, self:failure(unread) end
  return value_of(self, bytes)
end

-- Where lists of any server have the name of a model.
local NAMES <const> = { "id", "model", "name" }

local function name_of(entry)
  if type(entry) == "string" then return entry end
  for _, name in ipairs(NAMES) do
    local value = table_of(entry)[name]
    if type(value) == "string" and value ~= "" then return value end
  end
end

---Reads a list of models: an array, or an object that has it.
---@param path string
---@return model.served[]?, model.failure?
function endpoint:list(path)
  local answer, failure = self:ask(path)
  if not answer then return nil, failure end
  local list = answer
  if not json.is_array(list) then list = answer.data or answer.models end
  local has_none = not json.is_array(list)
  if has_none then return self:failed("no_list", self:display_url() .. " sent no list of models") end
  local served = {}
  for _, entry in ipairs(list) do
    local name = (name_of(entry) or ""):gsub("^models/", "")
    if name ~= "" then served[#served + 1] = { name = name, entry = table_of(entry) } end
  end
  return served
end

---A request's body in parts. Fields that were refused are left out.
---@param session model.session
---@param fields table all but messages and tools
---@param ask model.ask gets these fields
---@return string[]
function wire.body(session, fields, ask)
  for name in pairs(session.refused) do
    fields[name] = nil
    if fields.options then fields.options[name] = nil end
  end
  if session.refused.stream then fields.stream_options = nil end
  ask.fields = fields
  fields.tools = ask.tools and json.verbatim(tools_of.json(ask.tools))
  local head = json.encode(fields):sub(1, -2)
  return { head, ',"messages":[', table.concat(ask.messages, ","), "]}" }
end

-- Answers

---@alias model.lines fun(): string?, boolean|table? as of http.events
---@alias model.texts fun(): string?, boolean|table? a JSON text and whether it was cut off, or
---"[DONE]"; nil at the end; or nil and a failure

local DONE <const> = "[DONE]"

local function lines_of_json(next_line)
  return function()
    local line, ended
    repeat line, ended = next_line() until not line or line:find "%S"
    if not line then return nil, ended end
    return line, not ended
  end
end

-- The field "error" of some servers, and an event of that name, come as { error = ... }.
local function events(next_line)
  local next_event = http.events(next_line)
  return function()
    local event, failure
    -- A comment, too, that something in between took for data.
    repeat event, failure = next_event() until not event or event.data:find "^%s*[^%s:]" or event.error
    if not event then return nil, failure end
    local data, problem = event.data, event.error
    -- What is not JSON are the words of a proxy whose server failed.
    local is_error = event.name == "error" or data ~= "" and not data:find "^%s*[{%[]"
    if is_error and not event.is_cut then problem = problem or data end
    if not problem then return data, event.is_cut end
    local value = json_tolerant.decode(problem) or problem
    if not table_of(value).error then value = { error = value } end
    return json.encode(value)
  end
end

local function one_text(next_line)
  return function()
    local all, size = {}, 0
    for line, ended in next_line do
      all[#all + 1], size = line, size + #line
      if not ended or size > LARGEST then break end
    end
    return all[1] and table.concat(all, "\n")
  end
end

-- Fields of an event; "": a comment.
local FIELDS <const> = { "", "data", "event", "id", "retry", "error" }

---What an answer is, by its first line; the first form that fits.
---@type { name: string, example: string, fits: (fun(line: string, ended: boolean): boolean), read:
---function }[]
wire.forms = {
  { name = "events", example = 'data: {"a":1}\n\ndata: {"a":2}\n\n', read = events,
    fits = function(line) return json.contains(FIELDS, line:match "^(%a*):") end },
  { name = "lines of JSON", example = '{"a":1}\n\n{"a":2}', read = lines_of_json,
    fits = function(line, ended) return not ended or json_tolerant.decode(line) ~= nil end },
  { name = "one text", example = '{\n"a":[1,2]\n}', read = one_text, fits = function() return true end },
}

-- The JSON texts of an answer, whatever its Content-Type says. Reads its first line.
---@param next_line model.lines
---@return model.texts
local function texts_of(next_line)
  local first, ended
  repeat first, ended = next_line() until not first or first:find "[^%s\xEF\xBB\xBF]"
  if not first then return function() return nil, ended end end
  first = first:gsub("^\xEF\xBB\xBF", "")
  local form = 1
  while not wire.forms[form].fits(first, ended) do form = form + 1 end
  return wire.forms[form].read(function()
    if not first then return next_line() end
    local line = first
    first = nil
    return line, ended
  end)
end

-- Seconds within a reply, and at most half of the time that is left. Near the job's deadline that
-- would be shorter than a small machine needs for a word; then the deadline ends the reply.
local LONGEST_SILENCE <const>, LEAST_SILENCE <const> = 600, 2
-- Seconds that are waited for usage, and for the mark of the end, once the reply is whole.
local PAST_END <const> = 3

-- Waits for the next line as long as patience lasts.
local function patient_lines(self, exchange, builder)
  return function()
    local idle, left = self.timeout.idle or LONGEST_SILENCE, interrupt.remaining()
    if left then idle = math.min(idle, math.max(left / 2, LEAST_SILENCE)) end
    if builder.ended_at then
      if interrupt.now() - builder.ended_at > PAST_END then return nil end
      idle = PAST_END
    end
    exchange:idle(idle)
    return exchange:line()
  end
end

-- An error after the status 200, in a stream or as its only answer.
local function error_in(value)
  local choice = table_of(table_of(value.choices)[1])
  local problem = json.given(value.error) or json.given(choice.error)
  if problem then return problem end
  local is_reply = type(value.choices) == "table" or value.message and value.done ~= nil
  local why = value.msg or value.message or value.error_message or value.detail
  local says_why = type(why) == "string" and not is_reply
  if says_why or value.object == "error" or value.type == "error" then return value end
end

-- Its code counts as a status does, also beside it, and in a client's words: "Error code: 400 -
-- {...}". Without one it may pass.
local function broken(self, problem, value)
  local details, status = table_of(problem), nil
  local stated = tostring(details.message or problem):match "code: (%d%d%d)%f[%D]"
  for _, code in pairs { details.code, details.status, value.status_code, stated } do
    local number = math.tointeger(tonumber(code)) or 0
    if number >= 400 and number <= 599 then status = number end
  end
  local failure = self:refusal(status or 502, { error = problem })
  failure.status, failure.is_in_reply = status, true
  failure.message = ("%s broke off its reply: %s"):format(self:display_url(), http.shown(failure.words))
  return failure
end

local function next_value(self, text, is_cut)
  if not text then return nil, self:failure(is_cut) end
  local value, failure, is_mended = value_of(self, text, is_cut)
  if not value then return nil, failure end
  -- Gemini has an array of one error.
  if json.is_array(value) and table_of(value[1]).error then value = value[1] end
  local is_other = not json.is_object(value)
  if is_other then return nil, self:failure(http.not_json(self:display_url(), text)) end
  local problem = error_in(value)
  if problem then return nil, broken(self, problem, value) end
  return value, nil, is_mended
end

---Reads an answer into the builder until the reply is whole. A failure past its end is none.
---@param exchange native.http.exchange
---@param builder model.builder
---@param add fun(builder: model.builder, value: table, text?: string) as of model.dialect
---@return true?, model.failure?
function endpoint:read_reply(exchange, builder, add)
  local next_text, last = texts_of(patient_lines(self, exchange, builder)), nil
  while not builder.is_over do
    local text, is_cut = next_text()
    if text == DONE then
      builder:marked_end()
    elseif not text and not is_cut then
      break
    else
      local value, failure, is_mended = next_value(self, text, is_cut)
      if failure and builder.state == "whole" then break end
      if failure then
        -- In the middle of a reply something between the server and the runner broke the JSON.
        failure.transient = failure.transient or last ~= nil and failure.cause == "bad_answer"
        return nil, failure
      end
      add(builder, value, not is_mended and text or nil)
      last = text
    end
  end
  if builder.state == "whole" then return true end
  local failure = builder.failure or interrupt.reason()
  if failure then return nil, self:failure(failure) end
  if not last or builder.size > 0 then return self:failed("cut_off", "the reply was cut off") end
  local said = http.shown(redact(last:sub(1, SHOWN), "end"))
  return self:failed("cut_off", ("%s sent no reply: %s"):format(self:display_url(), said))
end

return wire
