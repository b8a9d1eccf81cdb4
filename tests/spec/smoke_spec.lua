-- SPDX-License-Identifier: Apache-2.0
describe("the host", function()
  it("finds no module outside the bundle", function()
    assert.is_nil(package.searchpath("sba.main", ""))
    assert.is_true(require("native.interrupt").now() > 0)
  end)
end)
