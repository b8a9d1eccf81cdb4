-- SPDX-License-Identifier: Apache-2.0
local thinking = require "sba.inference.thinking"

--- Content, thought, and what was shown on the way, for a text in pieces of that size.
local function split(text, size)
  local shown = {}
  local self = thinking.new(function(piece) shown[#shown + 1] = piece end)
  for i = 1, #text, size do self:add(text:sub(i, i + size - 1)) end
  local content, thought = self:finish()
  return { content, thought, table.concat(shown) }
end

describe("thinking", function()
  for _, case in ipairs {
    { "", "", "", "" }, { "hello", "hello", "", "hello" }, { "<think>hm</think>hello", "hello", "hm", "hello" },
    { "\n <think>\nhm\n\nhm </think>\n\n hello ", "hello ", "hm\n\nhm", "hello " },
    { "<thinking>hm</thinking>hello", "hello", "hm", "hello" },
    { "<think></think>hello", "hello", "", "hello" }, { "<think>never ends", "", "never ends", "" }, { "<thi", "<thi", "", "<thi" },
    { "< think>a</p>", "< think>a</p>", "", "< think>a</p>" },
    { "  hello", "  hello", "", "  hello" },
    { "write <think>x</think> there", "write <think>x</think> there", "", "write <think>x</think> there" },
    { "<think>a<think>b</think>c</think>d", "c</think>d", "a<think>b", "c</think>d" },
  } do
    it(("splits %q, whatever its pieces"):format(case[1]), function()
      for _, size in ipairs { 1, 2, 3, 7, 1000 } do
        local got = split(case[1], size)
        assert.are.same({ case[2], case[3] }, { got[1], got[2] })
        assert.are.equal(case[4]:gsub("%s", ""), (got[3]:gsub("%s", "")))
      end
    end)
  end

  it("takes all before a lone closing mark for thought", function()
    assert.are.same({ "hello", "hm" }, table.move(split("hm</think>\nhello", 3), 1, 2, 1, {}))
  end)

  it("takes a long text that a search which goes back would not end", function()
    local blanks, nested, torn, words = (" "):rep(2000000), ("<think>"):rep(300000), ("</thin"):rep(300000), (" x"):rep(1000000)
    for text, expected in pairs {
      [blanks] = { blanks, "" }, [nested] = { "", nested:sub(#"<think>" + 1) }, ["<think>" .. torn] = { "", torn }, [words] = { words, "" },
    } do
      local got = split(text, 4)
      assert.is_true(got[1] == expected[1] and got[2] == expected[2])
    end
  end)
end)
