-- SPDX-License-Identifier: Apache-2.0
-- Builds HTML in which nothing foreign is ever markup: every string is text, and is escaped when
-- its element is made. The only way to hand in markup is an element made here, so that escaping
-- cannot be forgotten.
--
--   local h = html.elements
--   h.p { class = "quiet", "says ", h.b { words }, condition and h.i { "so" } }
--
-- A child is a string, a number, an element or a list of children; false and nil are nothing. An
-- attribute is a string or a number; true stands alone, false and nil are nothing. Raises for what
-- is no child, and for an attribute that would lead out of the page. A text of megabytes is shown
-- by its head and tail.

local excerpt = require "sba.util.excerpt"
local printable = require "sba.util.printable"
local text = require "native.text"

local html = {}

local LONGEST <const>, LONGEST_ATTRIBUTE <const> = 1024 * 1024, 4096 -- bytes that are shown
-- Bytes of an element that is kept as one string.
local SMALL <const> = 4096

---@class html.element its markup, in strings: what is large is not copied into each element around it
local element = {}

local function marked(markup) return setmetatable({ markup }, element) end

local function joined(parts)
  local size = 0
  for _, part in ipairs(parts) do size = size + #part end
  if size <= SMALL then parts = { table.concat(parts) } end
  return setmetatable(parts, element)
end

local entities <const> = {
  ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;",
}

local void <const> = { meta = true, br = true } -- elements that have no end

--- What would act (control characters, changes of direction) is named in that form.
local function as_text(bytes, form)
  local safe = excerpt.of(text.repair(bytes), LONGEST):gsub("[&<>\"']", entities)
  return (printable.replace(safe, form))
end

--- A link leads nowhere but within the page.
local function attribute(name, value)
  assert(name:find("^%a[%w-]*$") and not name:find("^on") and name ~= "style", name)
  if value == true then return " " .. name end
  value = tostring(value)
  assert(name ~= "href" or value:find("^#[%w-]*$"), value)
  return (' %s="%s"'):format(name, as_text(text.cut(text.repair(value), LONGEST_ATTRIBUTE), "%s"))
end

local function add_attributes(parts, content)
  local names = {}
  for name, value in pairs(content) do
    if type(name) == "string" and value then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do parts[#parts + 1] = attribute(name, content[name]) end
end

local add_child

--- The list may have holes, where a condition was nil.
local function add_children(parts, list)
  local last = 0
  for key in pairs(list) do
    if math.type(key) == "integer" then last = math.max(last, key) end
  end
  for i = 1, last do add_child(parts, list[i]) end
end

function add_child(parts, child)
  if not child then return end
  if type(child) == "string" then
    parts[#parts + 1] = as_text(child, '<b class="byte">%s</b>')
  elseif type(child) == "number" then
    parts[#parts + 1] = tostring(child)
  elseif getmetatable(child) == element then
    table.move(child, 1, #child, #parts + 1, parts)
  elseif type(child) == "table" then
    add_children(parts, child)
  else
    error("no child of an element: " .. type(child))
  end
end

local function make(name, content)
  local parts = { "<" .. name }
  add_attributes(parts, content)
  -- A line end right after <pre> is not part of its text.
  parts[#parts + 1] = name == "pre" and ">\n" or ">"
  if not void[name] then
    add_children(parts, content)
    parts[#parts + 1] = "</" .. name .. ">"
  end
  return joined(parts)
end

---@type table<string, fun(content: table): html.element>
html.elements = setmetatable({}, {
  __index = function(elements, name)
    assert(name:find("^%l[%l%d]*$") and name ~= "script", name)
    elements[name] = function(content) return make(name, content) end
    return elements[name]
  end,
})

---A title, in which browsers would show markup as such.
---@param words string
---@return html.element
function html.title(words) return marked("<title>" .. as_text(words, "%s") .. "</title>") end

---@param title string
---@param ... any children
---@return html.element
function html.section(title, ...)
  local h = html.elements
  return h.section { ["aria-label"] = title, h.h2 { title }, ... }
end

---A page that may load nothing and run nothing.
---@param title string
---@param style string CSS of ours, which alone is not escaped
---@param body html.element
---@return string[] parts
function html.document(title, style, body)
  assert(not style:find("<", 1, true), "CSS that would end its element")
  local h, policy = html.elements, "default-src 'none'; style-src 'unsafe-inline'"
  local head = h.head {
    h.meta { charset = "utf-8" },
    h.meta { ["http-equiv"] = "Content-Security-Policy", content = policy },
    h.meta { name = "viewport", content = "width=device-width, initial-scale=1" },
    h.meta { name = "color-scheme", content = "light dark" },
    h.meta { name = "referrer", content = "no-referrer" },
    html.title(title), marked("<style>" .. style .. "</style>"),
  }
  local parts = { "<!doctype html>\n<html lang=\"en\">" }
  table.move(head, 1, #head, #parts + 1, parts)
  parts[#parts + 1] = "\n"
  table.move(body, 1, #body, #parts + 1, parts)
  parts[#parts + 1] = "</html>\n"
  return parts
end

return html
