-- SPDX-License-Identifier: Apache-2.0
local globals = require "sba.repl.globals"
local identity = require "native.identity"
local scratch = require "scratch"

describe("at hand at the prompt", function()
  local here, printed, write = scratch(), {}, io.write
  before_each(function()
    globals.install(identity.environment {})
    io.write = function(...) printed[#printed + 1] = table.concat({ ... }) end -- luacheck: ignore
  end)
  after_each(function() io.write = write end) -- luacheck: ignore

  local function help(name)
    printed = {}
    globals.help(name)
    return table.concat(printed)
  end

  it("a step runs where it is told to, with artifacts", function()
    here:shell "mkdir work kept"
    local places = { workspace = here.path .. "/work", artifacts = here.path .. "/kept" }
    local done = globals.step("run_command", { shell = 'pwd; echo x >"$CYNODE_ARTIFACTS_DIR/a"' }, places)
    assert.equal(here.path .. "/work\n", done.stdout)
    assert.equal("x\n", here:content "kept/a")
  end)

  it("a step that changes files leaves nothing beside them", function()
    here:shell "mkdir edited"
    here:put("edited/f", "a\nb\n")
    local places = { workspace = here.path .. "/edited" }
    local diff = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-c\n+d\n b\n"
    assert.equal(1, globals.step("replace_in_file", { path = "f", old_text = "a", new_text = "c" }, places).count)
    assert.equal("modified", globals.step("apply_unified_diff", { diff = diff }, places).files[1].action)
    assert.equal("f\n", here:shell "ls -A edited")
    assert.equal("d\nb\n", here:content "edited/f")
  end)

  it("a result is read", function()
    here:put("r.json", '{"status":"failure","failure_message":"why"}')
    assert.equal("why", globals.result(here.path .. "/r.json").failure_message)
    assert.has_error(function() globals.result(here.path .. "/none.json") end)
  end)

  it("help tells of functions, step types and modules, and says where there is nothing", function()
    assert.truthy(help "step":find("step(type, arguments, places)", 1, true))
    assert.truthy(help "read_file":find("start_line", 1, true))
    assert.truthy(help "native.file":find("replace", 1, true))
    assert.equal("nothing is called nonsense here; help() says what there is\n", help "nonsense")
    assert.truthy(help():find("result(file)", 1, true))
  end)
end)
