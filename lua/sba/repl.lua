-- SPDX-License-Identifier: Apache-2.0
-- --lua: scripts in the host, and a prompt to try things.

local exit = require "sba.util.exit"
local interrupt = require "native.interrupt"

local repl = {}

--- What is raised by a signal or the deadline is a table; people want its words.
local function traced(problem)
  if type(problem) == "table" and problem.message then return problem end
  return debug.traceback(tostring(problem), 2)
end

local function run(chunk, ...)
  local ok, problem = xpcall(chunk, traced, ...)
  if ok then return exit.OK end
  if type(problem) == "table" then
    io.stderr:write("cynode-sba: ", problem.message, "\n")
    return exit.signalled() or exit.FAILED
  end
  io.stderr:write("cynode-sba: ", problem, "\n")
  return exit.FAILED
end

--- Whether a syntax error only says that more lines must come.
local function is_unfinished(message)
  return message:sub(-5) == "<eof>"
end

--- Reads lines until they are a chunk; returns nil at the end of the input.
local function read_chunk()
  io.write("> ")
  io.flush()
  local source = io.read("L")
  if not source then return nil end
  local expression = source:gsub("^%s*=", "")
  local chunk = load("return " .. expression, "=stdin")
  if chunk then return chunk end
  while true do
    local message
    chunk, message = load(source, "=stdin")
    if chunk or not is_unfinished(message) then return chunk or function() error(message, 0) end end
    io.write(">> ")
    io.flush()
    local line = io.read("L")
    if not line then return function() error(message, 0) end end
    source = source .. line
  end
end

local function show(ok, ...)
  if not ok then
    local problem = ...
    io.stderr:write(type(problem) == "table" and problem.message or tostring(problem), "\n")
  elseif select("#", ...) > 0 then
    print(...)
  end
end

--- A prompt on stdin and stdout: statements, expressions (their values are printed), errors.
local function interact()
  print(("cynode-sba %s, %s"):format(require "native.bundle".version, _VERSION))
  for chunk in read_chunk do
    show(xpcall(chunk, traced))
    if interrupt.signal() then break end
  end
  print()
  return exit.signalled() or exit.OK
end

--- The chunk of `FILE ARG...` or `-e CODE ARG...`, and where its arguments begin.
local function load_script(script)
  if script[1] ~= "-e" then
    local chunk, message = loadfile(script[1])
    return chunk, message or 2
  end
  local chunk, message = load(script[2] or "error('-e wants code: --lua -e CODE', 0)", "=(command line)")
  return chunk, message or 3
end

--- Runs `FILE ARG...`, `-e CODE ARG...`, or a prompt where there is neither. They have job(file) and prompt(file) at hand.
---@param script string[]
---@return integer status
function repl.main(script)
  for _, name in ipairs { "job", "prompt" } do
    _G[name] = function(path) return require "sba.inspect"[name](path) end
  end
  if not script[1] then return interact() end
  local chunk, first = load_script(script)
  if not chunk then
    io.stderr:write("cynode-sba: ", first, "\n")
    return exit.FAILED
  end
  _G.arg = { [0] = script[1], table.unpack(script, first) }
  return run(chunk, table.unpack(script, first))
end

return repl
