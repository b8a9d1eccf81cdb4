-- SPDX-License-Identifier: Apache-2.0
-- The tool calls of a reply: a server's own list, text in a form that the server does not know, or JSON of a model without tool calling.
-- The caller checks arguments against a tool's schema.

local json = require "sba.util.json"
local lpeg = require "lpeg"
local redact = require "native.secret".redact
local text = require "native.text"
local tools_of = require "sba.model.tools"
local words = require "sba.util.words"

local calls = {}

local P, S, R, C, Cc, Cg, Cp, Cs, Ct = lpeg.P, lpeg.S, lpeg.R, lpeg.C, lpeg.Cc, lpeg.Cg, lpeg.Cp, lpeg.Cs, lpeg.Ct
local LONGEST_NAME <const>, LONGEST_CALLED <const> = 256, 64 -- bytes: in messages; that servers take

---@class inference.call
---@field id string unique in the session
---@field name string the tool's, if known
---@field arguments table empty after a mistake
---@field written? string the model's own JSON of the arguments
---@field called? string the model's own name, if it differs
---@field mistake? string for the model: why the arguments cannot be read

---@class inference.raw_call
---@field id? string
---@field name any
---@field arguments any a table, or JSON as a string
---@field text? string arguments that are a table, as they came
---@field thought? string

-- After its opening no form can fail: it goes on to its end, or the reply's. So nothing is read again and again.

local blank <const> = S " \t\n\v\f\r" ^ 0
local name <const> = Cg(C((R("az", "AZ", "09") + S "_-.") ^ 1), "name")
local string <const> = '"' * (P "\\" * 1 + (1 - P '"')) ^ 0 * P '"' ^ -1

-- The JSON's strings may hold the ending.
local function json_call(opening, ending)
  return opening * blank * #S "{[" * Cg(C((string + (1 - ending)) ^ 0), "json") * (ending + -1)
end

-- Captures the value, without the line ends at its marks, and the mark at its end, or "".
local function value_up_to(ending)
  return P "\n" ^ -1 * C((1 - (P "\n" ^ -1 * ending)) ^ 0) * P "\n" ^ -1 * C(P(ending) + -1)
end

local attribute <const> = (P "=" + " name=") * P '"' ^ -1 * C((1 - S '">\n<') ^ 1) * P '"' ^ -1 * P ">" ^ -1
local parameter <const> = "<parameter" * attribute
local function_end <const> = P "</function>" + "</invoke>"
-- A value may hold the mark: it ends where another mark follows.
local parameter_end <const> = "</parameter>" * #(blank * (parameter + function_end + "</tool_call>" + "</function_calls>" + -1))
local parameters <const> = Ct(((1 - (parameter + function_end)) ^ 0 * parameter * value_up_to(parameter_end)) ^ 0)
local key_of_glm <const> = blank * "<arg_key>" * C((1 - P "</arg_key>") ^ 0) * P "</arg_key>" ^ -1 * blank * P "<arg_value>" ^ -1
local harmony_header <const> = (1 - (P "<|message|>" + "to=functions." + "\n")) ^ 0 * "<|message|>"

local forms <const> =
  json_call("```" * (P "json" + "tool_call") ^ -1, P "```") -- Qwen 2.5
  + "```" * Cg(C(R "az" ^ 0), "language") * (1 - P "```") ^ 0 * (P "```" + -1) -- any other code
  + Cg(Cc(true), "is_marked") * (
    json_call("<tool_call>", P "</tool_call>") -- Hermes, Qwen
    + json_call("<|python_tag|>", #P "<|eo") -- Llama 3
    + json_call("[TOOL_CALLS]" * (name * "[ARGS]") ^ -1, #(P "[TOOL_CALLS]" + "</s>")) -- Mistral
    + json_call("to=functions." * name * harmony_header, P "<|call|>") -- Harmony
    + ((P "<tool_call>" + "<function_calls>") * blank) ^ -1 * (P "<function" + "<invoke") * Cg(attribute, "name") -- Qwen 3, MiniMax
      * Cg(parameters, "members") * (1 - function_end) ^ 0 * (function_end + -1)
    + "<tool_call>" * blank * name * blank * #(P "<arg_key>" + "</tool_call>") -- GLM
      * Cg(Ct((key_of_glm * value_up_to "</arg_value>") ^ 0), "members"))
local found_in <const> = Ct((Ct(Cg(Cp(), "from") * forms * Cg(Cp(), "to")) + 1) ^ 0)

-- Between calls and after the last one.
local nothing <const> = (S " \t\n\v\f\r;," + P "</tool_call>" + "<tool_call>" + "</function_calls>" + "<function_calls>" + "<|eom_id|>"
  + "<|eot_id|>" + "<|im_end|>" + "</s>") ^ 0 * -1
local thought_end <const> = "</think" * R("az", "AZ") ^ 0 * ">" * blank
local thinking_first <const> = (blank * "<think" * R("az", "AZ") ^ 0 * ">" * C((1 - thought_end) ^ 0) * (thought_end + -1)
  + C((1 - (thought_end + "<think")) ^ 0) * thought_end) * C(P(1) ^ 0) -- or the template itself opened it

---Splits a text in which a server left a model's thinking.
---@param whole string
---@return string content, string thought
function calls.thinking(whole)
  local thought, content = lpeg.match(thinking_first, whole)
  if not thought then return whole, "" end
  return content, text.trim(thought)
end

-- Not JSON, but of one meaning: line ends and tabs in strings, and a comma before the end of a list or an object.
local escapes <const> = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local spare_comma <const> = blank * (P "," / "") * #(blank * S "]}")
local mended <const> = Cs(('"' * (P "\\" * 1 + S "\n\r\t" / escapes + (1 - P '"')) ^ 0 * P '"' ^ -1 * spare_comma ^ -1
  + (R("09", "az") + S "]}") * spare_comma + 1) ^ 0)

local function decode(written)
  local value, failure = json.decode_repaired(written)
  if not failure then return value end
  local again, still = json.decode_repaired(lpeg.match(mended, written))
  return again, still and failure
end

---@param given any
---@return table? arguments an object, string? mistake
function calls.arguments(given)
  local value, failure = given, nil
  if type(given) == "string" then value, failure = decode(given:find "%S" and given or "{}") end
  if type(value) == "string" then value, failure = decode(value) end -- it was encoded twice
  if failure then return nil, "the arguments are not JSON: " .. failure.message end
  local kind = value == nil and "null" or json.kind(value)
  if kind == "null" or kind == "array" and #value == 0 then return {} end
  if kind ~= "object" then return nil, "the arguments must be an object, not " .. words.value(value) end
  return value
end

local function first_of(object, names)
  for _, one in ipairs(names) do
    if object[one] ~= nil and object[one] ~= json.null then return object[one] end
  end
end

local NAME_KEYS <const> = { "tool", "name", "action", "tool_name", "function_name", "function" }
local ARGUMENT_KEYS <const> = { "arguments", "parameters", "args", "input", "action_input", "tool_input" }
local THOUGHT_KEYS <const> = { "thought", "thoughts", "reasoning", "reason", "explanation" }

-- In {"read_file": {"path": "a"}} the only key is the tool's name.
local function call_of(object, names)
  local called = first_of(object, NAME_KEYS)
  if type(called) == "table" then return call_of(called, names) end
  if not called then
    local key, value = next(object)
    return names[key] and next(object, key) == nil and type(value) == "table" and { name = key, arguments = value } or nil
  end
  local thought = first_of(object, THOUGHT_KEYS)
  return {
    name = called, arguments = first_of(object, ARGUMENT_KEYS), thought = type(thought) == "string" and thought or nil,
    id = type(object.id) == "string" and object.id or nil,
  }
end

local function add_calls(found, value, names)
  local kind = json.kind(value)
  local list = kind == "array" and value or kind == "object" and json.is_array(value.tool_calls) and value.tool_calls or nil
  for _, one in ipairs(list or {}) do add_calls(found, one, names) end
  if kind == "object" and not list then found[#found + 1] = call_of(value, names) end
  return found
end

-- At least one call; or nil, and what is wrong with the JSON.
local function calls_in(written, names)
  local value, failure = decode(written)
  local found = failure and {} or add_calls({}, value, names)
  if #found > 0 then return found end
  return nil, failure and failure.message
end

-- Calls in a text

local function names_of(tools)
  local names = {}
  for _, tool in ipairs(tools) do
    names[tool.name] = true
    for _, called in ipairs(tool.called or {}) do names[called] = true end
  end
  return names
end

-- members: name, value and end mark in turn. A value is JSON unless the schema says string.
local function marked_arguments(members, called, tools)
  local arguments, properties = {}, {}
  for _, tool in ipairs(tools) do
    if tool.name == called then properties = json.decode(tools_of.parameters(tool)).properties end
  end
  for i = 1, #members, 3 do
    local key, value = members[i], members[i + 1]
    if members[i + 2] == "" then return nil, ("the end of %s is missing"):format(words.quoted(key)) end
    local kind = properties[key] and properties[key].type
    arguments[key] = type(kind) == "string" and kind ~= "string" and decode(value) or value
  end
  return arguments
end

local function calls_of(item, names, tools)
  if item.language then return nil end
  if not item.name then
    local found, mistake = calls_in(item.json, names)
    return found, mistake and "it is not JSON: " .. mistake or "it names no tool"
  end
  local read = item.json and calls.arguments or marked_arguments
  local arguments, mistake = read(item.json or item.members, item.name, tools)
  return arguments and { { name = item.name, arguments = arguments } }, mistake
end

local function mistake_in(found, names)
  for _, call in ipairs(found) do
    if type(call.name) ~= "string" then return "it names no tool" end
    if not names[call.name] then return "there is no tool " .. words.quoted(call.name) end
    if call.arguments == nil then return "it has no arguments" end
  end
end

-- Returns the calls, and where the first begins, or its mistake.
local function calls_at_end(content, items, names, tools)
  local found, first, start = {}, #items + 1, #content + 1
  while first > 1 and lpeg.match(nothing, content:sub(items[first - 1].to, start - 1)) do
    local item = items[first - 1]
    local these, mistake = calls_of(item, names, tools)
    if these then mistake = mistake_in(these, names) end
    if mistake and (item.is_marked or these and these[1].arguments ~= nil) then return {}, mistake end
    if mistake or not these then break end
    first, start, item.calls = first - 1, item.from, these
  end
  for i = first, #items do table.move(items[i].calls, 1, #items[i].calls, #found + 1, found) end
  return found, #found > 0 and start or nil
end

-- The same of unmarked JSON: the whole text, or from the start of a line.
local function bare_calls(content, names)
  local start = content:find("^%s*[{%[]") and 1 or content:find("\n{", 1, true)
  local found = start and calls_in(content:sub(start), names) or {}
  local mistake = mistake_in(found, names)
  if not mistake then return found, #found > 0 and start or nil end
  return {}, found[1].arguments ~= nil and mistake or nil
end

local SHELLS <const> = { "bash", "sh", "shell", "zsh", "console" }
local MARKS <const> = { -- at the start of a line, or anywhere
  "\n<tool_call", "\n<function_call", "\n<function=", "\n<invoke ", "\n[TOOL_CALLS]", "\nAction Input:",
  "<|tool_call", "<｜tool", "<|python_tag|>", "to=functions.",
}

local function has_mark(lines, names)
  for _, mark in ipairs(MARKS) do
    if lines:find(mark, 1, true) then return true end
  end
  for called in pairs(names) do
    for _, form in ipairs { "\n%s(", "\n[%s(", "\n<%s>" } do
      if lines:find(form:format(called), 1, true) then return true end
    end
  end
end

-- Why a text that looks like a call is none; nil for prose.
local function suspicion(content, items, names)
  local last = items[#items] or {}
  local found = calls_in(last.json or content:match "^%s*(%b{})" or "", names) or {} -- bounded: by MOST_READ
  if last.is_marked or #found > 0 and not mistake_in(found, names) then return "text stands after the call" end
  local ends_in_shell = words.has(SHELLS, last.language) and lpeg.match(nothing, content:sub(last.to))
  if ends_in_shell then return "a command in a code block is not run" end
  return has_mark("\n" .. content, names) and "it is not in a form that is known here" or nil
end

---Finds calls that a model with tool calling wrote as text at the end of its reply. Elsewhere they are words about calls.
---@param content string
---@param tools inference.tool[]
---@return inference.raw_call[]? found nil for prose or a mistake
---@return string? more the words before them; or the mistake, for the model
function calls.find(content, tools)
  local names, items = names_of(tools), lpeg.match(found_in, content)
  local found, start = calls_at_end(content, items, names, tools)
  if not start then found, start = bare_calls(content, names) end
  if #found > 0 then
    local before = content:sub(1, start - 1)
    return found, text.trim(before:sub(1, (before:find("<|", 1, true) or 0) - 1))
  end
  local why = start or suspicion(content, items, names)
  return nil, why and ("it looks like a call, but %s, so nothing was done. Call the tool, or end the reply with this form: "
    .. '<tool_call>{"name": "%s", "arguments": {...}}</tool_call>'):format(why, tools[1].name) or nil
end

---Reads a reply that was asked for as JSON.
---@param content string without thinking
---@param tools inference.tool[]
---@return inference.raw_call[]? found, string? mistake for the model
function calls.read(content, tools)
  local names = names_of(tools)
  local found, mistake = calls_in(content, names)
  if found then return found end
  found = calls_at_end(content, lpeg.match(found_in, content), names, tools)
  if #found > 0 then return found end
  -- Words around an object, which goes from the first brace that begins a call to the last one.
  local from, back = content:find('{%s*"'), content:reverse():find("}", 1, true)
  found = from and back and calls_in(content:sub(from, #content - back + 1), names)
  if found then return found end
  if mistake then return nil, "the reply is not the JSON object that was asked for: " .. mistake end
  return nil, 'the reply names no tool; it must be {"thought": ..., "tool": ..., "arguments": {...}}'
end

-- Names and ids

local function plain(given) return (given:lower():gsub("[^%w]", "")) end

---@param given any
---@param tools inference.tool[]
---@return string? name of the tool that is meant
function calls.name(given, tools)
  if type(given) ~= "string" or #given > LONGEST_NAME then return nil end
  local bare = text.trim(given):gsub("^functions[.:]", ""):gsub("^default_api[.:]", ""):gsub("%(.*$", "")
  local mapped = bare:gsub("[^%w_-]", "_") -- from the name that a gateway has for it
  local wanted, guessed, other = plain(bare), {}, nil
  for _, tool in ipairs(tools) do
    if tool.name == given or tool.name == bare or tool.name == mapped then return tool.name end
    if not tool.exact then guessed[#guessed + 1] = tool.name end
    for _, called in ipairs(tool.called or {}) do other = other or plain(called) == wanted and tool.name or nil end
  end
  return other or words.near(bare, guessed)
end

-- The arguments as they came, if servers take them back.
local function written(given)
  local bytes = text.trim(type(given.arguments) == "string" and given.arguments or given.text or "")
  return bytes:sub(1, 1) == "{" and json.decode(bytes) and bytes or nil
end

local function unused_id(session, id)
  while type(id) ~= "string" or id == "" or session.ids[id] do
    session.calls = session.calls + 1
    id = ("call%05d"):format(session.calls) -- templates of Mistral's models take nine letters and digits, and nothing else
  end
  session.ids[id] = true
  return id
end

---@param raw inference.raw_call[]
---@param tools inference.tool[]
---@param session { calls: integer, ids: table<string, boolean> } numbers the new ids
---@return inference.call[]
function calls.normal(raw, tools, session)
  local list = json.array {}
  for i, given in ipairs(raw) do
    local arguments, mistake = calls.arguments(given.arguments)
    local meant = calls.name(given.name, tools)
    local called = type(given.name) == "string" and text.cut(redact(given.name), LONGEST_NAME) or "(no name)"
    list[i] = {
      id = unused_id(session, given.id), name = meant or called, arguments = arguments or {}, mistake = mistake,
      written = arguments and written(given),
      called = meant and called ~= meant and called:find("^[%w_-]+$") and #called <= LONGEST_CALLED and called or nil,
    }
  end
  return list
end

return calls
