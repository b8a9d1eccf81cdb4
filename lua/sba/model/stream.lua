-- SPDX-License-Identifier: Apache-2.0
-- Lines of an answer to the JSON values in them: NDJSON as Ollama streams it, server-sent events as OpenAI does.
--
-- A source of lines is a function that returns line, ended (whether the line had its end); nil at the proper end of the body;
-- nil and a failure. exchange:line of native.http is one. What is made of it is a function that returns the next value; nil
-- at the end; nil and a failure. Failures made here: cut_off (the text ends in the middle of a line), bad_answer, too_large.

local json = require "sba.util.json"
local sse = require "sba.util.sse"
local text = require "native.text"
local words = require "sba.util.words"

local stream = {}

local LARGEST <const> = 8 * 1024 * 1024 -- bytes of one JSON text; tiny values take some 40 times their size in memory

local function not_json(bytes, ended, failure)
  if not ended then return { code = "cut_off", message = "the answer ended in the middle of a line" } end
  if failure and failure.code == "too_large" then
    return { code = "bad_answer", message = "sent JSON that is not read: " .. failure.message }
  end
  return { code = "bad_answer", message = "sent what is not JSON: " .. words.quoted((text.repair(bytes:sub(1, 200)))) }
end

local function object_of(bytes, ended)
  if #bytes > LARGEST then return nil, { code = "too_large", message = ("sent a line of more than %d bytes"):format(LARGEST) } end
  local value, failure = json.decode_repaired(bytes)
  if failure or json.kind(value) ~= "object" then return nil, not_json(bytes, ended, failure) end
  return value, nil, bytes
end

---The objects of NDJSON, each with its line. Blank lines are passed over.
---@param lines fun(): string?, boolean|table?
---@return fun(): table?, table?, string?
function stream.ndjson(lines)
  return function()
    while true do
      local line, ended = lines()
      if not line then return nil, ended or nil end
      if line:find("%S") then return object_of(line, ended) end
    end
  end
end

---The objects of server-sent events, up to "[DONE]". A field "error", in which some servers tell of a failure, comes as
---{ error = ... }. The last event needs no blank line after it.
---@param lines fun(): string?, boolean|table?
---@return fun(): table?, table?
function stream.events(lines)
  local next_event = sse.reader(lines)
  return function()
    local event, failure
    repeat event, failure = next_event() until not event or event.data ~= "" or event.error
    if not event or event.data == "[DONE]" then return nil, failure end
    if event.error then return { error = json.decode_repaired(event.error) or event.error } end
    return object_of(event.data, not event.is_cut)
  end
end

return stream
