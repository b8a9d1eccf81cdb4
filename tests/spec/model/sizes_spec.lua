-- SPDX-License-Identifier: Apache-2.0
local sizes = require "sba.model.sizes"

describe("the first number of each form's example", function()
  for _, form in ipairs(sizes.forms) do
    it(("is the %s: %s"):format(form.kind, form.example), function()
      local first = sizes.numbers(form.example)[1]
      assert.equal(first.value, sizes.of(form.example)[form.kind])
    end)
  end
end)
