-- SPDX-License-Identifier: Apache-2.0
-- A secret is found however it is written and wherever it is cut; everything else stays as it is.

local json = require "sba.util.json"
local secret = require "native.secret"
local text = require "native.text"

local MARK = "[redacted]"
local base64 = text.base64_encode

local function percent(format)
  return function(bytes)
    return (bytes:gsub(".", function(c) return format:format(c:byte()) end))
  end
end

--- Some of the characters only.
local function partly(encode)
  return function(bytes)
    return (bytes:gsub("...", function(three) return three:sub(1, 2) .. encode(three:sub(3)) end))
  end
end

local function reserved(bytes)
  return (bytes:gsub("[^%w._~-]", percent "%%%02X"))
end

--- As in a JSON string; not by json.encode, which redacts.
local function quoted(bytes)
  return (bytes:gsub('[\\"]', "\\%0"):gsub("\n", "\\n"):gsub("\r", "\\r"))
end

local ways = {
  raw = function(bytes) return bytes end,
  percent = percent "%%%02X", lower_percent = percent "%%%02x", url = reserved, partly_percent = partly(percent "%%%02X"),
  percent_twice = function(bytes) return reserved(percent "%%%02X" (bytes)) end,
  unicode = percent "\\u%04X", lower_unicode = percent "\\u%04x", partly_unicode = partly(percent "\\u%04x"),
  unicode_in_json = function(bytes) return quoted(percent "\\u%04x" (bytes)) end,
  json = quoted, json_in_json = function(bytes) return quoted(quoted(bytes)) end,
  pointer = function(bytes) return (bytes:gsub("~", "~0"):gsub("/", "~1")) end,
  slashes = function(bytes) return (quoted(bytes):gsub("/", "\\/")) end,
}

local function url_alphabet(encoded) return (encoded:gsub("%+", "-"):gsub("/", "_"):gsub("=", "")) end

local of_base64 = {
  standard = function(encoded) return encoded end,
  url = url_alphabet,
  wrapped = function(encoded) return (encoded:gsub(("."):rep(19), "%0\n")) end,
  wrapped_crlf = function(encoded) return (encoded:gsub(("."):rep(19), "%0\r\n  ")) end,
  wrapped_json = function(encoded) return quoted(encoded:gsub(("."):rep(19), "%0\n")) end,
  in_url = function(encoded) return reserved(encoded) end,
  slashes = function(encoded) return (encoded:gsub("/", "\\/")) end,
}

local random = math.random
math.randomseed(20261121)

local PRINTABLE <const> = {}
for byte = 0x21, 0x7E do
  local character = string.char(byte)
  -- Backslashes are not counted, and dots are taken for an ellipsis: they have secrets of their own below.
  if character ~= "\\" and character ~= "." then PRINTABLE[#PRINTABLE + 1] = character end
end

local function random_secret(size)
  local characters = {}
  for i = 1, size do characters[i] = PRINTABLE[random(#PRINTABLE)] end
  return table.concat(characters)
end

local function random_bytes(size)
  local bytes = {}
  for i = 1, size do bytes[i] = string.char(random(0, 255)) end
  return table.concat(bytes)
end

-- Secrets are never forgotten, so that there must not be too many: each takes time.
local secrets = {}
for size = secret.SHORTEST, 40, 3 do secrets[#secrets + 1] = random_secret(size) end
secrets[#secrets + 1] = [[back\slash"quote/50%2_%]]
secrets[#secrets + 1] = "Bearer.eyJhbGciOiJIUzI1NiJ9." .. random_secret(700)
secrets[#secrets + 1] = ("a"):rep(60)

describe("native.secret", function()
  it("costs nothing and changes nothing where no secret is known", function()
    assert.is_false(secret.is_known())
    for _, value in ipairs(secrets) do assert.are.equal(value, secret.redact(value)) end
  end)

  it("takes no secret that is part of ordinary words", function()
    assert.is_false(secret.add "words")
    assert.is_false(secret.is_known())
    for _, value in ipairs(secrets) do assert.is_true(secret.add(value)) end
    assert.is_true(secret.is_known())
  end)

  it("finds a secret as characters, escaped in whole or in part", function()
    for _, value in ipairs(secrets) do
      for way, encode in pairs(ways) do
        local written = encode(value)
        local clean = secret.redact("before: " .. written .. " and after")
        assert(clean:find(MARK, 1, true) and not clean:find(value, 1, true), way .. ": " .. clean)
        assert.is_truthy(clean:find("^before: .* and after$"), way .. ": " .. clean)
        assert(#clean <= #"before:  and after" + #MARK + #written - #ways.raw(value) + 8, way .. ": " .. clean)
      end
    end
  end)

  it("finds nothing but the secret", function()
    local value = secrets[5]
    for _, around in ipairs { { "", "" }, { "x", "" }, { "", "\n" }, { "a=", ";b" }, { "\0\255", "\xC3" }, { value, "" } } do
      assert.are.equal(around[1]:gsub("^.......+$", MARK) .. MARK .. around[2], secret.redact(around[1] .. value .. around[2]))
    end
  end)

  it("finds a secret in base64 of any text that holds it", function()
    for _, value in ipairs(secrets) do
      for before = 0, 5 do
        local encoded = base64(random_bytes(before) .. value .. random_bytes(random(0, 4)))
        for way, write in pairs(of_base64) do
          local written = write(encoded)
          local clean = secret.redact(written)
          assert(clean:find(MARK, 1, true), way .. ": " .. clean)
          -- What is left decodes to nothing of it.
          assert(#clean - #MARK <= #written - #value, way .. ": " .. clean)
        end
      end
    end
  end)

  it("finds what a cut leaves of a secret", function()
    for _, secret_value in ipairs(secrets) do
      local value = secret_value:gsub("\\", "")
      local telling = math.min(8, math.max(secret.SHORTEST, (#secret_value + 1) // 2))
      for size = telling, #value - 1, math.max(1, #value // 9) do
        for way, encode in pairs { raw = ways.raw, percent = ways.percent, unicode = ways.lower_unicode } do
          local head, tail = "text " .. encode(value:sub(1, size)), encode(value:sub(-size)) .. " text"
          assert.are.equal("text " .. MARK, secret.redact(head), way)
          assert.are.equal(MARK .. " text", secret.redact(tail), way)
          assert.are.equal("text " .. MARK .. "... text", secret.redact(head .. "... text"), way)
          assert.are.equal("text " .. MARK .. " text", secret.redact("text …" .. tail), way)
          assert.are.equal("text " .. MARK .. "\n[... 5 bytes left out " .. MARK .. " text",
            secret.redact(head .. "\n[... 5 bytes left out ...]\n" .. tail), way)
        end
        assert.are.equal(MARK, secret.redact(value:sub(2, size + 1)))
      end
    end
  end)

  it("finds a secret that is cut inside an escape", function()
    local value = secrets[#secrets - 4]
    for way, unit in pairs { percent = 3, unicode = 6 } do
      local written = ways[way](value)
      for cut = 1, unit do
        assert.are.equal("text " .. MARK, secret.redact("text " .. written:sub(1, -cut)), way)
        assert.are.equal(MARK .. " text", secret.redact(written:sub(cut) .. " text"), way)
      end
    end
    local encoded = base64("user:" .. value)
    for cut = 1, 5 do assert.is_truthy(secret.redact(encoded:sub(1, -cut)):find(MARK, 1, true)) end
  end)

  it("leaves every other text as it is", function()
    for _ = 1, 2000 do
      local bytes = random_bytes(random(0, 200))
      assert.are.equal(bytes, secret.redact(bytes))
    end
    for _, value in ipairs(secrets) do
      if #value > 8 then
        local shorter = value:sub(1, 5)
        assert.are.equal("ends with " .. shorter, secret.redact("ends with " .. shorter))
        assert.are.equal("holds " .. value:sub(1, #value - 1) .. "\1.", secret.redact("holds " .. value:sub(1, #value - 1) .. "\1."))
      end
    end
  end)

  it("redacts text of any size at once or twice alike", function()
    local pieces = {}
    for i = 1, 400 do pieces[i] = random_bytes(random(0, 50)) .. (i % 3 == 0 and secrets[i % #secrets + 1] or "") end
    local clean = secret.redact(table.concat(pieces))
    assert.are.equal(clean, secret.redact(clean))
    for _, value in ipairs(secrets) do assert.is_nil(clean:find(value, 1, true)) end
  end)

  it("keeps secrets out of JSON, names and values, which stays JSON", function()
    local value = secrets[#secrets - 2]
    local written = json.encode({ plain = "n" .. value, ["key " .. value] = { value, 1 } }, { order = { "plain" } })
    assert.are.equal('{"plain":"n[redacted]","key [redacted]":["[redacted]",1]}', written)
  end)
end)
