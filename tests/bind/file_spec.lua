-- SPDX-License-Identifier: Apache-2.0
local file = require "native.file"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local native_secret = require "native.secret"
local scratch = require "scratch"
local workspace = require "native.workspace"

local PIECE <const> = 64 * 1024 -- bytes, as long_text.c reads them

describe("native.file", function()
  local here = scratch()

  local function failure_code(value, failure)
    assert.is_nil(value)
    return failure.code
  end

  it("replaces a file by parts and reads it back", function()
    assert.are.same({ "renamed", 7 }, { file.replace(here.path .. "/a", { "one", "", "two\0" }) })
    assert.are.equal("onetwo\0", file.read(here.path .. "/a", 7))
    assert.are.equal("too_large", failure_code(file.read(here.path .. "/a", 6)))
    assert.are.equal("renamed", file.replace(here.path .. "/a", {}, { durable = false, mode = 384 }))
    assert.are.equal("", file.read(here.path .. "/a", 0))
    assert.are.equal("not_found", failure_code(file.replace(here.path .. "/b/c", { "" })))
  end)

  it("removes a directory in the time that it has, and the first bytes of an opened file are read", function()
    local path = assert(file.make_temporary_directory(here.path))
    local root <close> = assert(workspace.open(path))
    assert(root:write("a/b", ("x"):rep(5000)))
    local opened <close> = assert(root:open "a/b")
    assert.are.same({ 4096, 5000, 7 }, { #opened:read(), #opened:read(1 << 20), #opened:read(7) })
    assert.has_error(function() opened:read(0) end)
    assert.are.equal("io_error", failure_code(file.remove_directory(path, 0)))
    assert.are.equal(5000, root:stat("a/b").size_bytes)
    assert.is_true(file.remove_directory(path, 60))
    assert.are.equal("not_found", failure_code(workspace.open(path)))
  end)

  it("takes spans of a log among the parts", function()
    local log <close> = assert(file.append(here.path .. "/log"))
    assert.are.same({ 0, 6 }, { log:append { "first" } })
    assert.are.same({ 6, 19 }, { log:append { "<", 0, 5, 2, 3, ">", "!!", from = log } })
    assert.are.equal("<firstrst>!!", log:read(6, 12))
    assert.are.equal("changed", failure_code(log:read(10, 100)))
    assert.are.equal("changed", failure_code(file.replace(here.path .. "/copy", { 10, 100, from = log })))
    assert.has_error(function() file.replace(here.path .. "/copy", { 10, from = log }) end)
    assert.has_error(function() file.replace(here.path .. "/copy", { 10, 2 }) end)
    log:close()
    assert.has_error(function() file.replace(here.path .. "/copy", { 0, 2, from = log }) end)
  end)

  local function opened(bytes)
    file.replace(here.path .. "/long", { bytes })
    return assert(assert(workspace.open(here.path)):open "long")
  end

  -- What the log has of a text, and its measure.
  local function appended(bytes, range)
    range.file, range.size = opened(bytes), range.size or #bytes
    local log <close> = file.memory()
    log:cut(0)
    assert(file.append_text(range, log))
    local _, all = log:append {}
    return log:read(0, all - 1), file.measure_text(range)
  end

  it("writes a long text as it stands in JSON, redacted wherever its pieces end", function()
    local secret = "correct-horse-battery\u{2713}"
    native_secret.add(secret)
    for before = PIECE - #secret - 4, PIECE + 1 do
      local text = ("x"):rep(before)
      local whole = text .. secret .. "\xFF\n\0\"\u{20AC}"
      assert.are.equal(text .. "[redacted]\u{FFFD}\\n\\u0000\\\"\u{20AC}", (appended(whole, {})))
    end
  end)

  it("tells the size of a long text and whether it is UTF-8", function()
    local text = ("\u{20AC}"):rep(PIECE)
    assert.are.same({ text, 3 * PIECE, true, 0 }, { appended(text, {}) })
    local inner = text:sub(4, -4)
    assert.are.same({ inner, #inner, true, 0 }, { appended(text, { offset = 3, size = #inner }) })
    assert.are.same({ text .. "\u{FFFD}", 3 * PIECE + 1, true, 1 }, { appended(text .. "\xE2", {}) })
    assert.are.same({ "ab", 2, true, 0 }, { appended("ab", { size = 9 }) }) -- a file that became shorter
    assert.are.same({ "\u{FFFD}b", 2, false, 0 }, { appended("\xFFb", {}) })
    assert.are.same({ "[redacted] x [redacted]", 23, true, 0 },
      { appended("-battery\u{2713} x correct-", { cut = "both" }) })
  end)

  it("writes a long text as base64, and up to a bound", function()
    local native_text = require "native.text"
    local bytes = ("\xFF\0"):rep(PIECE) .. "x"
    for most = 0, 4 do
      local whole, cut, euro = bytes, (bytes .. "yz"):sub(1, PIECE + most), "\u{20AC}"
      assert.are.equal(native_text.base64_encode(whole), (appended(whole, { encoding = "base64" })))
      assert.are.equal(native_text.base64_encode(cut), (appended(whole .. "yz", { encoding = "base64", most = #cut })))
      assert.are.equal(euro:rep((PIECE + most) // 3), (appended(euro:rep(PIECE), { most = PIECE + most })))
    end
  end)

  it("raises for misuse", function()
    assert.has_error(function() file.append_text {} end)
    assert.has_error(function() file.append_text { bytes = "x" } end)
    assert.has_error(function() file.measure_text { bytes = "x", encoding = "hex" } end)
    assert.has_error(function() file.replace(here.path .. "/a", { 1 }) end)
    assert.has_error(function() file.replace(here.path .. "/a", { "x" }, { durable = 1 }) end)
    assert.has_error(function() file.replace(here.path .. "/a", { "x" }, { durably = true }) end)
    assert.has_error(function() file.read("a\0b", 1) end)
    assert.has_error(function() file.read("a", -1) end)
    assert.has_error(function() file.write(1, { "" }, -1) end)
    local log = assert(file.append(here.path .. "/log"))
    log:close()
    log:close()
    assert.has_error(function() log:append { "after the end" } end)
    assert.are.equal("not_found", failure_code(file.read(here.path .. "/a", 1)))
  end)

  it("counts what a reader took", function()
    local all, written = file.write(2, { "" }, 0)
    assert.is_true(all)
    assert.are.equal(0, written)
    all, written = file.write(-1, { "lost" }, 0)
    assert.is_false(all)
    assert.are.equal(0, written)
  end)

  it("knows what is no terminal", function()
    local handle = assert(io.popen("true"))
    assert.is_nil(file.terminal_columns(-1))
    handle:close()
  end)
end)

describe("native.identity", function()
  it("takes secrets out of the environment", function()
    local environment = identity.environment {}
    assert.are.equal("string", type(environment.PATH))
    assert.are.equal(os.getenv "PATH", environment.PATH)
    local path = environment.PATH
    assert.are.equal(path, identity.environment { "PATH", "NO_SUCH_VARIABLE" }.PATH)
    assert.is_nil(os.getenv "PATH")
    assert.is_nil(identity.environment {}.PATH)
  end)
end)

describe("native.interrupt", function()
  it("writes times as RFC 3339", function()
    assert.are.equal("1970-01-01T00:00:00.000Z", interrupt.timestamp(0))
    assert.are.equal("2026-02-28T23:59:59.007Z", interrupt.timestamp(1772323199007))
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", interrupt.timestamp())
    assert.has_error(function() interrupt.timestamp(-1) end)
    assert.is_true(math.abs(interrupt.wall() / 1000 - os.time()) < 2)
  end)
end)
