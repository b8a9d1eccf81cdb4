-- SPDX-License-Identifier: Apache-2.0
-- The prompt of --lua: reads a chunk, runs it, prints its values or its error, and repeats until Ctrl-D.

local bundle = require "native.bundle"
local completion = require "sba.repl.complete"
local exit = require "sba.util.exit"
local file = require "native.file"
local interrupt = require "native.interrupt"
local line_editor = require "native.line_editor"
local printable = require "sba.util.printable"
local show = require "sba.repl.show"
local text = require "native.text"

local session = {}

local stdout, stderr = io.stdout, io.stderr

-- The globals of what is typed: Lua's own, and those that it sets. So `type = 1` breaks nothing but what is typed.
local globals = setmetatable({}, { __index = _G })
globals._G = globals

local FIRST <const>, MORE <const> = "> ", ">> "

local function complain(message)
  stdout:flush()
  stderr:write(printable.replace(text.repair(message), "%s"), "\n")
end

local function columns()
  return file.terminal_columns(1) or 80
end

--- A traceback without the frames of the prompt itself.
local function traceback()
  return (debug.traceback("", 3):gsub("\n\t%[C%]: in function 'xpcall'.*", ""))
end

--- The message handler of what is run. After Ctrl-C the rest of the session must find nothing of it. A failure of the world is
--- no mistake in the code, and needs no traceback.
local function explain(problem)
  if interrupt.clear() then return "interrupted" .. traceback() end
  if type(problem) == "table" and type(problem.message) == "string" then
    return ("%s: %s"):format(problem.code or "error", problem.message)
  end
  return (type(problem) == "string" and problem or show.values({ problem, n = 1 }, columns())) .. traceback()
end

local function show_results(_, ...)
  if select("#", ...) == 0 then return end
  globals._ = ...
  stdout:write(show.values(table.pack(...), columns()), "\n")
end

local function evaluate(made)
  local results = table.pack(xpcall(made, explain))
  if not results[1] then return complain(results[2]) end
  local ok, problem = xpcall(show_results, explain, table.unpack(results, 1, results.n))
  if not ok then complain(problem) end
end

local function wants_more(message)
  return message:sub(-5) == "<eof>"
end

---@param source string one line or more
---@param environment? table what it finds as its globals; default: _G
---@return function? made, string? message why not, boolean? unfinished more lines could make it whole
function session.compile(source, environment)
  source = source .. "\n" -- or a string that lacks its end quote could go on
  environment = environment or _G
  local made, message = load("return " .. source, "=stdin", "t", environment)
  if made then return made end
  local unfinished = wants_more(message)
  made, message = load(source, "=stdin", "t", environment)
  return made, message, unfinished or not made and wants_more(message)
end

local complete <const> = completion(globals)

--- Reads a line: edited where the terminal can, plain where not. nil at the end, or nil and a failure.
local function read_line(prompt)
  stdout:flush()
  local line, failure = line_editor.read(prompt, complete)
  if not failure or failure.code ~= "not_a_terminal" then return line, failure end
  stderr:write(prompt) -- stdout may be a file
  local message
  line, message = io.read("l")
  return line, not line and message and (interrupt.reason() or { code = "io_error", message = message }) or nil
end

--- Reads lines until they are a chunk, or cannot become one. Nil where the session ends.
---@return function|false|nil
local function read_chunk()
  local source
  while true do
    local line, failure = read_line(source and MORE or FIRST)
    if not line then
      if failure and interrupt.clear() then return false end
      if failure and failure.code ~= "cancelled" then complain(failure.message) end
      return nil
    end
    source = source and source .. "\n" .. line or line
    local made, message, unfinished = session.compile(source, globals)
    if made or not unfinished then
      if source:find("%S") then line_editor.remember(source) end
      if not made then complain(message) end
      return made or false
    end
  end
end

---The prompt.
---@return integer status
function session.run()
  interrupt.begin_session()
  stdout:write(("cynode-sba %s, %s; help() says what is at hand, Ctrl-D ends\n"):format(bundle.version, _VERSION))
  while true do
    local made = read_chunk()
    if made == nil then break end
    if made then evaluate(made) end
    interrupt.clear()
  end
  stdout:write("\n")
  return exit.signalled() or exit.OK
end

return session
