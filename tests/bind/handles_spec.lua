-- SPDX-License-Identifier: Apache-2.0
-- A handle that is closed says so, whatever is called, and takes nothing with it that others use.
local edit = require "native.edit"
local file = require "native.file"
local http = require "native.http"
local scratch = require "scratch"
local search = require "native.search"
local workspace = require "native.workspace"

local here = scratch()
local REFUSED <const> = "http://127.0.0.1:1/"

local function root() return assert(workspace.open(here.path)) end
local function request(client) return assert(client:open { method = "GET", url = REFUSED }) end
local function snapshot(of) return assert(of:snapshot { directory = here.path, most_bytes = 100 }) end

-- How each type of handle is made, by the name of its metatable.
local makers <const> = {
  ["native.root"] = root,
  ["native.opened"] = function()
    here:put("a", "text")
    return assert(root():open "a")
  end,
  ["native.walk"] = function() return assert(root():walk(".", {})) end,
  ["native.snapshot"] = function() return snapshot(root()) end,
  ["native.edit.hunks"] = function() return edit.hunks "@@ -1 +1 @@\n-a\n+b\n" end,
  ["native.search.regex"] = function() return assert(search.compile "a") end,
  ["native.file.log"] = function() return assert(file.append(here.path .. "/log")) end,
  ["native.http.client"] = function() return assert(http.client {}) end,
  ["native.http.exchange"] = function() return request(assert(http.client {})) end,
}

local function close(handle) getmetatable(handle).__close(handle) end

describe("a closed handle", function()
  for name, make in pairs(makers) do
    it("of " .. name .. " says so", function()
      local handle = make()
      assert.equal(name, getmetatable(handle).__name)
      close(handle)
      close(handle)
      for method, call in pairs(getmetatable(handle).__index) do
        if method ~= "close" then
          local ok, why = pcall(call, handle)
          assert.is_false(ok, method)
          assert.matches("closed", why, 1, true)
        end
      end
      assert.has_error(function() here.root:read(handle) end)
    end)
  end

  it("has a maker here for each type with methods", function()
    for name, value in pairs(debug.getregistry()) do
      local methods = type(name) == "string" and name:find "^native%." and type(value) == "table" and value.__index
      if methods then assert.is_function(makers[name], name) end
    end
  end)
end)

describe("what uses a handle that is closed", function()
  it("is a walk or a snapshot of a directory", function()
    local directory = root()
    local walk, taken = assert(directory:walk(".", {})), snapshot(directory)
    close(directory)
    assert.has_error(function() taken:changes() end)
    assert.is_table(walk:next()) -- it has a descriptor of its own
    close(walk)
    close(taken)
  end)

  it("is an exchange of a client, which goes on", function()
    local client = assert(http.client {})
    local exchange = request(client)
    close(client)
    local status, failure = exchange:status()
    assert.same({ nil, "connection_refused" }, { status, failure.code })
    assert.has_error(function() client:open { method = "GET", url = REFUSED } end)
    close(exchange)
  end)
end)
