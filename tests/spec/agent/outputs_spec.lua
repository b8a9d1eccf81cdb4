-- SPDX-License-Identifier: Apache-2.0
local outputs = require "sba.agent.outputs"
local scratch = require "scratch"

describe("outputs", function()
  local here = scratch()

  it("takes no more memory for a part than the part, however long the whole is", function()
    local store = outputs.new(here.path .. "/", 300)
    store:show("step-1", ("a line\n"):rep(1 << 20))
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    assert.matches("^%[lines 500000 to ", (store:read { step = "step-1", start_line = 500000 }))
    assert.matches("^a line\n", (store:read { step = "step-1", offset_bytes = 7000 }))
    local taken = collectgarbage "count" - before
    collectgarbage "restart"
    assert.is_true(taken < 64, taken .. " KiB")
  end)

  for name, in_memory in pairs { ["in memory"] = true, ["in a directory"] = false } do
    describe(name, function()
      local function new(limit) return outputs.new(not in_memory and here.path .. "/" or nil, limit) end

      it("shows head and tail with the exact count, and gives the rest when asked", function()
        local store = new(301) -- so that the tail would begin within a character
        local whole = ("ä"):rep(250) .. ("ö"):rep(250)
        local shown = store:show("step-1", whole)
        local pattern <const> = "^([ä]+)\n%[%.%.%. (%d+) of 1000 bytes left out; read_output .-%.%.%.%]\n([ö]+)$"
        local head, left_out, tail = shown:match(pattern)
        assert.equal(1000, #head + tonumber(left_out) + #tail)
        assert.is_true(#shown <= 301 and utf8.len(shown) ~= nil)
        local offset, read = #head, head
        while offset < 1000 do
          local part = store:read { step = "step-1", offset_bytes = offset }:match("^(.-)\n%[bytes")
          read, offset = read .. part, offset + #part
        end
        assert.equal(whole, read)
      end)

      it("gives lines, and says where to read on, if there are more", function()
        local store = new(301)
        store:show("step-1", ("äöü\n"):rep(200) .. "the end")
        local function read(from, to) return (store:read { step = "step-1", start_line = from, end_line = to }) end
        assert.equal("[lines 200 to 201 of 201]\näöü\nthe end", read(200, 999))
        assert.equal("[lines 2 to 44 of 201; start_line 45 reads on]\n" .. ("äöü\n"):rep(43), read(2, 99))
      end)

      it("says what it does not have", function()
        local store = new(100)
        assert.matches("nothing was left out", select(2, store:read { step = "step-7" }))
        store:show("step-1", ("a"):rep(200))
        assert.matches("only 200 bytes", select(2, store:read { step = "step-1", offset_bytes = 200 }))
      end)
    end)
  end
end)
