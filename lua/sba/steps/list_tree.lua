-- SPDX-License-Identifier: Apache-2.0
-- The step list_tree: what is below a directory of the workspace, nested.

local json = require "sba.util.json"
local secret = require "native.secret"
local text = require "native.text"

local BYTES_OF_TRUNCATED <const> = 18 -- ,"truncated":false
local DEEPEST <const> = 64 -- level that is listed; a level takes two of JSON, and JSON readers have a limit
local kinds <const> = { directory = "/", file = "", symlink = "" } -- as the text shows them

--- The tree as lines: names without control characters, each below its directory.
local function add_lines(lines, entry, indent)
  local name = entry.target and entry.name .. " -> " .. entry.target or entry.name
  lines[#lines + 1] = indent .. name:gsub("%c", "?") .. (kinds[entry.type] or (" (%s)"):format(entry.type)) .. "\n"
  if entry.children then
    for _, child in ipairs(entry.children) do add_lines(lines, child, indent .. "  ") end
  end
  return lines
end

--- A name as UTF-8 without secrets, and how many bytes of JSON it takes.
local function clean(name)
  if not utf8.len(name) then name = text.repair(name) end
  if secret.is_known() then name = secret.redact(name) end
  return name, name:find '[%c"\\\127]' and #json.encode(name) or #name + 2
end

-- A mode as text; there are few.
local modes <const> = setmetatable({}, {
  __index = function(known, mode)
    known[mode] = ("%04o"):format(mode)
    return known[mode]
  end,
})

--- Completes an entry, and returns how many bytes of JSON it takes, with a comma and without what is in it.
local function complete(entry, entered)
  local size = #'{"name":,"type":"","size_bytes":,"mode":"0000"},' + #entry.type + #tostring(entry.size_bytes)
  local more
  entry.mode = modes[entry.mode]
  entry.name, more = clean(entry.name)
  if entered then
    entry.children = json.array {}
    size = size + #',"children":[]'
  end
  if not entry.target then return size + more end
  size = size + more
  entry.target, more = clean(entry.target)
  return size + #',"target":' + more
end

--- The tree below a path, each directory with its children; and the limit that cut it.
---@return table? top
---@return "max_depth"|"max_entries"|"max_bytes"|native.failure|nil cut
local function tree(root, path, arguments, most_bytes)
  local most_depth, left = arguments.max_depth or math.maxinteger, arguments.max_entries or math.maxinteger
  local walk <close>, failure = root:walk(path, {
    max_depth = math.min(most_depth, DEEPEST), include_hidden = arguments.include_hidden,
  })
  if not walk then return nil, failure end
  local top, depth, entered = walk:next()
  if not top then return nil, depth end
  local open, bytes, cut = { [0] = top }, complete(top, entered) - 1, nil
  while true do
    local entry
    entry, depth, entered = walk:next()
    if not entry then break end
    if depth == DEEPEST and entry.type == "directory" and most_depth > DEEPEST then cut = "max_depth" end
    if left == 0 then return top, "max_entries" end
    local siblings = open[depth - 1].children
    bytes, left = bytes + complete(entry, entered) - (siblings[1] and 0 or 1), left - 1
    if bytes > most_bytes then return top, "max_bytes" end
    siblings[#siblings + 1], open[depth] = entry, entry
  end
  if depth then return nil, depth end
  return top, cut
end

---@param arguments { path?: string, max_depth?: integer, max_entries?: integer, include_hidden?: boolean }
---@param job_context { workspace: native.root, max_output_bytes: integer }
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local bound = job_context.max_output_bytes
  local path = arguments.path ~= "" and arguments.path or "."
  local top, cut = tree(job_context.workspace, path, arguments, math.max(0, bound - BYTES_OF_TRUNCATED))
  if not top then return nil, cut end
  local shown = table.concat(add_lines({}, top, ""))
  top.truncated = cut ~= nil
  if cut then shown = shown .. "[there is more; list a directory of it, or less deep with max_depth]\n" end
  if cut ~= "max_bytes" or job_context.agent then return top, shown end
  local message = ("the tree takes more than the job's max_output_bytes (%d); list a directory of it, or set max_depth or max_entries")
    :format(bound)
  return nil, { code = "constraint_violation", message = message, result = top, text = shown }
end

local order = { "name", "type", "size_bytes", "mode", "target", "children", "truncated" }

local entry = {
  type = "object",
  required = { "name", "type", "size_bytes", "mode" },
  order = table.move(order, 1, 6, 1, {}),
  additionalProperties = false,
  properties = {
    name = { type = "string" },
    type = { enum = { "file", "directory", "symlink", "fifo", "socket", "device" } },
    size_bytes = { type = "integer", minimum = 0 },
    mode = { type = "string", description = "Permission bits in octal, four digits." },
    target = { type = "string", description = "Of a symlink, as it is written; it is not followed." },
    children = {
      type = "array",
      description = "In byte order of name; left out where max_depth stopped, or for a directory that cannot be read.",
    },
  },
}
entry.properties.children.items = entry

local result = {
  type = "object",
  description = "The directory itself (\".\" is the workspace), all below it as its children.",
  required = { "name", "type", "size_bytes", "mode", "truncated" },
  order = order,
  additionalProperties = false,
  properties = { truncated = { type = "boolean", description = "There is more than was listed." } },
}
for name, property in pairs(entry.properties) do result.properties[name] = property end

return {
  name = "list_tree",
  summary = "List the files and directories below a directory of the workspace.",
  arguments = {
    type = "object",
    order = { "path", "max_depth", "max_entries", "include_hidden" },
    additionalProperties = false,
    properties = {
      path = {
        type = "string", nul = false, default = ".",
        description = "Directory to list, relative to the workspace or absolute below it; \"\" is the workspace itself.",
      },
      max_depth = {
        type = "integer", minimum = 0,
        description = "Levels to list: 1 is what the directory itself holds. At most 64 are listed.",
      },
      max_entries = { type = "integer", minimum = 0, description = "Most entries to list; the rest is omitted, and truncated is true." },
      include_hidden = { type = "boolean", default = true, description = "Where false, names that begin with a dot are left out." },
    },
  },
  for_model = {
    summary = "List the files and directories below a directory.",
    order = { "path", "max_depth" },
    called = { "ls", "tree", "list", "list_dir", "list_directory", "list_files", "directory_tree", "list_folder" },
  },
  result = result,
  run = run,
}
