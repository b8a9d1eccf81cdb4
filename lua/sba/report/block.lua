-- SPDX-License-Identifier: Apache-2.0
-- A block of foreign text: bounded, head and tail with the count left out; a diff is coloured.

local diff = require "sba.report.diff"
local excerpt = require "sba.util.excerpt"
local h = require "sba.report.html".elements

---@param label? string what it is
---@param bytes string UTF-8
---@param limit integer bytes that are shown
---@param as_diff? boolean it is a diff, whatever it begins with
---@return table children
return function(label, bytes, limit, as_diff)
  local shown = excerpt.of(bytes, limit)
  return {
    label and h.p { class = "label", label },
    h.pre { (as_diff or diff.is_one(bytes)) and diff.lines(shown) or shown },
  }
end
