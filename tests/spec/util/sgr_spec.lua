-- SPDX-License-Identifier: Apache-2.0
local output_lines = require "sba.util.output_lines"
local sgr = require "sba.util.sgr"

local order <const> = { "bold", "dim", "italic", "underlined", "reversed", "foreground", "background" }

--- A run as a terminal would be told it.
local function paint(style, text)
  local list = {}
  for _, name in ipairs(order) do list[#list + 1] = style[name] end
  return #list == 0 and text or ("\27[%sm%s\27[0m"):format(table.concat(list, ";"), text)
end

local function painted(text, style)
  local list, last = sgr.runs(text, style or sgr.plain)
  local parts = {}
  for i, run in ipairs(list) do parts[i] = paint(run.style, run.text) end
  return table.concat(parts), last
end

describe("SGR", function()
  it("keeps colours, each run closed", function()
    assert.are.equal("a\27[1;31mb\27[0mc", painted "a\27[1;31mb\27[mc")
    assert.are.equal("\27[38;5;208mx\27[0m", painted "\27[38;5;208mx")
    assert.are.equal("\27[48;2;1;2;3mx\27[0m", painted "\27[48:2:1:2:3mx")
    assert.are.equal("\27[97;100mx\27[0my", painted "\27[97;100mx\27[39;49my")
    assert.are.equal("x", painted "\27[1;2;3;4;7;31m\27[22;23;24;27;39mx")
  end)

  it("goes on in the next line", function()
    local _, style = painted "\27[32mone"
    assert.are.equal("\27[32mtwo\27[0m", (painted("two", style)))
  end)

  it("does not hide or blink, and takes no other sequence", function()
    assert.are.equal("hidden", painted "\27[8;5;6mhidden")
    assert.are.equal("x\27[2Jy\27]0;title\7", painted "x\27[2Jy\27]0;title\7")
    assert.are.equal("\27[31", painted "\27[31")
    assert.are.equal("ab", painted "a\27[K\27[0Kb")
    assert.are.equal("x", painted "\27[38;5;300mx")
    assert.are.equal("x", painted "\27[38;9;1mx")
    assert.are.equal("x", painted "\27[99999999999999999999;108;38;48mx")
    local many = "\27[" .. ("1;"):rep(100) .. "m"
    assert.are.equal(many, painted(many))
  end)

  it("is one of sixteen colours where there are no more", function()
    for colour, place in pairs { ["31"] = 1, ["97"] = 15, ["104"] = 12, ["40"] = 0, ["38;5;9"] = 9, ["38;5;196"] = 9, ["38;5;22"] = 2,
      ["38;5;255"] = 15, ["38;5;232"] = 0, ["48;2;0;0;255"] = 12, ["38;2;250;250;10"] = 11, ["38;2;120;120;130"] = 7 } do
      assert.are.equal(place, sgr.sixteen(colour), colour)
    end
  end)
end)

describe("lines of output", function()
  it("are the last ones, as a terminal would show them", function()
    local list, more = output_lines.last("1\n2\n 50%\r100%\r\nend", 3)
    assert.are.same({ "2", "100%", "end" }, list)
    assert.is_true(more)
    assert.are.same({ "", "" }, (output_lines.last("\r\n\r", 3)))
    list, more = output_lines.last("", 3)
    assert.are.same({ {}, false }, { list, more })
  end)
end)
