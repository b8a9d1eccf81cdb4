-- SPDX-License-Identifier: Apache-2.0
-- Build tool: the words of the modules, for help() at the prompt of --lua; the bytecode itself has no comments.
--
-- Of each file its first comment, and of each function and class the annotations above it. What comes out is the source of a
-- module that returns a list of entries { name=, of=, head=, text= }: name is that of a module, function ("sba.util.json.decode",
-- "native.root:read") or class; of is the module or class it belongs to, head what stands on the first line, text paragraphs.

local manual = {}

local function add_paragraph(paragraphs, line)
  local last = #paragraphs
  if line == "" then
    if last > 0 and paragraphs[last] ~= "" then paragraphs[last + 1] = "" end
  elseif last == 0 or paragraphs[last] == "" or paragraphs[last]:find("^ ") then
    paragraphs[last + 1] = line
  else
    paragraphs[last] = paragraphs[last] .. " " .. line
  end
end

local function text_of(paragraphs)
  while paragraphs[#paragraphs] == "" do paragraphs[#paragraphs] = nil end
  return table.concat(paragraphs, "\n")
end

--- How an annotation reads: "---@param path string below it" is "  path string below it".
local shown = {
  param = function(rest) return "  " .. rest end,
  field = function(rest) return "  " .. rest end,
  ["return"] = function(rest) return "  -> " .. rest end,
}

--- The words of a run of "---" lines, and the name of the class or alias that it declares.
local function read_block(lines)
  local paragraphs, class = {}, nil
  for _, line in ipairs(lines) do
    local tag, rest = line:match("^%-%-%-@(%a+)%s*(.*)$")
    if not tag then
      add_paragraph(paragraphs, (line:gsub("^%-%-%-? ?", "")))
    elseif shown[tag] then
      paragraphs[#paragraphs + 1] = shown[tag](rest)
    elseif tag == "class" or tag == "alias" then
      local name, words = rest:match("^(%S+)%s*(.*)$")
      class = class or name:gsub(":$", "")
      if words ~= "" then add_paragraph(paragraphs, words) end
    end
  end
  return text_of(paragraphs), class
end

local function lines_of(file)
  local lines = {}
  for line in io.lines(file) do lines[#lines + 1] = line end
  return lines
end

--- The comment that a file begins with, and the line after it.
local function read_header(lines)
  local paragraphs, at = {}, 1
  while lines[at] and lines[at]:find("^%-%-") and not lines[at]:find("^%-%-%-%-") do
    local line = lines[at]:gsub("^%-%- ?", "")
    if not line:find("^SPDX%-License") and not line:find("^%-@") then add_paragraph(paragraphs, line) end
    at = at + 1
  end
  return text_of(paragraphs), at
end

--- Adds what a file declares. owners: variable -> the module or class that its functions belong to.
local function read_declarations(entries, lines, at, owners)
  local block, class = {}, nil
  for i = at, #lines do
    local line = lines[i]
    if line:find("^%-%-%-[^%-]") or line == "---" or (#block > 0 and line:find("^%-%- ")) then
      block[#block + 1] = line
    else
      local text, declared = read_block(block)
      class = declared or class
      if declared then entries[#entries + 1] = { name = declared, of = "", head = declared, text = text } end
      local variable = line:match("^local ([%w_]+) = {}")
      if variable and class and not owners[variable] then owners[variable] = class end
      local owner, separator, name, parameters = line:match("^function ([%w_]+)([.:])([%w_]+)(%b())")
      if owner and owners[owner] then
        local whole = owners[owner] .. separator .. name
        entries[#entries + 1] = { name = whole, of = owners[owner], head = whole .. parameters, text = text }
      elseif line:find("^return function") and #block > 0 then
        local module = owners[""]
        entries[#entries + 1] = { name = module .. "()", of = module, head = module .. line:match("%b()"), text = text }
      end
      block = {}
    end
  end
end

--- The variable that a module returns.
local function returned(lines)
  for i = #lines, 1, -1 do
    local variable = lines[i]:match("^return ([%w_]+)$")
    if variable then return variable end
  end
end

---@param modules { name: string, file: string }[] bundled ones
---@param definitions string[] LuaLS files of modules in C, each of which is a class "native.NAME"
---@return string source
function manual.source(modules, definitions)
  local entries = {}
  for _, file in ipairs(definitions) do read_declarations(entries, lines_of(file), 1, {}) end
  for _, module in ipairs(modules) do
    local lines = lines_of(module.file)
    local text, at = read_header(lines)
    entries[#entries + 1] = { name = module.name, of = "", head = module.name, text = text }
    local variable = returned(lines)
    read_declarations(entries, lines, at, { [""] = module.name, [variable or ""] = module.name })
  end
  local source = {}
  for i, entry in ipairs(entries) do
    source[i] = ("{name=%q,of=%q,head=%q,text=%q}"):format(entry.name, entry.of, entry.head, entry.text):gsub("\\\n", "\\n")
  end
  return "return {" .. table.concat(source, ",\n") .. "}\n"
end

return manual
