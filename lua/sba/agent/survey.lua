-- SPDX-License-Identifier: Apache-2.0
-- Looks over a workspace before the first prompt: a listing of two levels, and where AGENTS.md files are. It reads the names of a
-- bounded number of directories, the upper ones first, so that a huge workspace costs no more than a large one.

local printable = require "sba.util.printable"
local text = require "native.text"

local survey = {}

local MOST_NAMES <const> = 4000 -- read in all, about
local MOST_OF_ONE <const> = 1000 -- read of one directory, about
local LEAST_OF_ONE <const> = 64
local MOST_DIRECTORIES <const> = 128
local DEEPEST <const> = 8 -- directories below the workspace
local LONGEST_NAME <const> = 80 -- bytes that are shown

-- Made by tools; nobody edits what is in them.
local passed_over <const> = {
  [".git"] = true, [".hg"] = true, [".svn"] = true, [".venv"] = true, [".tox"] = true, ["__pycache__"] = true, ["node_modules"] = true,
}

---A name from outside in one line.
---@param name string
---@param limit? integer bytes
---@return string
function survey.shown(name, limit)
  local line = printable.line(name)
  limit = limit or LONGEST_NAME
  return #line > limit and text.cut(line, limit - 3) .. "..." or line
end

--- Puts the directories of a list into the queue.
local function enqueue(queue, above, list)
  for _, entry in ipairs(list) do
    if entry.type == "directory" and not passed_over[entry.name] then
      entry.path, entry.depth = (above.path and above.path .. "/" or "") .. entry.name, above.depth + 1
      queue[#queue + 1] = entry
    end
  end
end

--- Reads directories breadth first. Each gets `entries`, and `more` if they are not all; one that was not read has none.
local function read(root)
  local top, found, names = { depth = 0 }, {}, 0
  local queue, at = { top }, 1
  while queue[at] and at <= MOST_DIRECTORIES and names < MOST_NAMES do
    local directory = queue[at]
    local share = (MOST_NAMES - names) // (#queue - at + 1)
    local list, more = root:names(directory.path or ".", math.max(LEAST_OF_ONE, math.min(MOST_OF_ONE, share)))
    if list then
      directory.entries, directory.more, names = list, more, names + #list
      for _, entry in ipairs(list) do
        if directory.path and entry.name == "AGENTS.md" and entry.type == "file" then found[#found + 1] = directory.path .. "/AGENTS.md" end
      end
      if directory.depth < DEEPEST then enqueue(queue, directory, list) end
    end
    at = at + 1
  end
  return top, found, queue[at] ~= nil
end

local function count(directory)
  return (directory.more and "more than %d" or "%d"):format(#directory.entries)
end

--- Shares lines out: each directory gets as many as it has entries, or an equal share of what the smaller ones leave.
local function share_out(directories, room)
  table.sort(directories, function(a, b) return #a.entries < #b.entries end)
  for i, directory in ipairs(directories) do
    directory.shown = math.min(#directory.entries, room // (#directories - i + 1))
    room = room - directory.shown
  end
end

local function line_of(entry, indent)
  local name = indent .. survey.shown(entry.name)
  if entry.type == "file" then return name end
  if entry.type ~= "directory" then return ("%s (%s)"):format(name, entry.type) end
  local total, shown = entry.entries and #entry.entries or 0, entry.shown or 0
  if total <= shown and not entry.more then return name .. "/" end
  return ("%s/ (%s%s)"):format(name, shown > 0 and ("first %d of "):format(shown) or "", count(entry))
end

local function listed(top, room)
  local lines, directories, all = {}, {}, top.entries or {}
  local whole = #all <= room and not top.more
  local last = whole and #all or math.min(#all, room - 1)
  for i = 1, last do
    if all[i].entries then directories[#directories + 1] = all[i] end
  end
  share_out(directories, whole and room - #all or 0)
  for i = 1, last do
    lines[#lines + 1] = line_of(all[i], "")
    for j = 1, all[i].shown or 0 do lines[#lines + 1] = line_of(all[i].entries[j], "  ") end
  end
  if not whole then lines[#lines + 1] = ("... and %s%d more"):format(top.more and "more than " or "", #all - last) end
  return lines
end

---@class agent.survey
---@field lines string[] the listing; empty: nothing is there
---@field agents_md string[] paths of AGENTS.md files below the workspace's root, as they are
---@field partial boolean there may be further ones, because not every directory was looked into

---@param root native.root
---@param lines integer that the listing may have
---@return agent.survey
function survey.of(root, lines)
  local top, found, partial = read(root)
  return { lines = listed(top, lines), agents_md = found, partial = partial }
end

return survey
