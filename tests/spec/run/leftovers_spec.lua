-- SPDX-License-Identifier: Apache-2.0
local leftovers = require "sba.run.leftovers"
local process = require "native.process"
local scratch = require "scratch"

describe("leftovers", function()
  local here, gone, run = scratch(), process.runner(), { environment = {}, warn = error }
  local job = '{"event":"job","run":{"word":"%s","pid":4194304,"started":1,"boot_id":"%s","pid_namespace":%d}}\n'

  it("are looked for where the last line of a journal, however long, does not end the job", function()
    for _, size in ipairs { 1, 65400, 65536, 200000 } do
      local last = '{"event":"job.finished","result":"' .. ("x"):rep(size) .. '"}'
      for line_end, life in pairs { [""] = "gone", ["\n"] = false } do
        here:put("journal", job:format(gone.word, gone.boot_id, gone.pid_namespace) .. last .. line_end)
        assert.equal(life, leftovers.end_run(run, here.path .. "/journal", true) or false)
      end
    end
    here:shell "truncate -s 200M journal"
    local began, life = os.clock(), leftovers.end_run(run, here.path .. "/journal", true)
    assert.same({ "gone", true }, { life, os.clock() - began < 3 }) -- seconds
  end)
end)
