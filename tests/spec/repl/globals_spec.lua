-- SPDX-License-Identifier: Apache-2.0
local globals = require "sba.repl.globals"
local identity = require "native.identity"
local scratch = require "scratch"

describe("at hand at the prompt", function()
  local here = scratch()
  before_each(function() globals.install(identity.environment {}) end)

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
end)
