-- SPDX-License-Identifier: Apache-2.0
-- What the job changed in the workspace: the diff, and the list of files.

local block = require "sba.report.block"
local h = require "sba.report.html".elements
local format = require "sba.report.format"

local MOST_ROWS <const> = 2000
local LONGEST_DIFF <const> = 1024 * 1024 -- bytes

local names <const> = {
  created = "created", modified = "modified", deleted = "deleted", mode_changed = "mode changed", type_changed = "type changed",
}
local reasons <const> = {
  binary = "binary", too_large = "too large", original_not_kept = "its original was not kept", patch_too_large = "the diff is too large",
  unreadable = "cannot be read", no_time = "no time was left",
}
local order <const> = { "created", "modified", "deleted", "mode_changed", "type_changed" }

local function summary_of(counts)
  local parts = {}
  for _, action in ipairs(order) do
    local count = counts[action] or 0
    if count > 0 then parts[#parts + 1] = ("%d %s"):format(count, names[action]) end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing changed"
end

local function row(file)
  return h.tr {
    h.td { file.path }, h.td { class = "nowrap", names[file.action] },
    h.td { class = "nowrap", file.size_bytes_before and format.size(file.size_bytes_before) or "" },
    h.td { class = "nowrap", file.size_bytes and format.size(file.size_bytes) or "" },
    h.td { file.left_out and "not in the diff: " .. reasons[file.left_out] or "" },
  }
end

local function file_table(files)
  local rows = {}
  for i = 1, math.min(#files, MOST_ROWS) do rows[i] = row(files[i]) end
  return h.div { class = "wide", tabindex = 0, role = "region", ["aria-label"] = "Changed files", h.table {
    h.tr { h.th { "Path" }, h.th { "Change" }, h.th { "Size before" }, h.th { "Size after" }, h.th { "" } }, rows,
  } }
end

---@param source report.source
---@return html.element|false
return function(source)
  local changes = source.result.workspace_changes
  if not changes then return false end
  local more = #changes.files - MOST_ROWS
  return h.section { ["aria-label"] = "Changes",
    h.h2 { "Changes" },
    h.details { open = true,
      h.summary { h.span { class = "what", summary_of(changes.counts), changes.since_resume and " since the job was resumed" } },
      h.div { class = "inside",
        source.patch and block(nil, source.patch, LONGEST_DIFF, true), #changes.files > 0 and file_table(changes.files),
        (more > 0 or changes.truncated) and h.p { class = "quiet", "There are more files than are listed here." } },
    },
  }
end
