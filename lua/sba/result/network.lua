-- SPDX-License-Identifier: Apache-2.0
-- Whether a command failed because the outside was missing: a name that does not resolve, a network that cannot be reached, a proxy
-- that refuses or is dead. The runner sees only how the command ended and what it printed, and a failing test suite may print the very
-- same words; so words alone are never enough. All of this must hold:
--
-- 1. The words are a line of a known tool's own shape (network/tools.lua), or "PROGRAM: ..." of a program that the command names.
-- 2. It is the end of stderr: after it come only lines that this tool writes then, and those of whatever ran it (make). Where the
--    command is a script that names the tool, those of a program that its output went to (tar), or one line in plain words, may follow
--    too. stdout counts instead where the tool complains there, or the script has sent stderr there; in both the command names the tool.
-- 3. The exit code is one that the tool gives then; make's own message says it where make ran it. A script that names the tool and has a
--    pipe or an `exit` may end with any other code.
-- 4. A tool that others could be taken for counts only where the command names it, or make has shown the line that runs it.
-- 5. stdout does not end in a test report, unless the command is the tool alone.
-- 6. Whoever did not answer was not the loopback, unless the proxy is there.
--
-- A stream that was cut says nothing, for its end is missing. Only the last 8 KiB of a stream are looked at, whatever its size.

local commands = require "sba.result.network.command"
local printable = require "sba.util.printable"
local reasons = require "sba.result.network.reasons"
local text = require "native.text"

local network = {}

local LOOKED_AT <const> = 8192 -- bytes of a stream
local LONGEST_LINE <const> = 600 -- bytes of a line
local MOST_LINES <const> = 80
local REPORT_LINES <const> = 12 -- of stdout, in which a test report is looked for
local LONGEST_NAME <const> = 200 -- bytes of a host or package in a message

--- The last lines of a stream without colours and empty lines; a progress bar's carriage returns end lines too.
local function last_lines(stream)
  local tail = stream:sub(-LOOKED_AT):gsub("\27%[[%d;]*m", "")
  local lines = {}
  for line in tail:gmatch "[^\r\n]+" do
    line = text.trim_end(line:sub(1, LONGEST_LINE))
    if line ~= "" then lines[#lines + 1] = line end
  end
  return table.move(lines, math.max(1, #lines - MOST_LINES + 1), #lines, 1, {})
end

local reports <const> = {
  "%d+ fail", "%d+ of %d+", "%d+ passed", "%d+ error", "FAILED", "%f[%w]FAIL%f[%W]", "^not ok", "^ok %d", "^1%.%.%d", "[Ff]ailures?:",
  "[Tt]ests? failed", "[Tt]ests? run", "[Aa]ssert",
}

local function is_report(line)
  for _, pattern in ipairs(reports) do
    if line:find(pattern) then return true end -- bounded: a line has 600 bytes
  end
end

local function ends_in_report(lines)
  for i = math.max(1, #lines - REPORT_LINES + 1), #lines do
    if is_report(lines[i]) then return true end
  end
end

-- What runs a tool, and says after it that it failed; a capture is the tool's exit code.
local wrappers <const> = {
  "^make%[?%d*%]?: %*%*%* %[.*%] Error (%d+)$", "^make%[?%d*%]?: ", "^error: [Rr]ecipe .* exit code (%d+)$", "^exit status (%d+)$",
  "^ninja: build stopped",
}

-- Programs that a tool's output is piped into, when it is empty.
local consumers <const> = {
  "^gzip: stdin: ", "^tar: ", "^xz: ", "^bzip2: ", "^gpg: no valid OpenPGP data", "^base64: ", "^jq: ", "^unzip: ",
}

local function fits(line, patterns)
  for _, pattern in ipairs(patterns or {}) do
    local from, _, capture = line:find(pattern) -- bounded: a line has 600 bytes
    if from then return true, capture end
  end
  return false
end

--- The words of a script about what has failed: neither another program's complaint nor a compiler's nor a report.
local function is_plain(line)
  return not line:find "^[%w._/+-]+: " and not line:find "[Ee]rror" and not line:find "^[%s%*]" and not is_report(line)
end

--- Where the lines end that only say that something failed; returns the number of the last other one, and the exit code they name.
local function skip_wrappers(lines, in_script)
  local code
  for i = #lines, 1, -1 do
    local wraps, said = fits(lines[i], wrappers)
    code = tonumber(said) or code
    if not wraps and not (in_script and fits(lines[i], consumers)) then return i, code end
  end
  return 0, code
end

--- The complaint of a tool at the end of lines: its number, its kind, and whom it was about.
local function complaint(tool, lines, last)
  if last == 0 or tool.last and not lines[last]:find(tool.last) then return nil end -- bounded: a line has 600 bytes
  for i = last, 1, -1 do
    if fits(lines[i], tool.says) and (not tool.before or (lines[i - 1] or ""):find(tool.before)) then -- bounded: a line has 600 bytes
      local kind, host, port = reasons.of(lines[i])
      if kind then return { at = i, kind = kind, host = host, port = port, line = lines[i] } end
    end
    if not fits(lines[i], tool.after) then return nil end
  end
end

local function is_named(tool, words)
  for _, name in ipairs(tool.names) do
    if words[name] then return true end
  end
  return false
end

--- Whether a tool ends with this exit code; make's own words say which it was where make ran it.
local function exit_fits(tool, ending, said, in_script)
  if not tool.exits or tool.exits[said or ending.exit_code] then return true end
  local script = ending.command.script
  return in_script and not said and (script:find "[^|]|[^|]" or script:find "%f[%w]exit%f[%W]") ~= nil
end

--- The complaint of one tool at the end of a stream.
local function heard(tool, lines, ending)
  local command = ending.command
  local named = is_named(tool, command.words)
  if tool.named and not named and not is_named(tool, command.shown) then return nil end
  if ending.reported and not is_named(tool, { [command.program] = true }) then return nil end
  local in_script = named and command.script ~= nil
  local last, said = skip_wrappers(lines, in_script)
  if not exit_fits(tool, ending, said, in_script) then return nil end
  local found = complaint(tool, lines, last)
  if not found and in_script and last > 1 and is_plain(lines[last]) then found = complaint(tool, lines, last - 1) end
  return found
end

--- A tool that is in no list, but named by the command: "PROGRAM: ...".
local function own_words(lines, command)
  local last = skip_wrappers(lines, false)
  local program = last > 0 and lines[last]:match "^([%w._+-]+): "
  return program and command.words[program] and { { names = { program }, says = { "^[%w._+-]+: " } } } or {}
end

local function is_loopback(host)
  return host == "localhost" or host:find "^127%." or host:find "%.localhost$" or host == "::1" or host == "0.0.0.0"
end

local function subject_of(tool, lines, from)
  for i = from, tool.subject and #lines or 0 do
    local subject = lines[i]:match(tool.subject[1]) -- bounded: a line has 600 bytes
    if subject then return tool.subject[2]:format(subject) end
  end
end

local function outer(host)
  return host and not is_loopback(host) and host or nil
end

local fetched <const> = { "[Ff]ailed to fetch", "could not be downloaded" }

--- The host in the line with the reason, or in the tool's line above it that says what it wanted.
local function host_of(tool, lines, at)
  local host = outer(reasons.host(lines[at]))
  while not host and at > 1 do
    at = at - 1
    if fits(lines[at], fetched) then return outer(reasons.host(lines[at])) end
    if not (fits(lines[at], tool.after) or fits(lines[at], tool.says)) then return nil end
  end
  return host
end

--- Whether it was the outside; completes what is known of it. Where the proxy is said to be dead, the host in the line is the proxy's.
local function is_outside(found, tool, lines, command)
  local address = found.port and found.host .. ":" .. found.port
  if found.kind == "silent" and address and command.proxies and command.proxies[address] then found.kind = "dead" end
  if found.kind == "dead" then found.host = nil end
  found.host = found.host or found.kind ~= "dead" and reasons.host(found.line) or host_of(tool, lines, found.at)
    or outer(reasons.asked(command.text))
  found.subject = subject_of(tool, lines, found.at)
  if found.kind == "forbidden" and not command.proxies then return false end
  if found.host then return not is_loopback(found.host) end
  return found.kind ~= "forbidden" and found.kind ~= "silent"
end

local phrases <const> = {
  name = "%s, whose name does not resolve", unreachable = "%s, which cannot be reached", silent = "%s, which does not answer",
  refused = "%s, which the proxy refuses", forbidden = "%s, which the proxy or the host itself forbids",
  dead = "%s through a proxy that does not answer",
}

local function in_words(found)
  if found.host then return phrases[found.kind]:format("the host " .. found.host) end
  return found.subject or found.kind == "dead" and phrases.dead:format "the outside" or "the outside"
end

--- The first tool that complains at the end of a stream of the outside.
local function search(lines, tools, ending)
  for _, tool in ipairs(tools) do
    local found = heard(tool, lines, ending)
    if found and is_outside(found, tool, lines, ending.command) then return found end
  end
end

--- The tools that complain on stdout of this command: those that always do, and where it sends stderr there all; of those that it names.
local function on_stdout(tools, command)
  local list = {}
  for _, tool in ipairs(tools) do
    if (tool.stdout or command.merges) and is_named(tool, command.words) then list[#list + 1] = tool end
  end
  return list
end

local function on_stderr(tools)
  local list = {}
  for _, tool in ipairs(tools) do
    if not tool.stdout then list[#list + 1] = tool end
  end
  return list
end

---What a failed command wanted of the outside and did not get, in words: "the host files.example.org, whose name does not resolve".
---@param result table of run_command
---@param arguments table of its step
---@param environment string[] "NAME=value", in which the proxies are
---@return string? wanted nil where it did not fail for want of the outside, or nobody can tell
function network.wanted(result, arguments, environment)
  if not result.exit_code or result.exit_code == 0 then return nil end
  local tools, stderr, stdout = require "sba.result.network.tools", last_lines(result.stderr), last_lines(result.stdout)
  local command = commands.of(arguments, environment, stdout)
  local ending = { exit_code = result.exit_code, command = command, reported = ends_in_report(stdout) }
  local found
  if not result.stderr_truncated then
    found = search(stderr, on_stderr(tools), ending) or search(stderr, own_words(stderr, command), ending)
  end
  if not found and not result.stdout_truncated then found = search(stdout, on_stdout(tools, command), ending) end
  if not found then return nil end
  local words = printable.line(in_words(found))
  return #words > LONGEST_NAME and text.cut(words, LONGEST_NAME) .. "..." or words
end

return network
