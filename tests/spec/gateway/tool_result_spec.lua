-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local tool_result = require "sba.gateway.tool_result"

local function of(content, structured)
  return tool_result.of_mcp(json.decode(('{"content":[%s],"structuredContent":%s}'):format(content, structured)))
end

local function text(words) return json.encode { type = "text", text = words } end
local function texts(...) return text(...) .. "," .. text(select(2, ...)) end

describe("structured content", function()
  it("is kept once where the text says the same", function()
    for _, case in ipairs {
      { text '{"a": [1, null], "b": {}}', '{"b":{},"a":[1,null]}' }, -- TypeScript SDK
      -- FastMCP
      { text "words", '{"result":"words"}' }, { text "7", '{"result":7}' }, { text "[1,2]", '{"result":[1,2]}' },
      { texts("x", "y"), '{"result":["x","y"]}' }, { texts("1", "2"), '{"result":[1,2]}' }, -- Python SDK
      { text "hello\n", '{"content":"hello\\n"}' }, -- server-filesystem
      { text '[{"name":"a"}]', '{"entities":[{"name":"a"}]}' }, -- server-memory
    } do
      local answer = of(case[1], case[2])
      assert.is_nil(answer.structured, case[2])
      assert.is_not.equal("", answer.content)
    end
  end)

  it("is left out where it is the content itself", function() -- server-filesystem, read_media_file
    local image = '{"type":"image","mimeType":"image/png","data":"aGVsbG8="}'
    local answer = of(image, '{"content":[' .. image .. "]}")
    assert.equal("[image, image/png, 5 bytes]", answer.content)
    assert.is_nil(answer.structured)
  end)

  it("is kept where it says more", function()
    for _, case in ipairs {
      { text "2 rows", '{"rows":[1,2]}' }, { text '{"a":1}', '{"a":1,"b":2}' }, { text "7", '{"result":8}' },
      { text "x", '{"result":["x","y"]}' }, { texts("x", "y"), '{"result":["x","z"]}' }, { text "{}", "[]" },
    } do
      assert.is_not_nil(of(case[1], case[2]).structured, case[2])
    end
  end)

  it("is kept once where there is no text, and where a plain answer is all there is", function()
    local value = { a = json.array { 1, json.null }, b = {} }
    for _, answer in ipairs { of("", '{"a":[1,null],"b":{}}'), tool_result.of_plain(value) } do
      assert.same({ content = '{"a":[1,null],"b":{}}', is_error = false, parts = json.array {} }, answer)
    end
    assert.equal("words", tool_result.of_plain("words").content)
    assert.is_nil(tool_result.of_plain("words").structured)
  end)

  it("is shown without base64 in a plain answer", function()
    local answer = tool_result.of_plain { content_bytes_base64 = ("iVB0"):rep(1000) }
    assert.equal('{"content_bytes_base64":"[base64, 3000 bytes]"}', answer.content)
    assert.equal(4000, #answer.structured.content_bytes_base64)
  end)

  it("is shown without base64 where there is no text", function()
    local data = ("iVB0"):rep(1000)
    local image = json.encode { type = "image", mimeType = "image/png", data = data }
    local answer = of(image, '{"result":{"data":"' .. data .. '","n":1}}')
    assert.equal('[image, image/png, 3000 bytes]\n{"result":{"data":"[base64, 3000 bytes]","n":1}}', answer.content)
    assert.equal(data, answer.structured.result.data)
  end)
end)
