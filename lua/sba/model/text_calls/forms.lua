-- SPDX-License-Identifier: Apache-2.0
-- The forms in which models write calls as text, where their server does not know the form. A new
-- form is a new row; a spec reads every row's example. Which of the calls found count is decided in
-- find.lua.

local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local json_mended = require "sba.util.json_mended"
local lpeg = require "lpeg"
local tools_of = require "sba.model.tools"

local P, S, R = lpeg.P, lpeg.S, lpeg.R
local C, Cc, Cg = lpeg.C, lpeg.Cc, lpeg.Cg
local Cmt, Cp, Ct = lpeg.Cmt, lpeg.Cp, lpeg.Ct

---@class text_calls.form
---@field name string
---@field example string calls run_command with {"command": "ls"}
---@field pattern userdata captures what `read` takes: `called`, `json`, `members`, `ending` ("": it
---has no end mark)
---@field read? fun(item: table, names: table): model.raw_call[]?, string? nil: it is known, and not
---read
---@field is_marked? boolean nothing but a call is written so: if it cannot be read, the model is
---told

---@class text_calls.forms
---@field list text_calls.form[]
---@field told text_calls.form[] how calls look that are not read
local forms = {}

-- After its opening no form can fail: it goes on to its end, or the reply's. So nothing is read
-- again and again.

local blank = S " \t\n\v\f\r" ^ 0
local letters = R("az", "AZ", "09")
local word_start = -lpeg.B(letters + "_")
local line_start = lpeg.B "\n" + -lpeg.B(1)
local namespace = (P "functions." + "default_api:") ^ -1
local called = namespace * Cg(C((letters + S "_-.") ^ 1), "called")
local string = '"' * (P "\\" * 1 + (1 - P '"')) ^ 0 * P '"' ^ -1

-- The name of a tool that there is.
local known = Cmt(C((letters + S "_-") ^ 1) * lpeg.Carg(1), function(_, _, name, names)
  return names[name] ~= nil, name
end)

-- Captures the mark, or "" at the end of the text.
local function ending(mark) return Cg(C(mark) + -1 * Cc "", "ending") end

-- JSON up to a mark, which its strings may hold. first: the characters that may begin it.
local function json_up_to(mark, first)
  return blank * #S(first or "{[") * Cg(C((string + (1 - mark)) ^ 0), "json") * ending(mark)
end

-- <tool_call>, <tools>, <minimax:tool_call>, ... Small models mix them up, and end a call with
-- </tool_response>.
local tag = (P "tool_call" + "function_call" + "toolcall" + "tool_use") * P "s" ^ -1 + "tools"

-- The marks of XML, with any namespace, or those that take their place: <｜DSML｜invoke name="x"> of
-- DeepSeek, and <|open|>call tool="x"<|sep|> ... <|close|>call<|sep|> of Kimi K3.
local bar = P "|" + "｜"
local in_mark = (1 - (S "<>\n" + bar)) ^ 1
local prefix = (bar * in_mark * bar * P " " ^ -1 + letters ^ 1 * ":") ^ -1
local starts, stops = "<|open|>" + "<" * prefix, "<|close|>" + "</" * prefix
local shut = P ">" + "<|sep|>"
local opening, closing = starts * tag * shut, stops * (tag + "tool_response") * shut

local attribute_name = P "=" + " name=" + " tool=" + " key="
local more_attributes = (" " * letters ^ 1 * '="' * (1 - S '"<>\n') ^ 0 * '"') ^ 0
local attribute = attribute_name * P '"' ^ -1 * C((1 - S '">\n<={(') ^ 1) * P '"' ^ -1 * more_attributes
local argument = P "parameter" + "param" + "argument"
local call = P "function" + "invoke" + "tool_call" + "tool" + "call"
local parameter = starts * argument * attribute * shut ^ -1
local function_end = stops * call * shut
-- A value may hold the mark: it ends where another mark follows. If it begins on a line of its own,
-- it ends on one too.
local after_value = starts * argument + function_end + closing + -1
local value_end = stops * argument * shut * #(blank * after_value)
local function value_up_to(mark)
  return "\n" * C((1 - (P "\n" ^ -1 * mark)) ^ 0) * P "\n" ^ -1 * C(P(mark) + -1)
    + C((1 - P(mark)) ^ 0) * C(P(mark) + -1)
end
local between = C((1 - (parameter + function_end)) ^ 0)
local parameters = Cg(Ct((between * parameter * value_up_to(value_end)) ^ 0), "members")
local glm_key = C "" * blank * "<arg_key>" * C((1 - P "</arg_key>") ^ 0)
  * P "</arg_key>" ^ -1 * blank * P "<arg_value>" ^ -1
local glm_members = Cg(Ct((glm_key * value_up_to "</arg_value>") ^ 0), "members")
local function_start = (opening * blank) ^ -1 * starts * call * (Cg(attribute, "called") + "(" * called * ")")

-- <|tool_call_begin|>, <｜tool▁call▁begin｜>
local special = "<" * bar * in_mark * bar * ">"
local tool_mark = "<" * bar * "tool" * in_mark * bar * ">"
local tool_start = tool_mark * tool_mark ^ -1 * ("function" * special) ^ -1 * called
  * (":" * R "09" ^ 1) ^ -1 * special ^ -1

local channel = ("<|channel|>" * R "az" ^ 1 * P " " ^ 0) ^ -1
local harmony_header = P "<|start|>assistant" ^ -1 * channel * "to=functions." * called
  * (1 - (P "<|message|>" + "to=functions." + "\n")) ^ 0

-- Keys of a call's object, in lower case and without "_".
local NAME_KEYS <const> = {
  "tool", "name", "action", "toolname", "functionname", "function", "functioncall", "toolcall",
}
local ARGUMENT_KEYS <const> = { "arguments", "parameters", "args", "input", "params", "actioninput", "toolinput" }
local THOUGHT_KEYS <const> = { "thought", "thoughts", "reasoning", "reason", "explanation" }
local about_calls <const> = { id = true, type = true, index = true, callid = true, toolcallid = true, role = true }
for _, keys in ipairs { NAME_KEYS, ARGUMENT_KEYS, THOUGHT_KEYS } do
  for _, key in ipairs(keys) do about_calls[key] = true end
end

local function first_of(object, names)
  for _, one in ipairs(names) do
    if json.given(object[one]) ~= nil then return object[one] end
  end
end

---@param value any
---@param properties table<string, table>
---@return boolean whether it is an object of these alone, and of some of them
function forms.fits(value, properties)
  if json.kind(value) ~= "object" then return false end
  for key in pairs(value) do
    if not properties[key] then return false end
  end
  return next(value) ~= nil
end

-- The arguments among what a call's object holds besides what is usual: {"name": "read_file",
-- "path": "a"}, or {"name": "read_file", "config": {"path": "a"}}. Returns them, and otherwise one
-- of the other keys.
local function arguments_in(object, tool)
  local others, properties = {}, tool and tools_of.shown(tool).properties or {}
  for key, value in pairs(object) do
    if not about_calls[humanize.plain(key)] then others[key] = value end
  end
  local key, value = next(others)
  if forms.fits(others, properties) then return others, key end
  if key and next(others, key) == nil and forms.fits(value, properties) then return value, key end
  return nil, key
end

-- In {"read_file": {"path": "a"}} the only key is the tool's name.
local function call_of(given, names)
  local object = {}
  for key, value in pairs(given) do object[humanize.plain(key)] = value end
  local name, arguments = first_of(object, NAME_KEYS), first_of(object, ARGUMENT_KEYS)
  if json.is_object(name) then return call_of(name, names) end
  if not name then
    local key, value = next(given)
    local is_call = names[key] and next(given, key) == nil and type(value) == "table"
    return is_call and { name = key, arguments = value } or nil
  end
  if type(name) == "string" then name = name:gsub("^functions%.", ""):gsub("^default_api:", "") end
  local apart, key = arguments_in(given, names[name])
  if arguments == nil and apart then arguments, key = apart, nil end
  local thought = first_of(object, THOUGHT_KEYS)
  return {
    name = name, arguments = arguments, id = object.id,
    thought = type(thought) == "string" and thought or nil,
    beside = names[name] and key, -- what is there, and not understood
  }
end

local function add_calls(found, value, names)
  local kind = json.kind(value)
  local list = kind == "object" and json.is_array(value.tool_calls) and value.tool_calls
  if kind == "array" then list = value end
  for _, one in ipairs(list or {}) do add_calls(found, one, names) end
  if kind == "object" and not list then found[#found + 1] = call_of(value, names) end
  return found
end

---@param written string JSON values one after the other
---@param names table<string, model.tool>
---@param is_ended? boolean as of json_mended.read
---@return model.raw_call[]? found at least one, or nil and the mistake
---@return string? mistake
function forms.objects(written, names, is_ended)
  local list, failure = json_mended.read(written, is_ended)
  if not list then return nil, "it is not JSON: " .. failure.message end
  local found = {}
  for _, value in ipairs(list) do add_calls(found, value, names) end
  if #found > 0 then return found end
  return nil, "it names no tool"
end

local function read_objects(item, names) return forms.objects(item.json, names, item.ending ~= "") end

local function mistake(words, quoted) return nil, words:format(humanize.quoted(quoted)) end
local NO_ARGUMENT <const> = "it holds %s, which is no argument"

-- Members: what stands before, name, value and end mark in turn. All values are text: the caller
-- knows the schema.
local function members_of(item)
  local members, arguments = item.members, {}
  for i = 1, #members, 4 do
    local before, key, value = members[i], members[i + 1], members[i + 2]
    if before:find "%S" then return mistake(NO_ARGUMENT, before) end
    if members[i + 3] == "" then return mistake("the end of %s is missing", key) end
    if arguments[key] ~= nil then return mistake("it has two values for %s", key) end
    arguments[key] = value
  end
  if item.rest:find "%S" then return mistake(NO_ARGUMENT, item.rest) end
  if #members == 0 and item.ending == "" then return nil, "its end is missing" end
  return arguments
end

local function read_named(item)
  if not item.members then
    local list, failure = json_mended.read(item.json, item.ending ~= "")
    if not list then return nil, "its arguments are not JSON: " .. failure.message end
    if #list ~= 1 then return nil, "there is more than one value for its arguments" end
    return { { name = item.called, arguments = list[1] } }
  end
  local arguments, why = members_of(item)
  return arguments and { { name = item.called, arguments = arguments } }, why
end

local CALL <const> = '{"name": "run_command", "arguments": {"command": "ls"}}'
local ARGUMENTS <const> = '{"command": "ls"}'
local any_tag = (1 - S "<> \n") ^ 1 * ">"
local capitals = (R "AZ" + "_") ^ 1

forms.list = {
  { name = "JSON in a code block", read = read_objects, example = "```json\n" .. CALL .. "\n```",
    pattern = "```" * (P "json" + "tool_call") ^ -1 * json_up_to(P "```") },
  { name = "other code", example = "```c\nint main(void);\n```",
    pattern = "```" * Cg(C(R "az" ^ 0), "language") * Cg(C((1 - P "```") ^ 0), "code") * (P "```" + -1) },
  { name = "JSON in tags", read = read_objects, is_marked = true,
    example = "<tool_call>\n" .. CALL .. "\n</tool_call>",
    pattern = opening * json_up_to(closing + #opening) },
  { name = "Llama 3", read = read_objects, is_marked = true, example = "<|python_tag|>" .. CALL .. "<|eom_id|>",
    pattern = "<|python_tag|>" * json_up_to(#P "<|eo") },
  { name = "Phi 4", read = read_objects, is_marked = true, example = "functools[" .. CALL .. "]",
    pattern = line_start * "functools" * json_up_to(-P(1)) },
  { name = "Mistral", read = read_objects, is_marked = true, example = "[TOOL_CALLS][" .. CALL .. "]</s>",
    pattern = "[TOOL_CALLS]" * json_up_to(#(P "[TOOL_CALLS]" + "</s>")) },
  { name = "Mistral, newer", read = read_named, is_marked = true,
    example = "[TOOL_CALLS]run_command[ARGS]" .. ARGUMENTS,
    pattern = "[TOOL_CALLS]" * called * "[ARGS]" * json_up_to(#(P "[TOOL_CALLS]" + "</s>")) },
  { name = "Harmony", read = read_named, is_marked = true,
    example = "<|channel|>commentary to=functions.run_command <|constrain|>json<|message|>"
      .. ARGUMENTS .. "<|call|>",
    pattern = harmony_header * "<|message|>" * json_up_to(P "<|call|>") },
  { name = "Llama 3.1", read = read_named, is_marked = true,
    example = "<function=run_command>" .. ARGUMENTS .. "</function>",
    pattern = function_start * (shut + "=") ^ 0 * json_up_to(function_end + closing) },
  { name = "Qwen 3 Coder, Claude, MiniMax", read = read_named, is_marked = true,
    example = "<tool_call>\n<function=run_command>\n<parameter=command>\nls\n</parameter>\n"
      .. "</function>\n</tool_call>",
    pattern = function_start * shut ^ -1 * parameters * Cg(C((1 - function_end) ^ 0), "rest")
      * ending(function_end) },
  { name = "GLM 4.5", read = read_named, is_marked = true,
    example = "<tool_call>run_command\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    pattern = opening * blank * called * blank * #(P "<arg_key>" + closing) * glm_members
      * Cg(Cc "", "rest") * blank * ending(closing) },
  { name = "a name and JSON in tags", read = read_named, is_marked = true,
    example = "<tool_call>run_command\n" .. ARGUMENTS .. "</tool_call>",
    pattern = opening * blank * called * json_up_to(closing + #opening, "{") },
  { name = "Kimi, DeepSeek", read = read_named, is_marked = true,
    example = "<|tool_call_begin|>functions.run_command:0<|tool_call_argument_begin|>" .. ARGUMENTS
      .. "<|tool_call_end|>",
    pattern = tool_start * blank * P "```json" ^ -1 * json_up_to(P "```" ^ -1 * blank * special, '{["') },
  { name = "JSON in brackets", read = read_objects,
    example = "[TOOL_REQUEST]" .. CALL .. "[END_TOOL_REQUEST]",
    pattern = "[" * capitals * "]" * json_up_to("[" * P "/" ^ -1 * capitals * "]") },
  { name = "JSON in any other tags", read = read_objects,
    example = "<|action_start|>" .. CALL .. "<|action_end|>",
    pattern = "<" * -P "/" * any_tag * json_up_to((P "</" + "<|") * any_tag) },
  { name = "GLM 4", read = read_named, example = "run_command\n" .. ARGUMENTS,
    pattern = line_start * Cg(known, "called") * blank * #P "{" * json_up_to(-P(1)) },
}

forms.told = {
  { name = "marks of tools", pattern = "<" * bar * "tool",
    example = "<｜tool▁call▁begin｜>run_command with ls<｜tool▁call▁end｜>" },
  { name = "Llama 4, Gemma",
    pattern = word_start * known * blank * "(" * blank * (letters ^ 1 * blank * "=" + "{"),
    example = '```tool_code\nprint(default_api.run_command(command="ls"))\n```' },
  { name = "a name with an object", pattern = word_start * known * "{", example = "call:run_command" .. ARGUMENTS },
  { name = "YAML", pattern = line_start * letters ^ 1 * ":" * S " \"'`*" ^ 0 * known,
    example = "tool: run_command\narguments:\n  command: ls" },
  { name = "Qwen-Agent", pattern = P "✿FUNCTION✿",
    example = "✿FUNCTION✿: run_command\n✿ARGS✿: " .. ARGUMENTS },
  { name = "LongCat", pattern = P "arg_key>",
    example = "<x_tool_call>run_command\n<x_arg_key>command</x_arg_key>" },
  { name = "Cline", pattern = line_start * "<" * known * ">",
    example = "<run_command>\n<command>ls</command>\n</run_command>" },
  { name = "ReAct", pattern = line_start * "Action Input:",
    example = "Action: run_command\nAction Input: " .. ARGUMENTS },
  { name = "something else in tags", example = "<tool_call>run_command, with ls</tool_call>",
    pattern = line_start * (opening + "<function=" + "<function(" + "<invoke ") },
  { name = "Mistral without brackets", pattern = line_start * "[TOOL_CALLS]",
    example = "[TOOL_CALLS] run_command: ls" },
  { name = "special marks", pattern = P "<|python_tag|>" + "to=functions.",
    example = '<|python_tag|>run_command.call("ls")' },
}

local function any_of(list)
  local pattern = P(false)
  for i, form in ipairs(list) do pattern = pattern + Cg(Cc(i), "form") * form.pattern end
  return pattern
end

---What is found in a text, in order: a form's captures, `form`, `from`, and `to`, behind it. Extra
---argument: the tools by name.
forms.found = Ct((Ct(Cg(Cp(), "from") * any_of(forms.list) * Cg(Cp(), "to")) + 1) ^ 0)
forms.is_told = (1 - any_of(forms.told)) ^ 0 * any_of(forms.told)

return forms
