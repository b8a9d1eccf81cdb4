-- SPDX-License-Identifier: Apache-2.0
-- --lua: runs a script, or a prompt until Ctrl-D.

local bundle = require "native.bundle"
local completion = require "sba.repl.complete"
local exit = require "sba.result.failure".exit
local file = require "native.file"
local globals = require "sba.repl.globals"
local identity = require "native.identity"
local interrupt = require "native.interrupt"
local line_editor = require "native.line_editor"
local printable = require "sba.util.printable"
local show = require "sba.repl.show"
local text = require "native.text"

local repl = {}

local stdout, stderr = io.stdout, io.stderr

-- A failure of the world, or a signal, needs no traceback.
local function traced(problem)
  if type(problem) == "table" and problem.message then return problem.message end
  return debug.traceback(tostring(problem), 2)
end

local function load_script(name, code)
  if name == "-e" and code then return load(code, "=(command line)", "t") end
  if name == "-e" then return nil, "-e requires code: --lua -e CODE" end
  if name and name ~= "-" and name:sub(1, 1) == "-" then
    return nil, ("--lua does not know %s; it takes FILE, -e CODE, or - for stdin"):format(name)
  end
  return loadfile(name ~= "-" and name or nil, "t")
end

local function run_script(arguments)
  local chunk, message = load_script(arguments[1], arguments[2])
  if not chunk then return exit.because(message, exit.FAILED) end
  local first = arguments[1] == "-e" and 3 or 2
  _G.arg = { [0] = arguments[1] or "-", table.unpack(arguments, first) }
  local ok, problem = xpcall(chunk, traced, table.unpack(arguments, first))
  return ok and exit.OK or exit.because(problem, exit.FAILED)
end

-- The globals of what is typed: `type = 1` breaks nothing else.
local typed = setmetatable({}, { __index = _G })
typed._G = typed

local complete <const> = completion(typed)

local function complain(message)
  stdout:flush()
  stderr:write(printable.replace(text.repair(message), "%s"), "\n")
end

local function shown(...) return show.values(table.pack(...), file.terminal_columns(1) or 80) end

-- Of what is typed. Ctrl-C is over with it.
local function explain(problem)
  -- Without the frames of the prompt itself.
  local traceback = debug.traceback("", 2):gsub("\n\t%[C%]: in function 'xpcall'.*", "")
  if interrupt.clear() then return "interrupted" .. traceback end
  if type(problem) == "table" and type(problem.message) == "string" then
    return ("%s: %s"):format(problem.code or "error", problem.message)
  end
  return (type(problem) == "string" and problem or shown(problem)) .. traceback
end

local function show_results(_, ...)
  if select("#", ...) == 0 then return end
  typed._ = ...
  stdout:write(shown(...), "\n")
end

local function evaluate(chunk)
  local results = table.pack(xpcall(chunk, explain))
  local ok, problem = results[1], results[2]
  if ok then ok, problem = xpcall(show_results, explain, table.unpack(results, 1, results.n)) end
  if not ok then complain(problem) end
end

local function wants_more(message) return message:sub(-5) == "<eof>" end

---@param source string one line or more
---@return function? chunk, string? message, boolean? unfinished more lines could make it whole
function repl.compile(source)
  -- The line ends here; else a string that lacks its end quote could go on.
  source = source .. "\n"
  local chunk, message = load("return " .. source, "=stdin", "t", typed)
  if chunk then return chunk end
  local unfinished = wants_more(message)
  chunk, message = load(source, "=stdin", "t", typed)
  return chunk, message, unfinished or not chunk and wants_more(message)
end

-- Edited where the terminal can. nil at the end, or nil and a failure.
local function read_line(prompt)
  stdout:flush()
  local line, failure = line_editor.read(prompt, complete)
  if not failure or failure.code ~= "not_a_terminal" then return line, failure end
  stderr:write(prompt) -- stdout may be a file
  local message
  line, message = io.read("l")
  if line or not message then return line end
  return nil, interrupt.reason() or { code = "io_error", message = message }
end

-- false: the lines cannot become a chunk; nil: the session ends.
local function read_chunk()
  local source
  while true do
    local line, failure = read_line(source and ">> " or "> ")
    if not line then
      if failure and interrupt.clear() then return false end
      if failure and failure.code ~= "cancelled" then complain(failure.message) end
      return nil
    end
    source = source and source .. "\n" .. line or line
    local chunk, message, unfinished = repl.compile(source)
    if chunk or not unfinished then
      if source:find("%S") then line_editor.remember(source) end
      if not chunk then complain(message) end
      return chunk or false
    end
  end
end

local function run_prompt()
  interrupt.begin_session()
  local greeting = "cynode-sba %s, %s; help() says what is at hand, Ctrl-D ends\n"
  stdout:write(greeting:format(bundle.version, _VERSION))
  while true do
    local chunk = read_chunk()
    if chunk == nil then break end
    if chunk then evaluate(chunk) end
    interrupt.clear()
  end
  stdout:write("\n")
  return exit.signalled() or exit.OK
end

---Runs `FILE ARG...`, `-e CODE ARG...`, or stdin (`-` or no argument; the prompt where that is a
---terminal), as the user of --user.
---@param settings cli.settings
---@param environment table<string, string>
---@return integer status 0; 1 after an error; 2 where it could not begin; os.exit's own
function repl.run(settings, environment)
  if settings.user then
    local ok, failure = identity.become(settings.user)
    local what = "cannot run as the user of --user: "
    if not ok then return exit.because(what .. failure.message, exit.REFUSED) end
  end
  globals.install(environment)
  local is_prompt = not settings.script[1] and file.terminal_columns(0)
  local status = is_prompt and run_prompt() or run_script(settings.script)
  globals.finish()
  return status
end

return repl
