-- SPDX-License-Identifier: Apache-2.0
-- A secret is found in every encoding that a tool prints by itself; all other text stays as it is.

local secret = require "native.secret"
local text = require "native.text"

local function bytewise(format)
  return function(value) return (value:gsub(".", function(c) return format:format(c:byte()) end)) end
end

local function by_character(format)
  local function escaped(character) return format:format(utf8.codepoint(character)) end
  return function(value) return (value:gsub(utf8.charpattern, escaped)) end
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
local secrets = { "s3cr3t", "pä55/wörd", [[back\slash"quote/50%2_%]], "sba-Zq83+Lm/0pWx=_7rTgB~hy2K", ("a"):rep(60),
  "task.sig~ü" }

describe("native.secret", function()
  it("changes nothing if no secret is known", function()
    assert.is_false(secret.is_known())
    assert.is_false(secret.add "words")
    assert.is_false(secret.is_known())
    for _, value in ipairs(secrets) do assert.equal(value, secret.redact(value)) end
    for _, value in ipairs(secrets) do assert.is_true(secret.add(value)) end
  end)

  it("finds a secret and nothing around it", function()
    for _, value in ipairs(secrets) do
      for name, encode in pairs(encodings) do
        local redacted = secret.redact("before " .. encode(value) .. " after")
        assert.equal("before [redacted] after", redacted, name .. " of " .. value)
      end
    end
    assert.equal("[redacted][redacted]", secret.redact "s3cr3ts3cr3t")
    assert.equal("\0[redacted]\xC3", secret.redact "\0s3cr3t\xC3")
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
end)
