-- SPDX-License-Identifier: Apache-2.0
local leftovers = require "sba.run.leftovers"
local process = require "native.process"
local scratch = require "scratch"

describe("leftovers", function()
  local here, gone = scratch(), process.runner()
  local job = '{"event":"job","run":{"word":"%s","pid":4194304,"started":1,"boot_id":"%s","pid_namespace":%d}}\n'

  it("are looked for where the last line of a journal, however long, does not end the job", function()
    for _, size in ipairs { 1, 65400, 65536, 200000 } do
      local last = '{"event":"job.finished","result":"' .. ("x"):rep(size) .. '"}'
      for line_end, life in pairs { [""] = "gone", ["\n"] = false } do
        here:put("journal", job:format(gone.word, gone.boot_id, gone.pid_namespace) .. last .. line_end)
        local run = { environment = {}, warn = error }
        assert.equal(life, leftovers.end_run(run, here.path .. "/journal", true) or false)
      end
    end
  end)
end)
