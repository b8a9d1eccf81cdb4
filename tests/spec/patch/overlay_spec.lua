-- SPDX-License-Identifier: Apache-2.0
-- The bounds of what a patch holds in memory, in a workspace whose files seem larger than they are.
local fail = require "sba.util.fail"
local overlay = require "sba.patch.overlay"

local MIB <const> = 1 << 20

describe("an overlay", function()
  local directory = {
    read = function(_, _, options)
      assert.equal(MIB, options.max_bytes) -- no more than that is read of it
      return { content = "", truncated = true, size_bytes = 1024 * MIB + 1, mode = 420 }
    end,
  }

  it("takes no file of more than 1 GiB", function()
    local files = overlay.new(directory, false)
    local entry, problem = fail.caught(files.get, files, "a")
    assert.same({ nil, "too_large" }, { entry, problem.code })
  end)
end)
