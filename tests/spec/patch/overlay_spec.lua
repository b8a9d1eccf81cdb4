-- SPDX-License-Identifier: Apache-2.0
-- The bounds of what a patch holds in memory, in a workspace whose files seem larger than they are.
local fail = require "sba.util.fail"
local overlay = require "sba.patch.overlay"

local MIB <const> = 1 << 20

describe("an overlay", function()
  local directory = {
    stat = function() return { type = "file", size_bytes = 0 } end,
    read = function(_, _, options)
      assert.equal(1024 * MIB, options.max_bytes)
      return { content = "", truncated = true, mode = 420 }
    end,
  }

  it("takes no file of more than 1 GiB", function()
    local files = overlay.new(directory, false)
    local entry, problem = fail.caught(files.get, files, "a")
    assert.same({ nil, "too_large" }, { entry, problem.code })
  end)
end)
