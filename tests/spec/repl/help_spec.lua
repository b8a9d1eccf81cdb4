-- SPDX-License-Identifier: Apache-2.0
local help = require "sba.repl.help"

describe("help", function()
  local function says(text, ...)
    for _, words in ipairs { ... } do assert.truthy(text:find(words, 1, true), text) end
  end

  it("says what is at hand", function()
    says(help.text(), "job(file)", "  read_file  ", "native: ", "workspace")
    says(help.text "no such type", "job(file)")
  end)

  it("says what a step type takes", function()
    says(help.text "run_command", "run_command: ", "  shell?  ")
    says(help.text "read_file", "  path  a non-empty string.", "  end_line?  ")
  end)
end)
