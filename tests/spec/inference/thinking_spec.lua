-- SPDX-License-Identifier: Apache-2.0
local thinking = require "sba.inference.thinking"

local function split(text) return { thinking(text) } end

describe("thinking", function()
  for _, case in ipairs {
    { "", "", "" }, { "hello", "hello", "" }, { "<think>hm</think>hello", "hello", "hm" },
    { "\n <think>\nhm\n\nhm </think>\n\n hello ", "hello ", "hm\n\nhm" }, { "<thinking>hm</thinking>hello", "hello", "hm" },
    { "<think></think>hello", "hello", "" }, { "<think>never ends", "", "never ends" }, { "<thi", "<thi", "" },
    { "< think>a</p>", "< think>a</p>", "" }, { "  hello", "  hello", "" }, { "hm</think>\nhello", "hello", "hm" },
    { "write <think>x</think> there", "write <think>x</think> there", "" },
    { "<think>a<think>b</think>c</think>d", "c</think>d", "a<think>b" },
  } do
    it(("splits %q"):format(case[1]), function() assert.are.same({ case[2], case[3] }, split(case[1])) end)
  end

  it("takes a long text that a search which goes back would not end", function()
    local blanks, nested, torn, words = (" "):rep(2000000), ("<think>"):rep(300000), ("</thin"):rep(300000), (" x"):rep(1000000)
    for text, expected in pairs {
      [blanks] = { blanks, "" }, [nested] = { "", nested:sub(#"<think>" + 1) }, ["<think>" .. torn] = { "", torn }, [words] = { words, "" },
    } do
      local got = split(text)
      assert.is_true(got[1] == expected[1] and got[2] == expected[2])
    end
  end)
end)
