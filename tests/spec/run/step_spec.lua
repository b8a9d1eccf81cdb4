-- SPDX-License-Identifier: Apache-2.0
local journal = require "sba.journal.file"
local json = require "sba.util.json"
local state = require "sba.run.state"
local record = require "sba.result.record"
local secret = require "native.secret"
local direct = require "sba.run.direct"
local steps = require "sba.run.step"
local todo = require "sba.run.todo"

--- A run of steps whose types are functions.
local function prepare(types, ...)
  local list = {}
  for i, name in ipairs { ... } do list[i] = { id = "step-" .. i, type = name, arguments = {} } end
  local run = state.of {
    job = { steps = list }, steps = list,
    journal = journal.begin(nil, 0), record = record.new("j", "t"), todo = todo.new(),
    checkpoint = { changed = function() end, hurry = function() end },
    history = { unfinished = {}, count = 0 }, context = { tick = function() end, max_output_bytes = 1000 },
    catalogue = { get = function(name) return { run = types[name] } end, what = function() return "" end },
  }
  local function ignore() end
  run.progress, run.log = { step = ignore, finish = ignore }, { event = ignore }
  run.todo:fill(run.job, function() return "" end)
  return run
end

local function entries(run)
  local list = {}
  for _, text in ipairs(run.record.steps) do
    if text ~= "," then list[#list + 1] = assert(json.decode(text)) end
  end
  return list
end

describe("a direct job", function()
  it("turns a mistake in a step into internal_error, with a traceback", function()
    local run = prepare({ bad = function() error "oh no" end }, "bad")
    local failure = direct.run_rest(run)
    assert.equal("internal_error", failure.code)
    assert.matches("oh no", failure.message)
    assert.matches("stack traceback", failure.traceback)
    assert.equal("internal_error", entries(run)[1].error_code)
  end)

  --- A run of steps that change something and then succeed or fail, and what is done with the changes.
  local function prepare_changes(...)
    local told, run = {}
    local function change()
      run.pending_undo = {
        revert = function() table.insert(told, "revert") return true end,
        close = function() table.insert(told, "close") end,
      }
    end
    local function bad() change() error "oh no" end
    local function good() change() return {} end
    run = prepare({ bad = bad, good = good }, ...)
    return run, told
  end

  it("takes back what a step changed before it failed", function()
    local run, told = prepare_changes("good", "bad")
    direct.run_rest(run)
    assert.same({ "close", "revert", "close" }, told)
    assert.is_nil(run.pending_undo)
  end)

  it("keeps what a step changed once the journal has its end, whatever fails then", function()
    local run, told = prepare_changes "good"
    function run.progress.finish() error "oh no" end
    assert.is_false(pcall(direct.run_rest, run))
    steps.revert(run) -- as the job's end does
    assert.same({ "close" }, told)
    assert.equal("success", entries(run)[1].status)
  end)

  it("does so for what cannot be: no answer, no JSON, a strange error", function()
    local bad = {
      nothing = function() end,
      no_json = function() return { f = print } end,
      not_a_number = function() return { 0 / 0 } end,
      strange = function() error(nil) end,
      table_error = function() error {} end,
      memory = function() return { ("x"):rep(1 << 50) } end,
    }
    for name in pairs(bad) do
      local run = prepare(bad, name)
      assert.equal("internal_error", direct.run_rest(run).code, name)
      assert.equal("failure", entries(run)[1].status)
    end
  end)

  it("redacts what a step that failed gives all the same", function()
    secret.add "a-token-of-the-gateway"
    local failure = { code = "invalid", message = "no", result = { said = "a-token-of-the-gateway" } }
    local run = prepare({ bad = function() return nil, failure end }, "bad")
    direct.run_rest(run)
    assert.equal("[redacted]", entries(run)[1].result.said)
  end)

  it("keeps an interrupt what it is", function()
    local run = prepare({ bad = function() error { code = "timeout", message = "the job's time was up" } end }, "bad")
    assert.equal("timeout", direct.run_rest(run).code)
    assert.equal("timeout", entries(run)[1].status)
  end)
end)
