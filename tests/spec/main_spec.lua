-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong in the program itself ends in a result too.
local artifacts = require "sba.run.artifacts"
local file = require "native.file"
local identity = require "native.identity"
local json = require "sba.util.json"
local main = require "sba.main"
local process = require "native.process"
local scratch = require "scratch"
local direct = require "sba.run.direct"

local JOB <const> = [[{"protocol_version": "1.0", "job_id": "j", "task_id": "t", "steps": [{"type": "list_tree"}],
  "constraints": {"max_runtime_seconds": 60, "max_output_bytes": 100000}}]]

describe("the program", function()
  local here = scratch()
  local is_root, globals = identity.is_root, getmetatable(_G)
  local open, finish, skip_rest = artifacts.open, process.finish, direct.skip_rest

  before_each(function()
    here:put("job.json", JOB)
    identity.is_root = function() return false end -- the tests may be root's
  end)

  after_each(function()
    identity.is_root = is_root
    setmetatable(_G, globals)
    artifacts.open, process.finish, direct.skip_rest = open, finish, skip_rest
  end)

  -- Runs the job; gives the exit status and the result.
  local function run()
    local argv = { [0] = "cynode-sba", "--job", here.path .. "/job.json", "--workspace", here.path }
    argv[5], argv[6] = "--result", here.path .. "/result.json"
    local environment = identity.environment
    identity.environment = function() return {} end
    local status = main(argv)
    identity.environment = environment
    return status, assert(json.decode((assert(file.read(here.path .. "/result.json", 1 << 20)))))
  end

  local function check_internal(status, result)
    assert.are.same({ 1, "failure", "internal_error" }, { status, result.status, result.failure_code })
    assert.matches("oh no", result.failure_message)
  end

  it("runs the job with strict globals", function()
    local status, result = run()
    assert.are.same({ 0, "success" }, { status, result.status })
    assert.error_matches(load "return no_such_global", "the global 'no_such_global' does not exist", 1, true)
    assert.error_matches(load "no_such_global = 1", "'no_such_global' must not be created", 1, true)
  end)

  it("writes a result where a stage raises an error", function()
    artifacts.open = function() error "oh no" end
    check_internal(run())
    artifacts.open = function() error({ code = "io_error", message = "oh no" }, 0) end -- no code of a result
    check_internal(run())
  end)

  it("does the rest of the end where a part of it raises one", function()
    process.finish = function() error "oh no" end
    local status, result = run()
    check_internal(status, result)
    assert.are.equal("success", result.steps[1].status)
    direct.skip_rest = function() error "oh no" end
    check_internal(run())
  end)
end)
