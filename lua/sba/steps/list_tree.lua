-- SPDX-License-Identifier: Apache-2.0
-- The step list_tree: what is below a directory of the workspace, nested.

local BYTES_OF_TRUNCATED = 18 -- ,"truncated":false
local kinds <const> = { directory = "/", file = "", symlink = "" } -- as the text shows them

--- The tree as lines: names without control characters, each below its directory.
local function add_lines(lines, entry, indent)
  local target = entry.target and " -> " .. entry.target or ""
  local kind = kinds[entry.type] or (" (%s)"):format(entry.type)
  lines[#lines + 1] = indent .. (entry.name .. target):gsub("%c", "?") .. kind .. "\n"
  for _, child in ipairs(entry.children or {}) do add_lines(lines, child, indent .. "  ") end
  return lines
end

---@param arguments { path?: string, max_depth?: integer, max_entries?: integer, include_hidden?: boolean }
---@param job_context { workspace: native.root, max_output_bytes: integer }
---@return table? result
---@return string|native.failure text or failure
local function run(arguments, job_context)
  local bound = job_context.max_output_bytes
  local root, cut = job_context.workspace:tree(arguments.path ~= "" and arguments.path or ".", {
    max_depth = arguments.max_depth,
    max_entries = arguments.max_entries,
    include_hidden = arguments.include_hidden,
    max_bytes = math.max(0, bound - BYTES_OF_TRUNCATED),
  })
  if not root then return nil, cut end
  local text = table.concat(add_lines({}, root, ""))
  root.truncated = cut ~= nil
  if cut then text = text .. "[there is more; list a directory of it, or less deep with max_depth]\n" end
  if cut ~= "max_bytes" or job_context.agent then return root, text end
  local message = ("the tree takes more than the job's max_output_bytes (%d); list a directory of it, or set max_depth or max_entries")
    :format(bound)
  return nil, { code = "constraint_violation", message = message, result = root, text = text }
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
