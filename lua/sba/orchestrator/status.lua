-- SPDX-License-Identifier: Apache-2.0
-- Reports of a job's beginning and end. Each ends as delivered (a 2xx), refused (an answer that another try would not change) or
-- undeliverable, and is logged so; none of it changes the job.
--
-- The log: report.sent {report, status, tries, duration_ms}, report.failed {report, outcome, status, tries, error}, and
-- report.retry {report, error} for what is tried again.

local failures = require "sba.orchestrator.mcp.failure"
local interrupt = require "native.interrupt"
local json = require "sba.util.json"
local page = require "sba.util.page"
local place = require "sba.orchestrator.mcp.place"
local retry = require "sba.util.retry"
local transport = require "sba.orchestrator.mcp.transport"

local status = {}

local BEGINNING <const> = 3 -- seconds that the report of the beginning may cost the job in all
local SHARE <const> = 2 / 3 -- of what is left of them, for one try: a slow server has a chance, and so has a late one
local LEAST <const> = 0.05 -- seconds for a try that is worth it
local ENDING <const> = 30 -- seconds within which the end must be reported
local CONNECT <const>, ANSWER <const>, REST <const> = 5, 10, 1 -- seconds to be reached, for an answer, for the rest of its body
local MOST_REDIRECTS <const> = 3
local LARGEST_ANSWER <const> = 64 * 1024 -- bytes; nobody reads more of it
local WHO <const> = "the status server"

local body_schema = { order = { "status", "job_id", "task_id" } }

---@class status.options
---@field url string
---@field http native.http.client
---@field job_id string
---@field task_id string
---@field log fun(level: string, event: string, fields: table)

---@class status.failure: mcp.failure
---@field refused? boolean another try would bring the same
---@field retry_after? number seconds

---@class status.reporter
---@field over? boolean the beginning was said, or given up
local reporter = {}
reporter.__index = reporter

---@param options status.options
---@return status.reporter
function status.new(options)
  return setmetatable({
    url = options.url, http = options.http, log = options.log, job_id = options.job_id, task_id = options.task_id,
    left = BEGINNING, tries = 0, spent = 0, not_before = 0,
  }, reporter)
end

-- What no later try would change, of what never came to an answer.
local lasting = { invalid_url = true, bad_body = true, out_of_memory = true, timeout = true, cancelled = true }

local function unsent(failure)
  return failures.new(failure.code, failure.message, { passing = not lasting[failure.code] })
end

--- What a status says that is neither 2xx nor a redirect that is followed.
local function refusal(self, exchange, code)
  local words = transport.body(exchange, LARGEST_ANSWER) or ""
  local said = words:find "%S" and ": " .. failures.shown(page(words) or words) or ""
  local proxy = exchange:proxy()
  if proxy then said = ("%s; %s may have answered in its place"):format(said, proxy) end
  local passing = code == 408 or code == 429 or code >= 500
  return failures.new("refused", ("%s answered with status %d%s"):format(place.shown(self.url, WHO), code, said), {
    status = code, passing = passing, refused = not passing, retry_after = retry.after(exchange:header "Retry-After"),
  })
end

--- Where a redirect leads that keeps method and body and stays at its origin; nil where it is none.
local function followed(exchange, url, code)
  if code ~= 307 and code ~= 308 then return nil end
  return place.redirected(url, exchange:header "Location" or "")
end

--- One request. Returns the status of its answer and where to go on, or nil and a failure.
local function send(self, url, body, until_when)
  local exchange <close>, failure = self.http:open {
    method = "POST", url = url, body = body, headers = { "Content-Type: application/json", "Accept: application/json" },
    connect_patience = CONNECT, first_patience = ANSWER, idle_patience = REST,
    whole_patience = math.max(LEAST, until_when - interrupt.now()),
  }
  local code
  if exchange then code, failure = exchange:status() end
  if not code then return nil, unsent(failure) end
  local target = followed(exchange, url, code)
  if code >= 300 and not target then return nil, refusal(self, exchange, code) end
  transport.body(exchange, LARGEST_ANSWER) -- to its end, so that the connection can be used again
  return code, target
end

--- One try, redirects and all.
---@return integer? status, status.failure? failure
local function post(self, body, until_when)
  local url = self.url
  for _ = 0, MOST_REDIRECTS do
    local code, more = send(self, url, body, until_when)
    if not code then return nil, more end
    if not more then return code end
    url = more
  end
  return nil, failures.new("redirected", place.shown(self.url, WHO) .. " redirects in circles", { refused = true })
end

local function body_of(self, what)
  return json.encode({ status = what, job_id = self.job_id, task_id = self.task_id }, body_schema)
end

local function milliseconds(seconds)
  return math.floor(seconds * 1000 + 0.5)
end

local function log_sent(self, report, code, tries, seconds)
  self.log("info", "report.sent", { report = report, status = code, tries = tries, duration_ms = milliseconds(seconds) })
end

local function log_failed(self, report, failure, tries)
  self.log("warning", "report.failed", {
    report = report, outcome = failure.refused and "refused" or "undeliverable", status = failure.status, tries = tries,
    error = ("the report %s was not delivered: %s"):format(report, failure.message),
  })
end

--- The report of the beginning is over: delivered, or not.
local function close_beginning(self, code)
  self.over = true
  if code then
    log_sent(self, "in_progress", code, self.tries, self.spent)
  else
    log_failed(self, "in_progress", self.failure, self.tries)
  end
end

---Says that the job is in progress. To be called when it begins and before its later steps: what was not delivered is tried again,
---until that has taken 3 s in all.
function reporter:began()
  local at = interrupt.now()
  if self.over or at < self.not_before then return end
  local code, failure = post(self, body_of(self, "in_progress"), at + self.left * SHARE)
  local took = interrupt.now() - at
  self.tries, self.spent, self.left, self.failure = self.tries + 1, self.spent + took, self.left - took, failure
  if code or failure.refused or not failure.passing or self.left * SHARE < LEAST then return close_beginning(self, code) end
  self.not_before = at + took + (failure.retry_after or 0)
  if self.tries == 1 then
    self.log("warning", "report.retry", { report = "in_progress", error = failure.message .. "; it is tried again before later steps" })
  end
end

---Says how the job ended, within 30 s. Nothing may cut its waits short any more (interrupt.lift).
---@param result string[] its JSON, to be sent part by part
---@return "delivered"|"refused"|"undeliverable"
function reporter:completed(result)
  if self.failure and not self.over then close_beginning(self) end
  local body = table.move(result, 1, #result, 2, { (body_of(self, "completed"):gsub("}$", ',"result":')) })
  body[#body + 1] = "}"
  local at, policy, tries = interrupt.now(), retry.policy(), 0
  policy.tries, policy.first, policy.longest, policy.until_when = math.huge, 0.5, 4, at + ENDING
  local code, failure = retry.run(policy, function(number)
    tries = number
    return post(self, body, policy.until_when)
  end, function(problem, seconds)
    self.log("warning", "report.retry", { report = "completed", error = problem.message, seconds = seconds })
  end)
  if code then
    log_sent(self, "completed", code, tries, interrupt.now() - at)
    return "delivered"
  end
  log_failed(self, "completed", failure, tries)
  return failure.refused and "refused" or "undeliverable"
end

return status
