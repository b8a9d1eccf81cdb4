-- SPDX-License-Identifier: Apache-2.0
-- A secret is found in every encoding that a tool prints by itself; all other text stays as it is.

local secret = require "native.secret"
local text = require "native.text"

local function bytewise(format)
  return function(value) return (value:gsub(".", function(c) return format:format(c:byte()) end)) end
end

local function by_character(format)
  return function(value) return (value:gsub(utf8.charpattern, function(c) return format:format(utf8.codepoint(c)) end)) end
end

local function reserved(value) return (value:gsub("[^%w._~-]", bytewise "%%%02X")) end
local function json_escaped(value) return (value:gsub('[\\"]', "\\%0"):gsub("[\x80-\xFF]+", by_character "\\u%04x")) end

local encodings = {
  as_it_is = function(value) return value end,
  percent = bytewise "%%%02X", percent_lower = bytewise "%%%02x", url = reserved,
  json = json_escaped, json_slashes = function(value) return (json_escaped(value):gsub("/", "\\/")) end,
  json_unicode = by_character "\\u%04X",
}

local wraps = {
  standard = function(base64) return base64 end,
  url = function(base64) return (base64:gsub("%+", "-"):gsub("/", "_"):gsub("=", "")) end,
  lines = function(base64) return (base64:gsub(("."):rep(19), "%0\r\n  ")) end,
  lines_in_json = function(base64) return (base64:gsub(("."):rep(19), "%0\\n")) end,
  in_url = reserved,
}

-- No value is part of another's encoding.
local secrets = { "s3cr3t", "pä55/wörd", [[back\slash"quote/50%2_%]], "sba-Zq83+Lm/0pWx=_7rTgB~hy2K", ("a"):rep(60), "task.sig~ü" }

describe("native.secret", function()
  it("changes nothing if no secret is known", function()
    assert.is_false(secret.is_known())
    assert.is_false(secret.add "words")
    assert.is_false(secret.is_known())
    for _, value in ipairs(secrets) do assert.are.equal(value, secret.redact(value)) end
    for _, value in ipairs(secrets) do assert.is_true(secret.add(value)) end
  end)

  it("finds a secret and nothing around it", function()
    for _, value in ipairs(secrets) do
      for name, encode in pairs(encodings) do
        assert.are.equal("before [redacted] after", secret.redact("before " .. encode(value) .. " after"), name .. " of " .. value)
      end
    end
    assert.are.equal("[redacted][redacted]", secret.redact "s3cr3ts3cr3t")
    assert.are.equal("\0[redacted]\xC3", secret.redact "\0s3cr3t\xC3")
  end)

  it("finds a secret in base64 of a text that holds it", function()
    for _, value in ipairs(secrets) do
      for before = 0, 5 do
        for name, wrap in pairs(wraps) do
          local written = wrap(text.base64_encode(("\x01\xFE\x03\xFC\x05"):sub(1, before) .. value .. "!!!"))
          local clean = secret.redact(written)
          assert.is_truthy(clean:find("[redacted]", 1, true), name .. ": " .. clean)
          assert(#clean <= #written - #value + #"[redacted]" , name .. ": " .. clean)
        end
      end
    end
  end)

  it("finds a part of a secret only at an end that was cut", function()
    assert.are.equal("x s3cr", secret.redact "x s3cr")
    assert.are.equal("x [redacted]", secret.redact("x s3cr", "end"))
    assert.are.equal("x s3cr", secret.redact("x s3cr", "start"))
    assert.are.equal("[redacted] x", secret.redact("0pWx=_7rTgB~hy2K x", "start"))
    assert.are.equal("[redacted]", secret.redact("Zq83+Lm", "both"))
    assert.are.equal("x s3c", secret.redact("x s3c", "end"))
  end)

  it("leaves all other text as it is", function()
    math.randomseed(20261121)
    for _ = 1, 2000 do
      local bytes = {}
      for i = 1, math.random(0, 200) do bytes[i] = string.char(math.random(0, 255)) end
      local random = table.concat(bytes)
      assert.are.equal(random, secret.redact(random))
    end
    for _, other in ipairs { "s3cr3", "S3CR3T", "task", "\\u0073\\u0033cr", "czNjcjN", "%73%33" } do
      assert.are.equal(other, secret.redact(other))
    end
  end)
end)
