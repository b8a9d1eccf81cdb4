-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local scratch = require "scratch"
local step = require "sba.steps.search_files"
local text = require "native.text"

describe("the step search_files", function()
  local here = scratch()

  before_each(function()
    here:put("a.c", "int main(void)\n{\n  return 0;\n}\n")
    here:put("src/b.h", 'int b;\nINT "Ä";\n')
  end)

  local function run(arguments, max_output_bytes)
    return step.run(arguments, { workspace = here.root, max_output_bytes = max_output_bytes or 1 << 20 })
  end

  it("gives matches and the same as text", function()
    local result, shown = run { pattern = "^int" }
    assert.equal('{"matches":[{"path":"a.c","line":1,"text":"int main(void)"},' ..
      '{"path":"src/b.h","line":1,"text":"int b;"}],' ..
      '"files_searched":2,"truncated":false}', json.encode(result, step.result))
    assert.equal("a.c:1:int main(void)\nsrc/b.h:1:int b;\n", shown)
  end)

  it("escapes what JSON escapes", function()
    local line = ' "\\/\127' .. text.repair(("\xC3"):rep(2))
    for byte = 1, 31 do line = line .. (byte == 10 and "" or string.char(byte)) end
    here:put('"\t', line .. " end")
    local written = json.encode(run { pattern = "end" }, step.result)
    local read = json.decode(written)
    assert.same({ { path = '"\t', line = 1, text = line .. " end" } }, read.matches)
    assert.equal(written, json.encode(read, step.result))
  end)

  it("takes path, include and ignore_case", function()
    assert.equal('src/b.h:1:int b;\nsrc/b.h:2:INT "Ä";\n',
      select(2, run { pattern = "^int", path = "src", ignore_case = true }))
    assert.equal('src/b.h:2:INT "Ä";\n', select(2, run { pattern = "ä", ignore_case = true }))
    assert.equal("src/b.h:1:int b;\n", select(2, run { pattern = "^int", include = "*.h" }))
    assert.equal("no match in 0 files\n", select(2, run { pattern = "^int", include = "./*.h" }))
  end)

  it("finds what a file begins with below a byte order mark", function()
    here:put("a.c", "\xEF\xBB\xBFint x;\r\nint y;\n")
    here:put("only_a_mark", "\xEF\xBB\xBF")
    assert.equal("a.c:1:int x;\na.c:2:int y;\n", select(2, run { pattern = "^int [xy];$" }))
    assert.equal("no match in 1 file\n", select(2, run { pattern = "\u{FEFF}", path = "a.c" }))
  end)

  it("succeeds where nothing matches", function()
    local result, shown = run { pattern = "nothing" }
    assert.equal('{"matches":[],"files_searched":2,"truncated":false}', json.encode(result, step.result))
    assert.equal("no match in 2 files\n", shown)
  end)

  it("only flags what its own limit cuts", function()
    local result, shown = run { pattern = "^int", max_matches = 1 }
    assert.is_true(result.truncated)
    assert.equal("a.c:1:int main(void)\n"
      .. "[stopped after 1 matching line; there are more: narrow pattern, path or include]\n", shown)
    assert.is_false(run({ pattern = "^int", max_matches = 2 }).truncated)
  end)

  it("returns 1,000 lines where no limit is set", function()
    here:put("many", ("int\n"):rep(1001))
    local result = run { pattern = "int", path = "many" }
    assert.equal(1000, #json.decode(json.encode(result.matches)))
    assert.is_true(result.truncated)
  end)

  it("fails past the job's bound, with what fits", function()
    local whole = #json.encode(assert(run { pattern = "^(?i)int" }).matches, step.result.properties.matches)
    assert(run({ pattern = "^(?i)int" }, whole))
    for bound = whole - 1, 1, -1 do
      local result, failure = run({ pattern = "^(?i)int" }, bound)
      assert.is_nil(result)
      assert.equal("constraint_violation", failure.code)
      assert.matches("max_output_bytes", failure.message)
      assert.is_true(failure.result.truncated)
      assert.is_true(bound < 2 or #json.encode(failure.result.matches) <= bound)
    end
  end)
end)
