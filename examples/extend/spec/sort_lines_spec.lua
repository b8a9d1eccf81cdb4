-- SPDX-License-Identifier: Apache-2.0
-- The step sort_lines, run as the runner runs it: arguments by its schema, a real workspace.
package.path = debug.getinfo(1, "S").source:match("^@(.*)/spec/") .. "/lua/?.lua;" .. package.path -- for binaries that lack it

local schema_check = require "sba.util.schema_check"
local sort_lines = require "sba.steps.sort_lines"
local workspace = require "native.workspace"

local root, directory

local function run(arguments)
  local checked, errors = schema_check.check(arguments, sort_lines.arguments)
  assert.are.same({ total = 0 }, errors)
  return sort_lines.run(checked, { workspace = directory, max_output_bytes = 1000 })
end

local function content(path) return assert(directory:read(path, {})).content end

describe("the step sort_lines", function()
  before_each(function()
    root = assert(io.popen("mktemp -d"):read("l"))
    directory = assert(workspace.open(root))
  end)

  after_each(function() assert(os.execute("rm -rf " .. root)) end)

  it("sorts a file in its place", function()
    directory:write("list", "pear\napple\npear\n")
    assert.are.same({ path = "list", lines = 3, dropped = 0 }, (run { path = "list" }))
    assert.are.equal("apple\npear\npear\n", content "list")
  end)

  it("keeps one of equal lines, and writes elsewhere, where that is asked", function()
    directory:write("list", "b\n\na\nb\na") -- an empty line, and no line end at the end
    local result, text = run { path = "list", unique = true, save_to = "out/sorted" }
    assert.are.same({ path = "out/sorted", lines = 3, dropped = 2 }, result)
    assert.are.equal("out/sorted: 3 lines, 2 dropped\n", text)
    assert.are.equal("\na\nb\n", content "out/sorted")
    assert.are.equal("b\n\na\nb\na", content "list")
  end)

  it("leaves nothing of nothing", function()
    directory:write("list", "")
    assert.are.same({ path = "list", lines = 0, dropped = 0 }, (run { path = "list", unique = true }))
    assert.are.equal("", content "list")
  end)

  it("says why it cannot", function()
    local result, failure = run { path = "missing" }
    assert.is_nil(result)
    assert.are.equal("not_found", failure.code)
    result, failure = run { path = "../outside" }
    assert.is_nil(result)
    assert.are.equal("path_escape", failure.code)
  end)

  it("says in the log what it did", function()
    local arguments = { path = "list", save_to = "sorted" }
    assert.are.equal("list", sort_lines.what(arguments))
    local result = { path = "sorted", lines = 3, dropped = 0 }
    assert.are.equal("sorted 3 lines into sorted", sort_lines.what(arguments, result))
  end)
end)
