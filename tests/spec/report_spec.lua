-- SPDX-License-Identifier: Apache-2.0
local catalogue = require "sba.catalogue"
local file = require "native.file"
local html = require "sba.report.html"
local humanize = require "sba.util.humanize"
local journal = require "sba.report.source".journal
local parts = require "sba.report.parts"

local h = html.elements

local function written(element)
  return table.concat(html.document("t", "p {}", element)):match("</head>\n(.*)</html>")
end

local instant = parts.instant

describe("what a step did", function()
  it("is said in its type's own words, also of a model's call", function()
    local read = assert(catalogue.get "read_file")
    finally(function() read.what = nil end)
    function read.what(arguments, result) return (result and "has read " or "reads ") .. arguments.path end
    assert.equal("has read a", parts.about({ type = "read_file", arguments = { path = "a" } }, { size_bytes = 1 }))
    assert.equal("reads a", parts.about { name = "read_file", arguments = { path = "a" } })
    assert.equal("a", parts.about { type = "a type that is gone", arguments = { path = "a" } })
  end)
end)

describe("the writer of HTML", function()
  it("takes every string for text", function()
    assert.equal("<p title=\"&quot;&lt;\">&lt;b&gt; &amp;amp; &#39;</p>", written(h.p { title = '"<', "<b> &amp; '" }))
    assert.equal("<p><b>&lt;i&gt;</b>1</p>", written(h.p { h.b { "<i>" }, nil, { false, 1 } }))
  end)

  it("names what would act", function()
    local function byte(shown) return '<b class="byte">' .. shown .. "</b>" end
    local shown = byte "\\x00" .. byte "\\x1b" .. "\n\t" .. byte "\\u{202e}"
    assert.equal("<p>a" .. shown .. "é\u{fffd}</p>", written(h.p { "a\0\27\n\t\u{202e}é\xff" }))
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
      function() return h.p { style = "color:red" } end,
      function() return h.p { onclick = "x" } end,
      function() return h["p><script"] end,
      function() return h.script end,
      function() return html.document("t", "</style>", h.p {}) end,
    } do
      assert.has_error(wrong)
    end
  end)

  it("closes what the page may load", function()
    local page = table.concat(html.document("<t>", "p {}", h.body {}))
    assert.truthy(page:find("<title>&lt;t&gt;</title>", 1, true))
    assert.truthy(page:find("Content-Security-Policy", 1, true))
  end)
end)

describe("a report", function()
  it("explains every failure code", function()
    local explained = require "sba.report.outcome".failures
    for _, code in ipairs(require "sba.result.result_schema".properties.failure_code.enum) do
      if type(code) == "string" then
        assert.truthy(explained[code] and explained[code][1] and explained[code][2], code)
      end
    end
  end)

  it("reads times as the calendar has them", function()
    assert.equal(0, instant("1970-01-01T00:00:00.000Z"))
    assert.equal(951782400000, instant("2000-02-29T00:00:00.000Z"))
    assert.equal(1795265782087, instant("2026-11-21T12:56:22.087Z"))
    assert.is_nil(instant("now"))
    assert.is_nil(instant({}))
  end)

  it("says sizes and times in few words", function()
    assert.same({ "< 1 ms", "12 ms", "3.4 s", "2 min 05 s", "1 h 02 min" },
      { humanize.duration(0), humanize.duration(12), humanize.duration(3400), humanize.duration(125000),
        humanize.duration(3725000) })
    assert.same({ "1 byte", "1000 bytes", "1.5 KiB", "2.0 GiB" },
      { humanize.size(1), humanize.size(1000), humanize.size(1536), humanize.size(2 << 30) })
  end)

  it("takes a step for the turn before it", function()
    local called <const> = '{"name":"run_command","arguments":{"shell":"bad"}}'
    local exchange = '{"event":"model.exchange","reply":{"tool_calls":[' .. called .. "]}}"
    local function kept(...)
      local log = assert(file.memory())
      for _, line in ipairs { ... } do log:append { line } end
      return log
    end
    local entry = '{"index":0,"id":"step-1","type":"run_command","status":"success","started_at":"","duration_ms":0}'
    local read = journal(kept(
      '{"event":"job","job_id":"j","task_id":"t"}', exchange,
      '{"event":"step.started","index":0,"id":"step-1","type":"run_command","arguments":{"shell":"one"}}',
      '{"event":"step.finished","entry":' .. entry .. "}", exchange, exchange,
      '{"event":"step.started","index":1,"id":"step-2","type":"read_file"}'
    ), { job_id = "j", task_id = "t" })
    assert.same({ 1, 3 }, { read.started[1].turn, read.started[2].turn })
    assert.same({ shell = "one" }, read:start(1).arguments)
    assert.is_nil((journal(kept '{"event":"job","job_id":"k","task_id":"t"}', { job_id = "j", task_id = "t" })))
  end)
end)
