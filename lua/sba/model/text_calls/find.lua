-- SPDX-License-Identifier: Apache-2.0
-- Which of the calls in a reply's text count: those at its end. Elsewhere they are words about
-- calls. A text that holds a call which is not wholly understood is not acted upon; the model is
-- told why, and the form.

local forms = require "sba.model.text_calls.forms"
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_mended = require "sba.util.json_mended"
local lpeg = require "lpeg"
local text = require "native.text"
local tools_of = require "sba.model.tools"

local find = {}

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Cp = lpeg.C, lpeg.Cp

local blank = S " \t\n\v\f\r" ^ 0
local letters = R("az", "AZ", "09") + S "_:|" + "｜" + "▁"
-- Between calls and after the last one: marks without content.
local mark = "<|close|>" * R "az" ^ 1 * "<|sep|>" + "<" * P "/" ^ -1 * letters ^ 1 * ">"
local nothing = (S " \t\n\v\f\r;," + mark) ^ 0 * -1

local thought_end = "</think" * R("az", "AZ") ^ 0 * ">" * blank
local opened = blank * "<think" * R("az", "AZ") ^ 0 * ">"
  * C((1 - thought_end) ^ 0) * (thought_end + -1) * C(P(1) ^ 0)
-- The template itself opened it.
local unopened = C((1 - (thought_end + "<think")) ^ 0) * Cp() * thought_end * C(P(1) ^ 0)

-- By name; of the other names too.
local function names_of(tools)
  local names = {}
  for _, tool in ipairs(tools) do
    names[tool.name] = tool
    for _, called in ipairs(tool.called or {}) do names[called] = names[called] or tool end
  end
  return names
end

local function items_of(content, names) return lpeg.match(forms.found, content, 1, names) end

-- Thinking

-- Whether the place is in an argument of a call that can be read.
local function is_in_call(whole, at)
  if whole:find "^%s*[{%[]" and json_mended.read(whole) then return true end
  for _, item in ipairs(items_of(whole, {})) do
    if item.from < at and at < item.to then
      return item.members ~= nil or item.json and json_mended.read(item.json, item.ending ~= "") ~= nil
    end
  end
  return false
end

---Splits a text in which a server left a model's thinking.
---@param whole string
---@return string content, string thought
function find.thinking(whole)
  local thought, content = lpeg.match(opened, whole)
  if thought then return content, text.trim(thought) end
  local at
  thought, at, content = lpeg.match(unopened, whole)
  if not thought or is_in_call(whole, at) then return whole, "" end
  return content, text.trim(thought)
end

-- Results

-- How templates begin the result of a tool. A model that does not stop behind its call goes on with
-- a result of its own making.
local of_a_tool = (P "tool_response" + "tool_result" + "tool_output" + "function_result") * P "s" ^ -1
local result_mark = "<" * of_a_tool * ">" + "<|" * (of_a_tool + "observation") * P "|" ^ -1 * ">"
  + "[TOOL_RESULTS]" + "<｜tool▁output" * P "s" ^ -1 * "▁begin｜>"
-- A line, or behind a call's closing mark.
local begins = -lpeg.B(1) + lpeg.B(S "\n>")
local result = begins * S " \t" ^ 0 * result_mark
local made_up = (1 - result) ^ 0 * Cp() * result

---@param content string
---@return integer? at where a tool's result begins, which only the tool can give
function find.result(content) return lpeg.match(made_up, content) end

-- Mistakes

-- The tool whose name the text has first, else the first that the model is shown.
local function meant_by(content, tools)
  local meant, first, shown = nil, math.huge, nil
  for _, tool in ipairs(tools) do
    local at = content:find(tool.name, 1, true) or math.huge
    if at < first then meant, first = tool, at end
    if not tool.hidden then shown = shown or tool end
  end
  return meant or shown or tools[1]
end

local NOT_DONE <const> = "it looks like a call, but %s, so nothing was done. "
  .. "Call the tool, or end the reply with this form: "
  .. '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'

local function beside(found)
  for _, call in ipairs(found) do
    if call.beside then return humanize.quoted(call.beside) .. " stands beside the arguments" end
  end
end

local function mistake_in(found, names)
  for _, call in ipairs(found) do
    if type(call.name) ~= "string" then return "it names no tool" end
    if not names[call.name] then return "there is no tool " .. humanize.quoted(call.name) end
  end
  return beside(found)
end

-- At the end of a text

local calls_at_end

-- A call in a code block is one if nothing stands beside it.
local function calls_in_code(item, names)
  local found = calls_at_end(item.code, items_of(item.code, names), names)
  local is_alone = found and #found.calls > 0 and not item.code:sub(1, found.start - 1):find "%S"
  return is_alone and found.calls or nil
end

-- Returns the calls; or the mistake, where the item is surely meant as a call.
local function calls_of(item, names)
  local form = forms.list[item.form]
  if item.code then return calls_in_code(item, names) end
  local found, mistake = form.read(item, names)
  if not found then return nil, form.is_marked and mistake or nil end
  if not form.is_marked and found[1].arguments == nil then return nil end
  mistake = mistake_in(found, names)
  if mistake then return nil, mistake end
  return found
end

-- Returns the calls of the last items, the number of the first of these, and where it begins; or
-- the mistake in one.
function calls_at_end(content, items, names)
  local first, start = #items + 1, #content + 1
  local from_last, calls = {}, {} -- from_last: the calls of each item
  while first > 1 do
    local item = items[first - 1]
    local is_next = lpeg.match(nothing, content:sub(item.to, start - 1))
    local found, mistake
    if is_next then found, mistake = calls_of(item, names) end
    if mistake then return nil, mistake end
    if not found then break end
    from_last[#from_last + 1] = found
    first, start = first - 1, item.from
  end
  for i = #from_last, 1, -1 do table.move(from_last[i], 1, #from_last[i], #calls + 1, calls) end
  return { calls = calls, first = first, start = start }
end

-- The same of bare JSON: the whole text, or from the start of a line.
local function bare_calls(content, names)
  local start = content:find("^%s*[{%[]") and 1 or content:find("\n{", 1, true)
  local found = start and forms.objects(content:sub(start), names)
  if not found or found[1].arguments == nil then return nil end
  local mistake = mistake_in(found, names)
  if mistake then return nil, mistake end
  return { calls = found, start = start }
end

-- How much of a tool a value may be: its arguments, all that are required among them; or an object
-- that is one of its arguments, as an answer may be.
local function may_mean(tool, value)
  local shown = tools_of.shown(tool)
  local required = shown.required or {}
  local is_whole = #required > 0 and forms.fits(value, shown.properties)
  for _, name in ipairs(required) do is_whole = is_whole and value[name] ~= nil end
  if is_whole then return "call" end
  for _, property in pairs(shown.properties) do
    if forms.fits(value, property.properties or {}) then return "argument" end
  end
end

local UNNAMED <const> = "the reply named no tool; its arguments are those of %s alone"

-- A reply of nothing but an object that can be the arguments of one tool alone. None of the gateway's:
-- what that does is done on another machine.
local function unnamed_call(content, items, tools)
  local item = items[1]
  if content:find "^%s*{" then item = { from = 1, to = #content + 1, json = content, ending = "" } end
  if not item or item.called or not item.json then return nil end
  if not lpeg.match(nothing, content:sub(1, item.from - 1) .. content:sub(item.to)) then return nil end
  local list = json_mended.read(item.json, item.ending ~= "")
  if not list or #list ~= 1 or not json.is_object(list[1]) then return nil end
  local meant, meanings = nil, 0
  for _, tool in ipairs(tools) do
    local how = may_mean(tool, list[1])
    if how == "call" and not tool.exact then meant = tool end
    if how then meanings = meanings + 1 end
  end
  if not meant or meanings > 1 then return nil end
  return { { name = meant.name, arguments = list[1], note = UNNAMED:format(meant.name) } }
end

local SHELLS <const> = { "bash", "sh", "shell", "zsh", "console" }

-- Why a text that looks like a call is none; nil for prose.
local function suspicion(content, items, names)
  local last = items[#items] or {}
  local form = forms.list[last.form] or {}
  local object = last.json or content:match "^%s*(%b{})" or "" -- bounded: one pass
  local found = forms.objects(object, names)
  local is_call = found and found[1].arguments and not mistake_in(found, names)
  if form.is_marked or is_call then return "text stands after the call" end
  if json.contains(SHELLS, last.language) and lpeg.match(nothing, content:sub(last.to)) then
    return "a command in a code block is not run"
  end
  return lpeg.match(forms.is_told, content, 1, names) and "it is not in a form that is known here"
end

local function find_in(content, tools)
  local names = names_of(tools)
  local items = items_of(content, names)
  local found, mistake = calls_at_end(content, items, names)
  if found and #found.calls > 0 then
    for i = 1, found.first - 1 do
      local is_call = forms.list[items[i].form].is_marked and calls_of(items[i], names)
      if is_call then mistake = "text stands between it and another call" end
    end
  elseif found then
    found, mistake = bare_calls(content, names)
  end
  if not found then
    local unnamed = unnamed_call(content, items, tools)
    if unnamed then return unnamed, "" end
    mistake = mistake or suspicion(content, items, names)
  end
  if mistake then
    local tool = meant_by(content, tools)
    return nil, NOT_DONE:format(mistake, tool.name, tools_of.example(tool))
  end
  if not found then return nil end
  local before = content:sub(1, found.start - 1)
  return found.calls, text.trim(before:sub(1, (before:find("<|", 1, true) or 0) - 1))
end

---Finds calls that a model with tool calling wrote as text at the end of its reply, or of its
---thinking, if the reply holds nothing else.
---@param content string
---@param tools model.tool[]
---@param thought? string
---@return model.raw_call[]? found nil for prose or a mistake
---@return string? more the words before them; or the mistake, for the model
function find.calls(content, tools, thought)
  if content:find "%S" or not thought then return find_in(content, tools) end
  local found = find_in(thought, tools)
  return found, found and ""
end

local NOT_READ <const> = "the reply is not the JSON object that was asked for: %s; "
  .. 'it must be {"thought": "...", "tool": "%s", "arguments": %s}'

-- Words around an object, which goes from the first brace that begins a call to the last one.
local function objects_within(content, names)
  local from, back = content:find '{%s*"', content:reverse():find("}", 1, true)
  return from and back and forms.objects(content:sub(from, #content - back + 1), names)
end

---Reads a reply that was asked for as JSON.
---@param content string
---@param tools model.tool[]
---@param thought? string read where there is no content
---@return model.raw_call[]? found, string? mistake for the model
function find.read(content, tools, thought)
  if thought and thought ~= "" and not content:find "%S" then content = thought end
  local names = names_of(tools)
  local found, mistake = forms.objects(content, names)
  if not found then
    local at_end = calls_at_end(content, items_of(content, names), names)
    found = at_end and at_end.calls[1] and at_end.calls
    found = found or objects_within(content, names)
  end
  if found then mistake = beside(found) end
  if found and not mistake then return found end
  local tool = meant_by(content, tools)
  return nil, NOT_READ:format(mistake, tool.name, tools_of.example(tool))
end

return find
