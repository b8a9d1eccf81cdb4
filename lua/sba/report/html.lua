-- SPDX-License-Identifier: Apache-2.0
-- Builds HTML in which nothing foreign is ever markup: every string that is given is text, and is escaped when its element
-- is made. There is no way to hand in markup but as an element made here, so that escaping cannot be forgotten.
--
--   local h = html.elements
--   h.p { class = "quiet", "says ", h.b { words }, condition and h.i { "so" } }
--
-- A child is a string, a number, an element or a list of children; false and nil are nothing. An attribute is a string or a
-- number; true stands alone, false and nil are nothing. Errors: raises for what is no child, and for an attribute that
-- would lead out of the page.

local printable = require "sba.util.printable"
local text = require "native.text"

local html = {}

---@class html.element list of pieces: strings that are HTML, and elements
local element = {}
element.__index = element

local entities <const> = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

-- Elements that have no end.
local void <const> = { meta = true, br = true }

-- What an attribute must look like where another value would fetch something, or do something.
local harmless <const> = { href = "^#[%w-]*$", style = "^[%w:;%.%%%s-]*$" }

--- Foreign bytes as HTML that shows them: what would act (control characters, changes of direction) is named in a box.
local function as_text(bytes)
  local safe = text.repair(bytes):gsub("[&<>\"']", entities)
  return (printable.replace(safe, '<b class="byte">%s</b>'))
end

local function as_attribute(name, value)
  value = tostring(value)
  local wanted = harmless[name]
  if wanted and not value:find(wanted) then error("an unsafe " .. name .. ": " .. value) end -- bounded: both are anchored
  return (printable.replace(text.repair(value):gsub("[&<>\"']", entities), "%s"))
end

local function add_attributes(pieces, content)
  local names = {}
  for name in pairs(content) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = content[name]
    assert(name:find("^%a[%w-]*$") and not name:find("^on"), name)
    if value == true then
      pieces[#pieces + 1] = " " .. name
    elseif value then
      pieces[#pieces + 1] = (' %s="%s"'):format(name, as_attribute(name, value))
    end
  end
end

local add_child

--- A list may have holes: where a condition was nil.
local function add_children(pieces, list)
  local last = 0
  for key in pairs(list) do
    if math.type(key) == "integer" then last = math.max(last, key) end
  end
  for i = 1, last do add_child(pieces, list[i]) end
end

function add_child(pieces, child)
  if not child then return end
  if type(child) == "string" then
    pieces[#pieces + 1] = as_text(child)
  elseif type(child) == "number" then
    pieces[#pieces + 1] = tostring(child)
  elseif getmetatable(child) == element then
    pieces[#pieces + 1] = child
  elseif type(child) == "table" then
    add_children(pieces, child)
  else
    error("no child of an element: " .. type(child))
  end
end

local function make(name, content)
  local pieces = setmetatable({ "<" .. name }, element)
  add_attributes(pieces, content)
  pieces[#pieces + 1] = ">"
  -- A line end right after the tag is not part of the text.
  if name == "pre" then pieces[#pieces + 1] = "\n" end
  if void[name] then return pieces end
  add_children(pieces, content)
  pieces[#pieces + 1] = "</" .. name .. ">"
  return pieces
end

---@type table<string, fun(content: table): html.element>
html.elements = setmetatable({}, {
  __index = function(elements, name)
    assert(name:find("^%l[%l%d]*$") and name ~= "script", name)
    elements[name] = function(content) return make(name, content) end
    return elements[name]
  end,
})

---A part of the page with its heading.
---@param title string
---@param ... any children
---@return html.element
function html.section(title, ...)
  local h = html.elements
  return h.section { ["aria-label"] = title, h.h2 { title }, ... }
end

local function flatten(node, parts)
  for _, piece in ipairs(node) do
    if type(piece) == "string" then parts[#parts + 1] = piece else flatten(piece, parts) end
  end
end

---A whole page as strings to be written one after the other. The page may load nothing and run nothing.
---@param title string
---@param style string CSS of ours: it alone is not escaped
---@param body html.element
---@return string[]
function html.document(title, style, body)
  assert(not style:find("<", 1, true), "CSS that would end its element")
  local h = html.elements
  local parts = { "<!doctype html>\n<html lang=\"en\"><head>" }
  flatten({
    h.meta { charset = "utf-8" },
    h.meta { ["http-equiv"] = "Content-Security-Policy", content = "default-src 'none'; style-src 'unsafe-inline'" },
    h.meta { name = "viewport", content = "width=device-width, initial-scale=1" },
    h.meta { name = "color-scheme", content = "light dark" },
    h.meta { name = "referrer", content = "no-referrer" },
    h.title { title },
    "<style>", style, "</style></head>\n", body, "</html>\n",
  }, parts)
  return parts
end

return html
