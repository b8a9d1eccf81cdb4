-- SPDX-License-Identifier: Apache-2.0
local state = require "sba.run.state"

--- Calls a function with each field of a run that a line names.
local function each_field(line, call)
  line = line:gsub("%-%-.*", ""):gsub("self%.run%.", " run."):gsub("state%.run%.", " run.")
  for name in line:gmatch "%f[%w_.]run%.([%a_%d]+)%f[^%w_]" do call(name) end
end

describe("the state of a run", function()
  it("has no field that its class does not list", function()
    local path, known, used = debug.getinfo(state.new).source:gsub("^@", ""), {}, 0
    for line in io.lines(path) do known[line:match "^%-%-%-@field ([%a_%d]+)" or ""] = true end
    local top = path:gsub("run/state%.lua$", "")
    local files <close> = assert(io.popen(("find '%srun' '%sagent' '%smain.lua' -name '*.lua'"):format(top, top, top)))
    for file in files:lines() do
      for line in io.lines(file) do
        each_field(line, function(name)
          used = used + 1
          assert.is_true(known[name], ("%s: %s"):format(file, line))
        end)
      end
    end
    assert.is_true(used > 300)
  end)
end)
