-- SPDX-License-Identifier: Apache-2.0
local html_page = require "sba.util.html_page"

describe("a web page where an answer was wanted", function()
  it("is told by its title", function()
    assert.are.equal("an HTML page (502 Bad Gateway)", html_page "<html>\r\n<head><title>502 Bad Gateway</title></head>")
    assert.are.equal("an HTML page (a b)", html_page "\n<!DOCTYPE html><TITLE>\n a\nb </TITLE>")
  end)

  it("may have none", function()
    for _, body in ipairs { "<html></html>", "<title></title>", "<title>never ends", "<title>" .. ("<title>"):rep(9000) } do
      assert.are.equal("an HTML page", html_page(body))
    end
  end)

  it("neither fills nor steers a terminal", function()
    local words = html_page("<title>\27[2J" .. ("x"):rep(1000) .. "</title>")
    assert.is_nil(words:find "%c")
    assert.is_true(#words < 120)
  end)

  it("is not what other answers are", function()
    assert.is_nil(html_page '{"a": "<title>x</title>"}')
    assert.is_nil(html_page "")
  end)
end)
