-- SPDX-License-Identifier: Apache-2.0
-- The branch of a git repository, read from its HEAD. Nothing is run, and nothing of a hostile .git is shown but a name that git would
-- take for a branch.

local native_text = require "native.text"
local redact = require "native.secret".redact
local workspace = require "native.workspace"

local LARGEST <const> = 4096 -- bytes of HEAD, and of a .git file
local LONGEST <const> = 200 -- bytes of a branch's name
local UNREADABLE <const> = "a repository, its HEAD cannot be read"

local function first_line(root, path)
  local read = root:read(path, { max_bytes = LARGEST })
  return read and native_text.trim_end((read.content:match "^[^\n]*"))
end

--- As git check-ref-format says, where it matters here.
local function is_branch(name)
  return name ~= "" and #name <= LONGEST and native_text.is_utf8(name) and not name:find "[%c\127 ~^:?*%[\\]"
    and not name:find("..", 1, true) and not name:find("/.", 1, true) and name:sub(1, 1) ~= "."
end

--- What a HEAD says.
local function branch_of(head)
  local name = head and head:match "^ref:%s*refs/heads/(.*)$"
  if name and is_branch(name) then return "branch " .. redact(name) end
  local commit = head and #head >= 40 and #head <= 64 and head:match "^%x+$"
  return commit and "detached HEAD at " .. commit:sub(1, 12) or UNREADABLE
end

--- The HEAD that a .git file names: a worktree's, or a submodule's. It may lie outside of the workspace, as git has it.
local function head_elsewhere(root)
  local path = (first_line(root, ".git") or ""):match "^gitdir:%s*(.+)$"
  if not path then return nil end
  local directory <close> = workspace.open(path:sub(1, 1) == "/" and path or root:path() .. "/" .. path)
  return directory and first_line(directory, "HEAD")
end

---@param root native.root of the workspace
---@return string? for people and models; nil: there is no .git
return function(root)
  local status = root:stat ".git"
  if not status then return nil end
  if status.type == "file" then return branch_of(head_elsewhere(root)) end
  return branch_of(first_line(root, ".git/HEAD"))
end
