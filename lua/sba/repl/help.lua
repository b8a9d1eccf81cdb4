-- SPDX-License-Identifier: Apache-2.0
-- help(): what modules, functions, handles and step types are for. The words are those of the sources, put into the program when
-- it is built (sba.repl.manual).

local catalogue = require "sba.catalogue"
local file = require "native.file"
local lines_of = require "sba.util.lines"
local manual = require "sba.repl.manual"
local modules = require "sba.repl.modules"
local printable = require "sba.util.printable"
local schema_check = require "sba.util.schema_check"
local words = require "sba.util.words"

local help = {}

local WIDEST <const> = 100 -- columns
local GLOBALS <const> = "sba.repl.globals." -- where job, prompt, step and help are from

local OVERVIEW <const> = [[
An expression shows its values; _ is the first of the last ones. Tab completes,
Ctrl-R finds what was typed before, Ctrl-C stops what runs or drops the line.

  job(file)              a job file, checked, with its context
  prompt(file)           what a model is told at the beginning of it
  step(type, arguments)  runs one step here: step("list_tree", {path="."})
  native.NAME, sba.NAME  modules, which need no `require`
  help(thing)            a module, function, handle or step type
  help "NAME"            the same by name: help "sba.util.json.encode"
  help "steps"           all step types
  help "sba"             the modules in Lua

]]

local index -- name -> entries of the manual

local function look_up(name)
  if not index then
    index = {}
    for _, entry in ipairs(manual) do
      index[entry.name] = index[entry.name] or {}
      table.insert(index[entry.name], entry)
    end
  end
  return index[name]
end

--- Breaks a paragraph into lines; those after the first of an indented one are indented further.
local function wrapped(paragraph, columns)
  local margin = paragraph:find("^ ") and "      " or ""
  local lines, line = {}, ""
  for blank, word in paragraph:gmatch("( *)([^ ]+)") do -- bounded: our own documentation
    if line:find("%S") and printable.width(line) + #blank + printable.width(word) > columns then
      lines[#lines + 1] = line
      line, blank = margin, ""
    end
    line = line .. blank .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function laid_out(text)
  local columns, lines = math.min(file.terminal_columns(1) or 80, WIDEST), {}
  for _, paragraph in lines_of(text) do lines[#lines + 1] = wrapped(paragraph, columns) end
  return table.concat(lines, "\n") .. "\n"
end

local function first_sentence(text)
  local line = text:match("^[^\n ][^\n]*") or ""
  return line:match("^(.-[^%.]%.) ") or line
end

--- An entry, and a line on each of what it holds.
local function about_entry(entry)
  local parts = { entry.of .. "." == GLOBALS and entry.head:sub(#GLOBALS + 1) or entry.head, entry.text ~= "" and entry.text or nil }
  for _, member in ipairs(manual) do
    if member.of == entry.name then parts[#parts + 1] = ("  %s  %s"):format(member.head, first_sentence(member.text)) end
  end
  return table.concat(parts, "\n")
end

--- The modules one level below a prefix, a line each; of what lies deeper only how much there is.
local function about_modules(prefix)
  local parts = {}
  for i, child in ipairs(modules.children(prefix)) do
    local name = prefix .. "." .. child.name
    local entries, more = look_up(name), child.deeper > 0 and (" (%d modules below)"):format(child.deeper) or ""
    parts[i] = ("  %s  %s%s"):format(name, entries and first_sentence(entries[1].text) or "", more)
  end
  return #parts > 0 and table.concat(parts, "\n") or nil
end

local function about_entries(entries)
  local parts = {}
  for i, entry in ipairs(entries) do parts[i] = about_entry(entry) end
  parts[#parts + 1] = about_modules(entries[1].name)
  return table.concat(parts, "\n")
end

local function about_step(name)
  local step = catalogue.get(name)
  if not step then return nil end
  local parts, required = { ("step type %s"):format(name), step.summary }, {}
  for _, argument in ipairs(step.arguments.required or {}) do required[argument] = true end
  for _, argument in ipairs(schema_check.names(step.arguments)) do
    local schema, mark = step.arguments.properties[argument], required[argument] and "" or "?"
    parts[#parts + 1] = ("  %s%s  %s. %s"):format(argument, mark, words.schema(schema), schema.description or "")
  end
  return table.concat(parts, "\n")
end

local function about_steps()
  local parts = {}
  for _, step in ipairs(catalogue.all()) do parts[#parts + 1] = ("  %s  %s"):format(step.name, step.summary) end
  return table.concat(parts, "\n")
end

local function about_name(name)
  if name == "steps" then return about_steps() end
  for _, candidate in ipairs { name, GLOBALS .. name, "native." .. name, "sba." .. name } do
    local entries = look_up(candidate) or look_up(candidate .. "()")
    if entries then return about_entries(entries) end
  end
  return about_step(name) or about_modules(name) or about_modules("sba." .. name)
end

---What is known of a thing.
---@param thing any a value, or its name
---@return string text whole lines
function help.text(thing)
  local name = type(thing) == "string" and thing or modules.name_of(thing)
  local text = name and about_name((name:gsub("^sba%.steps%.", "")))
  if text then return laid_out(text) end
  local what = name and printable.quoted(name, 60) or thing == nil and "nil" or "this " .. type(thing)
  return ("nothing is known of %s; help() says what there is\n"):format(what)
end

---Prints it; without a thing, an overview.
function help.print(...)
  io.write(select("#", ...) > 0 and help.text((...)) or laid_out(OVERVIEW .. about_modules "native"))
end

return help
