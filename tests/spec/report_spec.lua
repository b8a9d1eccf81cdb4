-- SPDX-License-Identifier: Apache-2.0
local digest = require "sba.report.digest"
local html = require "sba.report.html"
local format = require "sba.report.format"

local h = html.elements

local function written(element)
  return html.document("t", "p {}", element):match("</head>\n(.*)</html>")
end

describe("the writer of HTML", function()
  it("takes every string for text", function()
    assert.equal("<p title=\"&quot;&lt;\">&lt;b&gt; &amp;amp; &#39;</p>", written(h.p { title = '"<', "<b> &amp; '" }))
    assert.equal("<p><b>&lt;i&gt;</b>1</p>", written(h.p { h.b { "<i>" }, nil, { false, 1 } }))
  end)

  it("names what would act", function()
    assert.equal("<p>a<b class=\"byte\">\\x00</b><b class=\"byte\">\\x1b</b>\n\t<b class=\"byte\">\\u{202e}</b>é\u{fffd}</p>",
      written(h.p { "a\0\27\n\t\u{202e}é\xff" }))
    assert.equal("<p title=\"\\x00\\u{2067}\"></p>", written(h.p { title = "\0\u{2067}" }))
  end)

  it("shows head and tail of what is very long", function()
    local page = written(h.p { title = ("\1"):rep(9999), ("\1"):rep(2 << 20) })
    assert.truthy(page:find("of 2097152 bytes left out", 1, true))
    assert.is_true(#page < 40 << 20)
  end)

  it("has no way to hand in markup or what leads out", function()
    for _, wrong in ipairs {
      function() return h.p { { open = "<b>" }, setmetatable({ "<b>" }, nil), print } end,
      function() return h.a { href = "javascript:alert(1)" } end,
      function() return h.a { href = "#a\" onclick=\"" } end,
      function() return h.p { style = "background:url(x)" } end,
      function() return h.p { onclick = "x" } end,
      function() return h["p><script"] end,
      function() return h.script end,
      function() return html.document("t", "</style>", h.p {}) end,
    } do
      assert.has_error(wrong)
    end
  end)

  it("closes what the page may load", function()
    local page = html.document("<t>", "p {}", h.body {})
    assert.truthy(page:find("<title>&lt;t&gt;</title>", 1, true))
    assert.truthy(page:find("Content-Security-Policy", 1, true))
  end)
end)

describe("a report", function()
  it("explains every failure code", function()
    local explained = require "sba.report.outcome".failures
    for _, code in ipairs(require "sba.result.result_schema".properties.failure_code.enum) do
      if type(code) == "string" then
        assert.truthy(explained[code] and explained[code].meaning and explained[code].help, code)
      end
    end
  end)

  it("reads times as the calendar has them", function()
    assert.equal(0, format.instant("1970-01-01T00:00:00.000Z"))
    assert.equal(951782400000, format.instant("2000-02-29T00:00:00.000Z"))
    assert.equal(1795265782087, format.instant("2026-11-21T12:56:22.087Z"))
    assert.is_nil(format.instant("now"))
    assert.is_nil(format.instant({}))
  end)

  it("says sizes and times in few words", function()
    assert.same({ "< 1 ms", "12 ms", "3.4 s", "2 min 05 s", "1 h 02 min" },
      { format.duration(0), format.duration(12), format.duration(3400), format.duration(125000), format.duration(3725000) })
    assert.same({ "1 byte", "1\u{202f}000 bytes", "1.5 KiB", "2.0 GiB" },
      { format.size(1), format.size(1000), format.size(1536), format.size(2 << 30) })
  end)

  it("takes the steps of answered calls by their ids, and of the last ones by their order", function()
    local read = digest.read(table.concat({
      '{"event":"model.exchange","reply":{"tool_calls":[{"id":"a","name":"run_command","arguments":{"shell":"bad"}},'
        .. '{"id":"b","name":"run_command","arguments":{"shell":"one"}}]}}',
      '{"event":"step.started","index":0,"id":"step-1","type":"run_command"}',
      '{"event":"step.finished","entry":{"index":0,"status":"success"}}',
      '{"event":"model.exchange","messages":[{"role":"tool","tool_call_id":"a"},{"role":"tool","tool_call_id":"b","step":"step-1"}],'
        .. '"reply":{"tool_calls":[{"name":"todo_add","arguments":{}},{"name":"read_file","arguments":{"path":"x"}}]}}',
      '{"event":"step.started","index":1,"id":"step-2","type":"read_file"}',
    }, "\n") .. "\n")
    assert.same({ type = "run_command", arguments = { shell = "one" } }, read.calls[1])
    assert.equal("x", read.calls[2].arguments.path)
    assert.is_nil(read.problem)
    assert.is_nil(read.turns[1].calls[1].step)
  end)
end)
