-- SPDX-License-Identifier: Apache-2.0
local fail = require "sba.util.fail"
local step = require "sba.steps.run_command"
local workspace = require "native.workspace"

describe("the step run_command", function()
  local context = { workspace = assert(workspace.open "/tmp"), max_output_bytes = 1000, environment = {} }

  --- The variables of a command with these of its own in a job with those of its environment, sorted. No shell, which
  --- would have a PATH of its own.
  local function variables_of(own, environment)
    local job = { workspace = context.workspace, max_output_bytes = 1000, environment = environment }
    local variables = {}
    for variable in assert(step.run({ command = "/usr/bin/env", env = own }, job)).stdout:gmatch "[^\n]+" do
      variables[#variables + 1] = variable
    end
    table.sort(variables)
    return variables
  end

  it("sets variables beside and before the job's", function()
    local own <const>, inherited <const> = { B = "x", C = "y" }, { "A=1", "B=2" }
    assert.same({ { "A=1", "B=x", "C=y" }, inherited }, { variables_of(own, inherited), variables_of(nil, inherited) })
  end)

  it("only cuts at its own limit and fails at the job's", function()
    local result = assert(step.run({ shell = "yes | head -c 5000", max_output_bytes = 10 }, context))
    assert.same({ "y\ny\ny\ny\ny\n", true }, { result.stdout, result.stdout_truncated })
    local _, failure = step.run({ command = "yes", max_output_bytes = 100000 }, context)
    assert.equal("constraint_violation", failure.code)
    assert.matches("max_output_bytes %(1000%)", failure.message)
  end)

  it("runs in any directory that its user can enter", function()
    local here = context.workspace:path()
    for path, wanted in pairs { [""] = here, ["."] = here, [".."] = "/", ["/"] = "/", ["/usr/bin"] = "/usr/bin" } do
      assert.equal(wanted .. "\n",
        assert(step.run({ argv = { "/bin/pwd", "-P" }, working_dir = path }, context)).stdout)
    end
    local _, failure = fail.caught(step.run, { command = "pwd", working_dir = "/no/such" }, context)
    assert.equal("not_found", failure.code)
    assert.matches("working directory.*/no/such", failure.message)
  end)

  it("keeps the proxies that the node set, and takes others", function()
    local inherited = { "PATH=/usr/bin", "HTTP_PROXY=http://node:1", "all_proxy=http://node:1", "no_proxy=node" }
    local own = { HTTP_PROXY = "own", http_proxy = "own", ALL_PROXY = "own", NO_PROXY = "*",
      HTTPS_PROXY = "http://own:3", X = "x" }
    assert.same({
      "HTTPS_PROXY=http://own:3", "HTTP_PROXY=http://node:1", "PATH=/usr/bin", "X=x", "all_proxy=http://node:1",
      "no_proxy=node",
    }, variables_of(own, inherited))
    local one <const> = { "PATH=/usr/bin", "https_proxy=http://node:1" }
    assert.same(one, variables_of({ HTTPS_PROXY = "own" }, one))
  end)
end)
