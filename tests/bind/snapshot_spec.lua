-- SPDX-License-Identifier: Apache-2.0
local scratch = require "scratch"

describe("native.snapshot", function()
  local here = scratch()

  local function take(most_bytes)
    return assert(here.root:snapshot { directory = here.above, most_bytes = most_bytes })
  end

  --- Action and kept content of each change, by path.
  local function changes_of(snapshot)
    local found = {}
    for _, change in ipairs(assert(snapshot:changes())) do
      assert.is_nil(found[change.path])
      local kept = change.original and assert(snapshot:content(change.original))
      found[change.path] = change.action .. ":" .. (kept or "not kept")
    end
    return found
  end

  it("keeps contents and targets up to its bound, whatever comes first", function()
    here:put("a", ("x"):rep(8))
    here:shell "ln -s 0123456789 b; ln -s 01 c" -- 8 and 10 are above the bound, 8 and 2 are it
    here:put("d", "y")
    here:put("e", ("z"):rep(100))
    local snapshot <close> = take(10)
    here:shell "for name in *; do rm $name; echo new >$name; done"
    assert.are.same({
      a = "modified:xxxxxxxx", b = "type_changed:not kept", c = "type_changed:01",
      d = "modified:not kept", e = "modified:not kept",
    }, changes_of(snapshot))
  end)

  it("lists its changes once, however often it is asked", function()
    here:put("a", "1")
    local snapshot <close> = take(100)
    here:put("a", "22")
    assert.are.same(changes_of(snapshot), changes_of(snapshot))
    here:shell "rm a"
    here:put("b", "")
    assert.are.same({ a = "deleted:1", b = "created:not kept" }, changes_of(snapshot))
  end)
end)
