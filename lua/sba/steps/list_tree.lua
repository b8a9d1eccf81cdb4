-- SPDX-License-Identifier: Apache-2.0
-- The step list_tree: what is below a directory of the workspace. The tree's JSON is written as the
-- walk goes, for it may have a million entries.

local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local json = require "sba.util.json"
local redact = require "native.secret".redact
local text = require "native.text"

-- Levels. Each takes two of JSON, and readers of JSON have a limit.
local DEEPEST <const> = 64
local TRUNCATED <const> = ',"truncated":%s}'
local marks <const> = { directory = "/\n", file = "\n", symlink = "\n" } -- behind a shown name

-- The JSON of each mode.
local modes <const> = setmetatable({}, {
  __index = function(known, mode)
    known[mode] = (',"mode":"%04o"'):format(mode)
    return known[mode]
  end,
})

--- A name as in JSON, without quotes, and as it is shown.
local function clean(name)
  name = redact(name)
  if not name:find "[^%w._/-]" then return name, name end
  name = text.repair(name)
  return json.encode(name):sub(2, -2), (name:gsub("%c", "?"))
end

--- The JSON of an entry, between `before` and `after`, and its line.
local function texts(before, entry, after, indent)
  local kind, name, shown = entry.type, clean(entry.name)
  if entry.target then
    local target, target_shown = clean(entry.target)
    after = ',"target":"' .. target .. '"' .. after
    shown = shown .. " -> " .. target_shown
  end
  local json_of_it = before .. '{"name":"' .. name .. '","type":"' .. kind
    .. '","size_bytes":' .. entry.size_bytes .. modes[entry.mode] .. after
  return json_of_it, indent .. shown .. (marks[kind] or (" (%s)\n"):format(kind))
end

--- The tree as JSON, the limit that cut it, and the tree as lines. Raises failures.
local function tree(root, arguments, most_bytes)
  local most_depth = arguments.max_depth or math.maxinteger
  local most_entries = arguments.max_entries or math.maxinteger
  local path, heads, lines = arguments.path, {}, {}
  local options =
    { max_depth = math.min(most_depth, DEEPEST), include_hidden = arguments.include_hidden }
  local walk <close> = fail.check(root:walk(path ~= "" and path or ".", options))
  local count, bytes = 0, 0
  -- open: lists of children that are not closed.
  local open, was_entered, cut = 0, true, nil
  local entry, depth, entered = walk:next()
  while entry do
    local is_too_deep = depth == DEEPEST and most_depth > DEEPEST
    if is_too_deep and entry.type == "directory" then cut = "max_depth" end
    local below = entered and depth + 1 or depth
    local before = "" -- the first child
    if not was_entered or depth ~= open then before = ("]}"):rep(open - depth) .. "," end
    local after = count > 0 and "}" or "" -- the top is closed by TRUNCATED
    if entered then after = ',"children":[' end
    local head, line = texts(before, entry, after, ("  "):rep(depth))
    bytes = bytes + #head
    if count > most_entries or count > 0 and bytes + 2 * below > most_bytes then
      cut = count > most_entries and "max_entries" or "max_bytes"
      break
    end
    count, open, was_entered = count + 1, below, entered
    heads[count], lines[count] = head, line
    entry, depth, entered = walk:next(entry)
  end
  if not entry and depth then error(depth, 0) end -- a failure
  heads[#heads + 1] = ("]}"):rep(open):sub(1, -2) .. TRUNCATED:format(cut ~= nil)
  return table.concat(heads), cut, table.concat(lines)
end

local function run(arguments, job_context)
  local bound, root = job_context.max_output_bytes, job_context.workspace
  local most_bytes = bound - #TRUNCATED:format(false) + 1
  local top, cut, words = tree(root, arguments, most_bytes)
  local result = json.verbatim(top)
  result.truncated = cut ~= nil -- for the log
  local more = "[there is more; list a directory of it, or less deep with max_depth]\n"
  if cut then words = words .. more end
  if cut ~= "max_bytes" or job_context.agent then return result, words end
  local message = "the tree takes more than the job's max_output_bytes (%d); "
    .. "list a directory of it, or set max_depth or max_entries"
  return fail.with("constraint_violation", message:format(bound), result, words)
end

local members = {
  "name!", is.text(),
  "type!", { enum = { "file", "directory", "symlink", "fifo", "socket", "device" } },
  "size_bytes!", is.count(),
  "mode!", is.text "Permission bits in octal, four digits.",
  "target", is.text "Of a symlink, as it is written; it is not followed.",
  "children", {
    type = "array",
    description = "In byte order of name; left out where max_depth stopped, "
      .. "or for a directory that cannot be read.",
  },
}
local entry = is.object(members)
entry.properties.children.items = entry
table.move({ "truncated!", is.flag "There is more than was listed." }, 1, 2, #members + 1, members)
local result = is.object(members,
  { description = "The directory itself (\".\" is the workspace), all below it as its children." })

return {
  name = "list_tree",
  summary = "List the files and directories below a directory of the workspace.",
  arguments = is.object {
    "path", is.text("Directory to list, relative to the workspace or absolute below it; "
      .. "\"\" is the workspace itself.", { nul = false, default = "." }),
    "max_depth", is.count "Levels to list: 1 is what the directory itself holds. At most 64 are listed.",
    "max_entries", is.count "Most entries to list; the rest is omitted, and truncated is true.",
    "include_hidden", is.flag("Where false, names that begin with a dot are left out.", { default = true }),
  },
  for_model = {
    wants_room = true, -- a command does the same
    summary = "List the files and directories below a directory.",
    order = { "path", "max_depth" },
    called = { "ls", "tree", "list", "list_dir", "list_directory", "list_files", "directory_tree", "list_folder" },
  },
  result = result,
  redacts = true,
  run = run,
}
