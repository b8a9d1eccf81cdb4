-- SPDX-License-Identifier: Apache-2.0
local interrupt = require "native.interrupt"
local scratch = require "scratch"
local transaction = require "sba.patch.transaction"

describe("sba.patch.transaction", function()
  local here = scratch()

  before_each(function() here:shell "echo secret > ../secret" end)

  -- Everything there is: names, types, modes, targets and contents, outside included.
  local function state()
    return here:shell [[cd .. && find . -printf '%p %y %m %l\n' | sort && find . -type f | sort | xargs -d '\n' cat]]
  end

  local function refused(code, found, failure)
    assert.is_nil(found)
    assert.equal(code, failure.code, failure.message)
  end

  -- A transaction with a change of every kind, and the state before it.
  local function many_changes()
    here:shell "mkdir -p d/e m/n && chmod 711 m/n && echo one > a && echo two > d/e/x && echo 1 > m/n/1 && echo z > z"
    here:shell "chmod 600 a"
    local before, change = state(), transaction.new(here.root)
    assert(change:write("a", "ONE"))
    assert(change:remove("d/e/x"))
    assert(change:write("d/e", "file for directory"))
    assert(change:chmod("z", 384))
    assert(change:write("b/new", "x"))
    assert(change:symlink("b/link", "new"))
    assert(change:remove("m/n/1"))
    assert(change:write("m", "file for deeper directory"))
    return change, before
  end

  it("shows nothing before its end, then everything", function()
    here:shell "mkdir d && echo one > a && echo two > d/b && echo three > gone && chmod 600 a && ln -s a link"
    local change <close> = transaction.new(here.root)
    assert(change:write("a", "ONE"))
    assert(change:write("new/deep/file", "made", 493))
    assert(change:write("link", "a file now"))
    assert(change:symlink("d/link", "../a"))
    assert(change:remove("gone"))
    assert(change:remove("d/b"))
    assert(change:chmod("a", 416))
    assert.equal("one\n", here:content("a"))
    assert.equal("not_found", select(2, here.root:read("new/deep/file")).code)
    assert(change:commit())
    change:close()
    assert.equal("ONE", here:content("a"))
    assert.equal(416, here.root:stat("a").mode)
    assert.equal(493, here.root:stat("new/deep/file").mode)
    assert.equal("file", here.root:stat("link").type)
    assert.equal("../a", here.root:stat("d/link").target)
    assert.equal("./a\n./d\n./d/link\n./link\n./new\n./new/deep\n./new/deep/file\n",
      here:shell "find . -mindepth 1 | LC_ALL=C sort")
  end)

  it("leaves no trace when it is not committed", function()
    local change, before = many_changes()
    change:close()
    assert.equal(before, state())
  end)

  it("puts everything back where a part fails", function()
    here:shell "mkdir full && echo > full/keep && mkfifo pipe"
    for _, spoil in ipairs {
      function(change) assert(change:write("full", "not empty")) return "not_a_file" end,
      function(change) assert(change:write("pipe", "a FIFO")) return "not_a_file" end,
      function(change) assert(change:write("y/y", "x")) assert(change:write("y", "x")) return "not_a_directory" end,
    } do
      local change <close>, before = many_changes()
      local code = spoil(change)
      refused(code, change:commit())
      assert.equal(before, state())
    end
  end)

  it("fails when a file to remove has gone, and brings the others back", function()
    here:shell "echo one > a && echo two > b && echo three > c"
    local change <close> = transaction.new(here.root)
    assert(change:write("a", "x"))
    assert(change:remove("b"))
    assert(change:remove("c"))
    here:shell "rm c"
    refused("not_found", change:commit())
    assert.equal("./a\n./b\n", here:shell "find . -mindepth 1 | sort")
    assert.equal("one\n", here:content("a"))
  end)

  it("changes nothing once the job must stop", function()
    here:shell "echo one > a"
    local before = state()
    local change <close> = transaction.new(here.root)
    assert(change:write("a", "x"))
    interrupt.set_deadline(0)
    local committed, failure = change:commit()
    interrupt.set_deadline(1e9)
    refused("timeout", committed, failure)
    assert.equal(before, state())
  end)

  it("does not follow a link that the same change makes to the outside", function()
    here:shell "mkdir d"
    local change <close> = transaction.new(here.root)
    assert(change:symlink("d/link", "../x"))
    assert(change:write("d/link/file", "through"))
    here:shell "ln -s .. x"
    refused("path_escape", change:commit())
    assert.is_nil(io.open(here.above .. "/file"))
  end)

  it("keeps what was there until its end, where it is told to, and takes all back", function()
    local change <close>, before = many_changes()
    assert.equal(11, #assert(change:plan())) -- with three directories
    assert(change:commit())
    assert.equal("ONE", here:content("a"))
    assert(change:revert())
    assert.equal(before, state())
    change:close()
    assert.equal(before, state())
  end)

  it("says what it could not take back, and where that is", function()
    local change <close> = many_changes()
    local backup
    for _, one in ipairs(assert(change:plan())) do backup = one.path == "a" and one.backup or backup end
    assert(change:commit())
    here:shell "rm a && mkdir a"
    local done, failure = change:revert()
    refused("incomplete", done, failure)
    assert.matches("could not be put back: a is kept as " .. backup:gsub("%p", "%%%0") .. "$", failure.message)
    change:close()
    assert.equal("one\n", here.root:read(backup).content)
  end)

  it("clears up after a commit that another run made, and undoes one, as often as it is asked to", function()
    local change <close>, before = many_changes()
    local plan = assert(change:plan())
    assert(change:commit())
    local after = here:shell "find . -name '.sba-*'"
    assert.is_true(#after > 0)
    for _ = 1, 2 do assert(transaction.recover(here.root, plan, false)) end
    assert.equal(before, state())
    local again <close> = many_changes()
    plan = assert(again:plan())
    assert(again:commit())
    for _ = 1, 2 do assert(transaction.recover(here.root, plan, true)) end
    assert.equal("", here:shell "find . -name '.sba-*'")
    assert.equal("ONE", here:content("a"))
  end)

  it("changes more files than there are descriptors", function()
    local change <close> = transaction.new(here.root)
    for i = 1, 3000 do assert(change:write("d" .. i % 50 .. "/f" .. i, tostring(i))) end
    assert(change:commit())
    assert.equal("3000\n", here:shell "find . -type f | wc -l")
    local removal <close> = transaction.new(here.root)
    for i = 1, 3000 do assert(removal:remove("d" .. i % 50 .. "/f" .. i)) end
    assert(removal:commit())
    removal:close()
    assert.equal("", here:shell "find . -mindepth 1")
  end)
end)
