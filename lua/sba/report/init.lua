-- SPDX-License-Identifier: Apache-2.0
-- --report: one HTML page about a result, and the journal and job next to it; or a summary in
-- another form. The page's lists are made here.

local exit = require "sba.result.failure".exit
local file = require "native.file"
local html = require "sba.report.html"
local humanize = require "sba.util.humanize"
local junit = require "sba.report.junit"
local markdown = require "sba.report.markdown"
local outcome = require "sba.report.outcome"
local parts = require "sba.report.parts"
local read = require "sba.report.source".read
local style = require "sba.report.style"
local version = require "native.bundle".version
local work = require "sba.report.work"

local h, section = html.elements, html.section
local report = {}

local MOST_ROWS <const> = 2000
local LONGEST_DIFF <const> = 1024 * 1024 -- bytes
-- Seconds that a reader of stdout may take.
local TIMEOUT <const> = 3600

local function rows_of(items, view)
  local rows = {}
  for i = 1, math.min(#items, MOST_ROWS) do rows[i] = view(items[i]) end
  local more = #items - MOST_ROWS
  if more > 0 then rows[#rows + 1] = view(nil, ("and %d more"):format(more)) end
  return rows
end

local function row_of(cells, cell_element)
  local list = {}
  for i, cell in ipairs(cells) do list[i] = cell_element { cell } end
  return h.tr { list }
end

-- It scrolls by itself where it is wider than the page.
local function wide_table(label, names, items, cells)
  local rows = rows_of(items, function(item, note)
    return row_of(item and cells(item) or { note }, h.td)
  end)
  return h.div {
    class = "wide", tabindex = 0, role = "region", ["aria-label"] = label,
    h.table { row_of(names, h.th), rows },
  }
end

local function in_words(value) return (value:gsub("_", " ")) end

local ACTIONS <const> = {
  "created", "modified", "deleted", "mode_changed", "type_changed", "unreadable",
}

local function cells_of_change(one)
  local why = one.left_out and "not in the diff: " .. in_words(one.left_out)
  return { one.path, in_words(one.action), why or "" }
end

local function changes(source)
  local changed, patch = source.result.workspace_changes, source.patch
  if not changed then return false end
  local counts, files = {}, changed.files
  for _, action in ipairs(ACTIONS) do
    local count = changed.counts[action] or 0
    if count > 0 then counts[#counts + 1] = count .. " " .. in_words(action) end
  end
  local all = #counts > 0 and table.concat(counts, ", ") or "nothing changed"
  return section("Changes",
    h.p { all, changed.since_resume and " since the job was resumed" },
    patch and parts.block(nil, patch, LONGEST_DIFF, true),
    #files > 0 and wide_table("Changed files", { "Path", "Change", "" }, files, cells_of_change),
    changed.truncated and h.p { class = "quiet", "There are more files than are listed here." })
end

local function signed_list(items, item_view)
  return h.ul { class = "plain", rows_of(items, function(item, more)
    if more then return h.li { parts.sign("…", "skipped"), " ", more } end
    local view = item_view(item)
    local sign, note = view.sign, view.note
    if note then note = { h.br {}, h.span { class = "quiet", note } } end
    return h.li {
      class = view.class, parts.sign(sign[1], sign[2]), " ", h.span { view.text, note },
    }
  end) }
end

local met_signs <const> = {
  [true] = { "✓", "success", "met" },
  [false] = { "✗", "failure", "not met" },
}
local NOT_CHECKED <const> = { "–", "skipped" }
local verifiers <const> = { check = "checked by the runner: ", model = "said by the model: " }

local function criterion_view(item)
  local sign, by = met_signs[item.met], verifiers[item.verified_by]
  local said = sign and h.span { class = "unseen", " (" .. sign[3] .. ")" }
  if not by then by = sign and "" or "not checked" end
  return {
    sign = sign or NOT_CHECKED,
    text = { h.strong { item.criterion }, said },
    note = { by, item.evidence },
  }
end

local function acceptance(result)
  local list = result.acceptance or {}
  return #list > 0 and section("Acceptance", signed_list(list, criterion_view))
end

local todo_signs <const> = {
  done = { "✓", "success" }, in_progress = { "▸", "model" },
  dropped = { "–", "skipped" }, pending = { "○", "skipped" },
}

local function todo_view(item)
  local from = item.source == "agent" and "the model's own" or in_words(item.source)
  return {
    sign = todo_signs[item.status], class = type(item.parent) == "string" and "part",
    text = { item.title, h.span { class = "quiet", " " .. from .. ", " .. in_words(item.status) } },
    note = type(item.note) == "string" and item.note,
  }
end

local function todo(result)
  local list = result.todo
  if #list.items == 0 then return false end
  local summary = ("%d of %d done"):format(list.done, list.total)
  return section("Todo", parts.fold({}, summary, signed_list(list.items, todo_view)))
end

local ARTIFACT <const> = { "Path", "Size", "SHA-256", "Reference" }

local function artifacts(result)
  local function cells(one)
    return { one.path, humanize.size(one.size_bytes), h.code { one.sha256 or "" }, one.ref or "" }
  end
  local list = result.artifacts
  return #list > 0 and section("Artifacts", wide_table("Artifacts", ARTIFACT, list, cells))
end

local function confined(confinement)
  if confinement.writes == "none" then return "Commands were not confined." end
  local places = table.concat(confinement.writable or {}, ", ")
  local gaps = table.concat(confinement.partial or {}, "; ")
  local words = "Commands could write below %s. Landlock %d. %s"
  return words:format(places, confinement.abi or 0, gaps)
end

local function about(source)
  local result = source.result
  local used, lasted = result.resource_usage, humanize.duration(result.duration_ms)
  local from, to = parts.time(result.started_at), parts.time(result.finished_at)
  return section("Resources and origin",
    h.dl {
      h.dt { "Time" }, h.dd { lasted, ", from ", from, " to ", to },
      h.dt { "CPU" }, h.dd { humanize.duration(used.cpu_time_ms) },
      h.dt { "Largest process" }, h.dd { humanize.size(used.max_rss_bytes) },
      h.dt { "Confinement" }, h.dd { confined(result.confinement) },
      h.dt { "Protocol" }, h.dd { result.protocol_version },
      h.dt { "Report" }, h.dd { "by cynode-sba ", version, ". ", table.concat(source.notes, " ") },
    })
end

local function page(source)
  local result = source.result
  return html.document(outcome.title(source), style, h.body {
    outcome.view(source),
    h.main {
      changes(source), work.timeline(source), acceptance(result), todo(result),
      work.steps(source), work.turns(source), artifacts(result), about(source),
    },
  })
end

---@type table<string, fun(source: report.source): string[]>
local formats <const> = { html = page, markdown = markdown.of, junit = junit.of }

---@param path string of the result; "-" is stdin
---@param job_path string where the job may be besides the result's directory
---@param format? "html"|"markdown"|"junit" default: html
---@return string[]? parts of the report, string? message one line
function report.page(path, job_path, format)
  local source, message = read(path, job_path)
  if not source then return nil, message end
  return formats[format or "html"](source)
end

---Writes the report to stdout, whole or not at all.
---@param path string
---@param job_path string
---@param format? "html"|"markdown"|"junit"
---@return integer exit status
function report.print(path, job_path, format)
  local bytes, message = report.page(path, job_path, format)
  if not bytes then return exit.because(message, exit.REFUSED) end
  if file.write(1, bytes, TIMEOUT) then return exit.OK end
  message = "cannot write the report to stdout: its reader stopped reading"
  return exit.because(message, exit.UNWRITABLE)
end

return report
