-- SPDX-License-Identifier: Apache-2.0
-- Opens the workspace, and says what helps where the runner's user cannot use it: a wrong owner is the usual reason.

local fail = require "sba.util.fail"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local may_write = require "native.confine".may_write
local secret = require "sba.util.secret"
local workspace = require "native.workspace"

local workspace_access = {}

local HOW_TO_HAVE_ONE <const> = "mount it, name another with --workspace, "
  .. "or name a job that has a directory `workspace` beside it"

--- In rootless podman a directory of its user's belongs to root in the container.
local function advice()
  local uid = identity.uid()
  return ("its owner can give it to user %d (chown), or let others use it (chmod); "
    .. "in rootless podman, --userns=keep-id:uid=%d helps"):format(uid, uid)
end

--- Returns what failed, and why.
local function problem_with(root)
  local walk <close>, unlisted = root:walk(".", { max_depth = 1, max_names = 1 })
  local entry
  if walk then entry, unlisted = walk:next() end
  if entry then return nil end
  local there, failure = root:stat "."
  if not there then return "entered", failure end
  return "listed", unlisted
end

---Raises why it cannot be used.
---@param run run
---@return native.root
function workspace_access.open(run)
  local root, failure = workspace.open(run.settings.workspace)
  if not root then
    local help = failure.code == "permission_denied" and advice() or HOW_TO_HAVE_ONE
    fail.raise("environment_invalid", "cannot use the workspace: %s; %s", failure.message, help)
  end
  local what, why = problem_with(root)
  if not what then return root end
  if interrupt.reason() then error(why) end
  -- Of "cannot look at .: Permission denied".
  local reason = why.message:match "^.*: (.*)$" or why.message
  fail.raise("environment_invalid", "the workspace %s cannot be %s: %s; %s", root:path(), what, reason, advice())
end

---Jobs that only read are common: no failure.
---@param run run
function workspace_access.warn(run)
  local path = run.workspace:path()
  if may_write(path) then return end
  local message = "user %d cannot write the workspace %s; if the job is to change it: %s"
  run:warn("workspace.not_writable", message:format(identity.uid(), secret.redact(path), advice()))
end

return workspace_access
