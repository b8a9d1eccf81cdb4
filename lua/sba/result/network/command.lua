-- SPDX-License-Identifier: Apache-2.0
-- A command as the rule of result/network.lua sees it: which programs it names, whether it is a script, which proxies it is told of.

local command = {}

local LOOKED_AT <const> = 8192 -- bytes of a command
local LONGEST_ADDRESS <const> = 300 -- bytes of a host and its port

local function base_name(word)
  return word:match "^.*/(.*)$" or word
end

local function argv_of(arguments)
  if arguments.shell then return { "/bin/sh", "-c", arguments.shell } end
  return arguments.argv or { arguments.command, table.unpack(arguments.args or {}) }
end

--- What of a text may be names of programs, as a set.
local function words_of(text)
  local words = {}
  for word in text:gmatch "[%w._/+-]+" do words[base_name(word)] = true end
  return words
end

--- The addresses of the proxies that a command is told of; nil where there are none.
local function proxies_of(environment, own)
  local set
  local function look(name, value)
    name = name:lower()
    if name == "no_proxy" or not name:find "_proxy$" or value == "" then return end
    set = set or {}
    set[value:sub(-LONGEST_ADDRESS):match "([%w._-]+:%d+)/?$" or value] = true -- bounded: LONGEST_ADDRESS
  end
  for _, variable in ipairs(environment) do look(variable:match "^([^=]*)=(.*)$") end
  for name, value in pairs(own or {}) do look(name, value) end
  return set
end

--- The programs that make has shown before it ran them.
local function shown_in(lines)
  local shown = {}
  for _, line in ipairs(lines) do
    local program = line:match "^[%w._/+-]+"
    if program then shown[base_name(program)] = true end
  end
  return shown
end

---@class network.command
---@field text string the whole of it, cut
---@field program string its first word
---@field script? string of a shell
---@field words table<string, boolean> what it names
---@field shown table<string, boolean> the programs that make has shown
---@field proxies? table<string, boolean> "host:port"
---@field merges boolean it sends stderr where stdout goes

---@param arguments table of run_command
---@param environment string[] "NAME=value"
---@param stdout string[] its last lines
---@return network.command
function command.of(arguments, environment, stdout)
  local argv = argv_of(arguments)
  local program, text = base_name(argv[1]), table.concat(argv, " "):sub(1, LOOKED_AT)
  local is_script = program:find "^%a*sh$" and (argv[2] or ""):find "^%-%a*c$"
  return {
    text = text, program = program, script = is_script and argv[3] or nil, words = words_of(text), shown = shown_in(stdout),
    proxies = proxies_of(environment, arguments.env),
    merges = text:find("2>&1", 1, true) ~= nil or text:find("&>", 1, true) ~= nil,
  }
end

return command
