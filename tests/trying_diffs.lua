-- SPDX-License-Identifier: Apache-2.0
-- For specs of patches: applies a diff to one file of a scratch workspace.
local apply = require "sba.patch.apply"
local assert = require "luassert"
local diffs = require "sba.patch.diff"
local scratch = require "scratch"

local try = {}

local here = scratch()
try.here = here

---Applies a diff to the file x, which is absent where the diff creates it from nothing.
function try.attempt(diff, bytes)
  here:shell "rm -f x y"
  local creates = diff:find "/dev/null" or diff:find "Add File" or diff:find "%(nonexistent%)"
  if bytes ~= "" or not creates then here:put("x", bytes) end
  local parsed, failure = diffs.parse(diff)
  if not parsed then return nil, failure end
  return apply(here.root, { diff = diff })
end

---Fails unless the diff makes wanted of bytes. Sets try.entry and try.tolerated.
function try.gives(diff, bytes, wanted)
  local entries, more = try.attempt(diff, bytes)
  assert.is_nil(not entries and more.message or nil)
  try.entry, try.tolerated = entries[1], more
  assert.equal(wanted, here:content(try.entry.path))
end

---The same, with what was tolerated.
function try.takes(diff, bytes, wanted, ...)
  try.gives(diff, bytes, wanted)
  local names = {}
  for _, overlooked in ipairs { try.entry.tolerated, try.tolerated } do
    for name in pairs(overlooked) do names[#names + 1] = name end
  end
  table.sort(names)
  local expected = { ... }
  table.sort(expected)
  assert.same(expected, names)
end

function try.refuses(diff, bytes, words)
  local entries, failure = try.attempt(diff, bytes)
  assert.is_nil(entries)
  assert.matches(words, failure.code .. ": " .. failure.message, 1, true)
end

function try.names_are(diff, old, new)
  local file = assert(diffs.parse(diff)).files[1]
  assert.same({ old, new }, { file.from or file.old_path or "-", file.to or file.new_path or "-" })
end

return try
