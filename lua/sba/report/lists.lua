-- SPDX-License-Identifier: Apache-2.0
-- The lists of a report: changed files, acceptance criteria, todo list, artifacts, and what the job used.

local block = require "sba.report.block"
local format = require "sba.report.format"
local html = require "sba.report.html"
local version = require "native.bundle".version

local h, section = html.elements, html.section
local lists = {}

local MOST_ROWS <const> = 2000
local MOST_OPEN <const> = 30 -- items of a todo list that is open at once
local LONGEST_DIFF <const> = 1024 * 1024 -- bytes

local function rows_of(items, view)
  local rows = {}
  for i = 1, math.min(#items, MOST_ROWS) do rows[i] = view(items[i]) end
  return rows
end

local function rest(items)
  return #items > MOST_ROWS and h.p { class = "quiet", ("and %d more"):format(#items - MOST_ROWS) }
end

--- A table that scrolls by itself where it is wider than the page.
local function wide_table(label, ...)
  return h.div { class = "wide", tabindex = 0, role = "region", ["aria-label"] = label, h.table { ... } }
end

local actions <const> = { "created", "modified", "deleted", "mode_changed", "type_changed", "unreadable" }

--- An enumeration's value in words: "mode_changed".
local function in_words(value) return (value:gsub("_", " ")) end

local function count_changes(counts)
  local parts = {}
  for _, action in ipairs(actions) do
    local count = counts[action] or 0
    if count > 0 then parts[#parts + 1] = ("%d %s"):format(count, in_words(action)) end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing changed"
end

local function changed_file(file)
  return h.tr {
    h.td { file.path }, h.td { class = "nowrap", in_words(file.action) },
    h.td { class = "nowrap", file.size_bytes_before and format.size(file.size_bytes_before) or "" },
    h.td { class = "nowrap", file.size_bytes and format.size(file.size_bytes) or "" },
    h.td { file.left_out and "not in the diff: " .. in_words(file.left_out) or "" },
  }
end

---What the job changed in the workspace: the diff, and the files.
---@param source report.source
---@return html.element|false
function lists.changes(source)
  local changes = source.result.workspace_changes
  if not changes then return false end
  return section("Changes", h.details { open = true,
    h.summary { h.span { class = "what", count_changes(changes.counts), changes.since_resume and " since the job was resumed" } },
    h.div { class = "inside",
      source.patch and block.view(nil, source.patch, LONGEST_DIFF, true),
      #changes.files > 0 and wide_table("Changed files",
        h.tr { h.th { "Path" }, h.th { "Change" }, h.th { "Size before" }, h.th { "Size after" }, h.th { "" } },
        rows_of(changes.files, changed_file)),
      (#changes.files > MOST_ROWS or changes.truncated) and h.p { class = "quiet", "There are more files than are listed here." },
    },
  })
end

local met_signs <const> = { [true] = { "✓", "success", "met" }, [false] = { "✗", "failure", "not met" } }
local NOT_CHECKED <const> = { "–", "skipped", "not checked" }
local verifiers <const> = { check = "checked by the runner: ", model = "said by the model: " }

local function verdict(item)
  local sign = met_signs[item.met] or NOT_CHECKED
  return h.li {
    h.span { class = "sign " .. sign[2], ["aria-hidden"] = "true", sign[1] }, " ",
    h.span { h.strong { item.criterion }, sign ~= NOT_CHECKED and h.span { class = "unseen", " (" .. sign[3] .. ")" }, h.br {},
      h.span { class = "quiet", verifiers[item.verified_by] or sign == NOT_CHECKED and sign[3] or "", item.evidence } },
  }
end

---@param result table
---@return html.element|false
function lists.acceptance(result)
  local criteria = result.acceptance or {}
  return #criteria > 0 and section("Acceptance", h.ul { class = "plain", rows_of(criteria, verdict) }, rest(criteria))
end

local todo_signs <const> = {
  done = { "✓", "success" }, in_progress = { "▸", "model" }, dropped = { "–", "skipped" }, pending = { "○", "skipped" },
}

local function todo_item(item)
  local sign = todo_signs[item.status]
  return h.li { class = type(item.parent) == "string" and "part" or false,
    h.span { class = "sign " .. sign[2], ["aria-hidden"] = "true", sign[1] }, " ",
    h.span { item.title,
      h.span { class = "quiet", " ", item.source == "agent" and "the model's own" or in_words(item.source), ", ", in_words(item.status) },
      type(item.note) == "string" and { h.br {}, h.span { class = "quiet", item.note } } },
  }
end

--- Whether the list says more than the steps do.
local function says_more(items)
  for _, item in ipairs(items) do
    if item.source ~= "step" then return #items <= MOST_OPEN end
  end
  return false
end

---@param result table
---@return html.element|false
function lists.todo(result)
  local todo = result.todo
  if #todo.items == 0 then return false end
  return section("Todo", h.details { open = says_more(todo.items),
    h.summary { h.span { class = "what", ("%d of %d done"):format(todo.done, todo.total) } },
    h.ul { class = "plain inside", rows_of(todo.items, todo_item) }, rest(todo.items),
  })
end

---@param result table
---@return html.element|false
function lists.artifacts(result)
  if #result.artifacts == 0 then return false end
  local uploaded = false
  for _, file in ipairs(result.artifacts) do uploaded = uploaded or file.ref ~= nil end
  local function artifact(file)
    return h.tr { h.td { file.path }, h.td { class = "nowrap", format.size(file.size_bytes) }, h.td { h.code { file.sha256 or "" } },
      uploaded and h.td { file.ref or "" } }
  end
  return section("Artifacts", wide_table("Artifacts",
    h.tr { h.th { "Path" }, h.th { "Size" }, h.th { "SHA-256" }, uploaded and h.th { "Reference" } },
    rows_of(result.artifacts, artifact)), rest(result.artifacts))
end

--- What kept commands from writing elsewhere.
local function confined(confinement)
  if confinement.writes == "none" then return "Commands were not confined." end
  local where = "Commands could write below " .. table.concat(confinement.writable or {}, ", ") .. "."
  return ("%s Landlock %d. %s"):format(where, confinement.abi or 0, table.concat(confinement.partial or {}, "; "))
end

---@param source report.source
---@return html.element
function lists.about(source)
  local result = source.result
  local used = result.resource_usage
  return section("Resources and origin",
    h.dl {
      h.dt { "Time" },
      h.dd { format.duration(result.duration_ms), ", from ", format.time(result.started_at), " to ", format.time(result.finished_at) },
      h.dt { "CPU" }, h.dd { format.duration(used.cpu_time_ms) },
      h.dt { "Largest process" }, h.dd { format.size(used.max_rss_bytes) },
      h.dt { "Confinement" }, h.dd { confined(result.confinement) },
      h.dt { "Protocol" }, h.dd { result.protocol_version },
      h.dt { "Report" }, h.dd { "by cynode-sba ", version, ". ", table.concat(source.notes, " ") },
    })
end

return lists
