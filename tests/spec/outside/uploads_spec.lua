-- SPDX-License-Identifier: Apache-2.0
local uploads = require "sba.outside.uploads"
local json = require "sba.util.json"
local tool_result = require "sba.gateway.tool_result"

local function of_mcp(text) return uploads.reference(tool_result.of_mcp(json.decode(text))) end
local function of_plain(text) return uploads.reference(tool_result.of_plain(json.decode(text))) end

describe("uploads.reference", function()
  it("finds a field of the structure, further in too, sure names before likely ones", function()
    for text, wanted in pairs {
      ['{"ref":"a"}'] = "a", ['{"artifact":{"artifact_id":"b"}}'] = "b", ['{"result":{"artifact":{"uri":"c"}}}'] = "c",
      ['{"id":"request-7","artifact":{"ref":"d"}}'] = "d", ['{"id":"e"}'] = "e", ['{"ref":"","url":"f"}'] = "f",
    } do
      assert.equal(wanted, of_plain(text), text)
      assert.equal(wanted, of_mcp('{"content":[],"structuredContent":' .. text .. "}"), text)
      assert.equal(wanted, of_mcp(json.encode { content = json.array { { type = "text", text = text } } }), text)
    end
  end)

  it("finds a link, a word, and a word as JSON", function()
    for wanted, blocks in pairs {
      ["art://1"] = '{"type":"text","text":"stored as"},{"type":"resource_link","uri":"art://1"}',
      ["art-2"] = '{"type":"text","text":" art-2\\n"}', ["art-3"] = '{"type":"text","text":"\\"art-3\\""}',
    } do assert.equal(wanted, of_mcp('{"content":[' .. blocks .. "]}")) end
    assert.equal("art-4", of_plain '"art-4"')
  end)

  it("takes nothing else for one", function()
    for _, text in ipairs {
      '{}', '{"ok":true}', '{"ref":7}', '{"ref":null}', '[{"ref":"a"}]', '"it was stored"', '{"ref":["a"]}',
    } do assert.is_nil(of_plain(text), text) end
    assert.is_nil(of_mcp '{"content":[7,{"type":"resource_link","uri":7}]}')
    assert.is_nil(of_plain('{"ref":"' .. ("x"):rep(4097) .. '"}'))
  end)
end)
