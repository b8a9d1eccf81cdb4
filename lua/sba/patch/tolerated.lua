-- SPDX-License-Identifier: Apache-2.0
-- The names of what is tolerated in an edit, in the order in which they are told.

local tolerated = {
  replaced = { "trailing_blanks", "line_ends", "final_newline", "indentation" },
  file = { "no_git_line", "no_line_numbers", "blank_lines", "trailing_blanks", "line_ends", "final_newline", "indentation" },
  diff = { "code_fence", "prose", "begin_patch", "bare_context" },
}

---@param ... table<string, true>
---@return string[]? names nil: there are none
function tolerated.list(...)
  local found = {}
  for _, names in ipairs { tolerated.file, tolerated.diff } do
    for _, name in ipairs(names) do
      for _, set in ipairs { ... } do
        if set[name] and found[#found] ~= name then found[#found + 1] = name end
      end
    end
  end
  return found[1] and found or nil
end

---"tolerated: trailing blanks, line ends"
---@param names string[]
---@return string
function tolerated.words(names) return "tolerated: " .. table.concat(names, ", "):gsub("_", " ") end

return tolerated
