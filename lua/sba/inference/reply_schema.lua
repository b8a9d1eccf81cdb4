-- SPDX-License-Identifier: Apache-2.0
-- The JSON Schema that binds a reply in which calls come as text. It has a branch for each tool, with the arguments of that tool, and
-- every text and list in it has a bound: a small model that is bound by less writes the arguments of another tool, or one text for ever.

local json = require "sba.util.json"
local schemas = require "sba.inference.schemas"

local reply_schema = {}

---Most characters of a text in the arguments. Grammars of llama.cpp, and so of Ollama, refuse a repetition of 2,000.
reply_schema.LONGEST = 1999

local SHORT <const> = 256 -- characters of a name, or of a sentence
local THOUGHT <const> = 300 -- characters
local MOST_ITEMS <const> = 32 -- of a list

-- Arguments of which a small model would make a long text.
local names <const> = {
  path = true, file_path = true, working_dir = true, include = true, pattern = true, mode = true, encoding = true, id = true, parent = true,
  status = true, step = true, title = true, note = true, criterion = true, evidence = true,
}

local SCALARS <const> = { integer = true, number = true, boolean = true, null = true }
local ANYTHING <const> = { "string", "number", "boolean", "object" }

local bounded

local function object(schema)
  local properties, required = {}, {}
  for _, name in ipairs(schema.required or {}) do required[name] = true end
  for name, property in pairs(schema.properties or {}) do
    -- An object of any names has no bound, so that one is left out which a call can do without.
    local is_open = property.type == "object" and not next(property.properties or {})
    if required[name] or not is_open then properties[name] = bounded(property, name) end
  end
  if not next(schema.properties or {}) then return { type = "object" } end
  return {
    type = "object", order = schema.order, properties = properties, required = json.array(schema.required or {}),
    additionalProperties = false,
  }
end

--- A schema with bounds.
--- @param schema table in the keywords that every server takes
--- @param name? string of the argument
function bounded(schema, name)
  local kind = schema.type
  if schema.enum then return { type = kind, enum = schema.enum } end
  if kind == "string" then return { type = kind, maxLength = names[name] and SHORT or reply_schema.LONGEST } end
  if kind == "array" then return { type = kind, items = bounded(schema.items or {}, name), maxItems = MOST_ITEMS } end
  if kind == "object" then return object(schema) end
  if SCALARS[kind] then return { type = kind } end
  local branches = {}
  for i, branch in ipairs(schema.anyOf or type(kind) == "table" and kind or ANYTHING) do
    local one = type(branch) == "table" and branch
      or { type = branch, properties = schema.properties, required = schema.required, items = schema.items }
    branches[i] = bounded(one, name)
  end
  return { anyOf = branches }
end

--- A reply that calls one of these tools.
local function call_of(tools, thought, arguments)
  return {
    type = "object", order = { "thought", "tool", "arguments" }, required = { "thought", "tool", "arguments" },
    properties = { thought = thought, tool = { type = "string", enum = tools }, arguments = arguments },
  }
end

-- The tools of a session are the same at every request.
local made = setmetatable({}, { __mode = "k" })

---The schema as JSON; the order of its keys is the order in which the model writes.
---@param tools inference.tool[]
---@return string
function reply_schema.of(tools)
  if made[tools] then return made[tools] end
  local branches = {}
  for i, tool in ipairs(tools) do
    branches[i] = call_of({ tool.name }, { type = "string", maxLength = THOUGHT }, bounded(schemas.simplified(tool)))
    branches[i].additionalProperties = false
  end
  made[tools] = schemas.text { anyOf = branches }
  return made[tools]
end

---The same without bounds and branches, for servers that refuse them.
---@param tools inference.tool[]
---@return string
function reply_schema.simple(tools)
  local list = {}
  for i, tool in ipairs(tools) do list[i] = tool.name end
  return schemas.text(call_of(list, { type = "string" }, { type = "object" }))
end

---The argument whose text ends where its bound is, so that its end is missing. A name that long is no name, and fails as one.
---@param arguments any
---@param name? string
---@return string? name
function reply_schema.cut_argument(arguments, name)
  if type(arguments) == "string" then
    return utf8.len(arguments) == reply_schema.LONGEST and name or nil
  elseif type(arguments) ~= "table" then
    return nil
  end
  for key, value in pairs(arguments) do
    local found = reply_schema.cut_argument(value, type(key) == "string" and key or name)
    if found then return found end
  end
end

return reply_schema
