-- SPDX-License-Identifier: Apache-2.0
-- Whether a command failed because it could not reach the network outside: a guess from how it
-- ended and from what it printed. Most tools pass on phrases of libc, of their runtime or of
-- curl. A proxy's refusal is known by a rule: the line speaks of a proxy or a tunnel, and of a
-- 403. A line counts among the last of stderr, or of stdout where the command sends stderr there
-- or labels the line as an error; unless it names a loopback host, or a test report follows.

local lines_of = require "sba.util.excerpt".lines
local printable = require "sba.util.printable"
local text = require "native.text"
local words_of_command = require "sba.util.humanize".command

local network = {}

-- Bytes at the end of a stream, and at the beginning of a command.
local LOOKED_AT <const> = 4096
-- Bytes of a tool's line in a message.
local LONGEST_LINE <const> = 300

-- In lower case; both parts of a phrase must be in one line. policy: a proxy forbids it. proxied:
-- the words of a web server's refusal, which count where the command was given a proxy; for an
-- http:// URL they are taken for the proxy's.
local phrases <const> = {
  -- glibc and musl
  { "temporary failure in name resolution" }, { "name or service not known" },
  { "name does not resolve" }, { "name has no usable address" },
  { "no address associated with hostname" },
  { "network is unreachable" }, { "no route to host" },
  { "getaddrinfo", ": try again" }, -- Ruby and rsync
  { "translate host name ", ": try again" }, -- PostgreSQL
  { "could not resolve host" }, { "failed to connect to ", "connect to server" }, -- curl and git
  { "unable to resolve host address" }, -- wget
  { "temporary failure resolving" }, { "failed to fetch ", "could not resolve" }, -- apt
  { "couldn't resolve host" }, -- cargo
  { "getaddrinfo e" }, { "enetunreach" }, { "ehostunreach" }, -- Node.js and npm
  { "dial tcp: lookup " }, { "lookup ", ": no such host" }, -- Go
  { "bad address '" }, -- busybox
  { "transient error (try again later)" }, { "temporary error (try again later)" }, -- apk
  { "dns lookup error" }, { "network error (check internet connection" },
  { "failed to lookup address information" }, -- Rust
  { "[errno -3] try again" }, -- Python on musl
  { "unknownhostexception" }, { "noroutetohostexception" }, { "unresolvedaddressexception" }, -- Java
  { "unknown host " }, -- Maven and ping
  { "resource temporarily unavailable (" }, { "nxdomain" }, -- .NET, Erlang
  { "could not reach host " }, { "unable to download data from ", "no such name" }, -- bundler and gem
  -- wget prints the words of a 403 alone, "Forbidden" or "Filtered", and so does Go
  { "proxy tunneling failed: f", policy = true },
  { 'get "https://', '": forbidden ', policy = true },
  { 'get "https://', '": filtered ', policy = true },
  { "connect tunnel failed, response " }, { "proxy tunneling failed: " },
  { "tunnel connection failed: " }, { "tunnel error: unsuccessful" },
  { " 403 ", proxied = true }, { "error 403: ", proxied = true },
  { "returned error: 403", proxied = true },
}

-- How programs end that were told to print nothing. proxied: only where they were given a proxy.
local silent <const> = {
  { program = "wget", exit_code = 4 },
  { program = "curl", exit_code = 6 },
  { program = "curl", exit_code = 56, proxied = true },
}

-- Words of test reports. A suite that fails may print any phrase.
local reports <const> = { "FAIL", "AssertionError", " passed", "tests ", "not ok " }

-- What stands before a host in a tool's line or in a command.
local before_host <const> = {
  "://", "resolve host: ", "resolve hostname ", "host address ", "resolve '", "resolving '",
  "EAI_AGAIN ", "ENOTFOUND ", "tcp: lookup ", "connect to host ", "Failed to connect to ",
  "Can't connect to ", "host='", "bad address '", "translate host name \"",
  "UnknownHostException: ", "Unknown host ", "unknown host ", "reach host ", "ENETUNREACH ",
  "EHOSTUNREACH ", "temporarily unavailable (",
}

local function host_in(words)
  for _, before in ipairs(before_host) do
    local _, last = words:find(before, 1, true)
    local word = last and words:match("^[^%s/'\"]*", last + 1)
    local host = word and (word:match "^.*@(.*)$" or word):match "[%w._-]+"
    if host then return (host:gsub("%.$", "")) end -- the end of a sentence
  end
end

local function is_loopback(host)
  if not host then return false end
  if host == "localhost" or host == "0.0.0.0" then return true end
  return host:sub(-10) == ".localhost" or host:sub(1, 4) == "127."
end

local REFUSED <const> = { policy = true }

--- A URL may hold any word.
local function is_refused_by_proxy(lowered)
  local of_proxy, is_403 = false, false
  for word in lowered:gmatch "%S+" do
    if not word:find("://", 1, true) then
      of_proxy = of_proxy or word:find "proxy" or word:find "tunnel"
      is_403 = is_403 or word:find "%f[%w]403%f[%W]"
    end
  end
  return of_proxy and is_403
end

local function phrase_in(line, has_proxy)
  local lowered = " " .. line:lower() .. " "
  if is_refused_by_proxy(lowered) then return REFUSED end
  for _, phrase in ipairs(phrases) do
    local first, second = phrase[1], phrase[2] or ""
    local may_count = has_proxy or not phrase.proxied
    local has_first = may_count and lowered:find(first, 1, true)
    if has_first and lowered:find(second, 1, true) then return phrase end
  end
end

--- As Maven and sbt do, which print why they fail to stdout.
local function is_labelled(line)
  local label = line:match "^%s*%[(%u+)%]"
  return label == "ERROR" or label == "FATAL"
end

local function holds_report(words)
  words = words:gsub("BUILD FAILURE", "") -- Maven says so of any failure
  for _, word in ipairs(reports) do
    if words:find(word, 1, true) then return true end
  end
  return false
end

--- What a line says that has a phrase, and is not about this machine.
local function read_line(line, has_proxy)
  local phrase = phrase_in(line, has_proxy)
  if not phrase or line:sub(1, 6) == "sudo: " then return nil end
  local host = host_in(line)
  if is_loopback(host) and not phrase.policy then return nil end
  if is_loopback(host) then host = nil end -- the proxy's own
  return { line = line, policy = phrase.policy, proxied = phrase.proxied, host = host }
end

--- The last line with a phrase; one without a host or a proxy says less than one before it.
local function find(stream, has_proxy, wants_label)
  local found
  local tail = stream:sub(-LOOKED_AT):gsub("\27%[[%d;]*m", "") -- without colours
  for after, line in lines_of(tail) do
    local said = (not wants_label or is_labelled(line)) and read_line(line, has_proxy)
    if said and (said.host or said.policy or not found) then
      if not holds_report(tail:sub(after)) then found = said end
    end
  end
  return found
end

local function words_of(arguments)
  return (arguments.shell or table.concat(words_of_command(arguments), " ")):sub(1, LOOKED_AT)
end

local function was_given_proxy(arguments, environment)
  for _, variable in ipairs(environment) do
    if variable:lower():find "^https?_proxy=." then return true end
  end
  for name, value in pairs(arguments.env or {}) do
    if value ~= "" and name:lower():find "^https?_proxy$" then return true end
  end
  return false
end

--- Without its directory: "curl" of "cd a && HOME=/ /usr/bin/curl x".
local function last_program(words)
  local program
  for part in words:gmatch "[^;&|\n]+" do
    program = (" " .. part):gsub("%s[%w_]+=%S*", ""):match "%S+" or program
  end
  return program and (program:match "^.*/(.*)$" or program)
end

local function find_silent(result, words, has_proxy)
  if result.stderr ~= "" then return nil end
  local program, code = last_program(words), result.exit_code
  for _, one in ipairs(silent) do
    if one.program == program and one.exit_code == code and (has_proxy or not one.proxied) then
      local line = "%s ends with exit code %d where it cannot reach the network"
      return { line = line:format(program, code), policy = has_proxy }
    end
  end
end

--- Whether a proxy reads the URL of the line or else of the command: an https:// one it does not.
local function is_plain(line, words)
  local text_with_url = line:find("://", 1, true) and line or words
  local is_http = text_with_url:find("http://", 1, true) ~= nil
  return is_http and not text_with_url:find("https://", 1, true)
end

---What a failed command wanted of the network outside, and did not get.
---@param result table of run_command
---@param arguments table of its step
---@param environment string[] "NAME=value"
---@return { host?: string, line: string, policy: boolean }? wanted line: the tool's words; policy: a proxy forbade it
function network.wanted(result, arguments, environment)
  if not result.exit_code or result.exit_code == 0 then return nil end
  if holds_report(result.stdout:sub(-LOOKED_AT)) then return nil end
  local words, has_proxy, found = words_of(arguments), was_given_proxy(arguments, environment), nil
  local merges = words:find("2>&1", 1, true) or words:find("&>", 1, true)
  if not result.stderr_truncated then found = find(result.stderr, has_proxy) end
  local looks_on = not found and not result.stdout_truncated
  if looks_on then found = find(result.stdout, has_proxy, not merges) end
  found = found or find_silent(result, words, has_proxy)
  if not found then return nil end
  local host = found.host or host_in(words)
  if is_loopback(host) then return nil end
  local is_proxys = found.proxied and is_plain(found.line, words)
  local line = printable.line(text.trim(found.line), LONGEST_LINE)
  return { host = host, line = line, policy = found.policy or is_proxys or false }
end

return network
