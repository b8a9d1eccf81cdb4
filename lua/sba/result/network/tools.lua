-- SPDX-License-Identifier: Apache-2.0
-- How tools end when the outside was missing: what their lines look like, which exit codes they give. tests/network holds what they
-- really say.
--
-- names   programs that end so, as a command names them
-- exits   exit codes; none: any but 0
-- says    patterns, one of which fits the line that has the reason
-- after   patterns of the lines that the tool itself writes after it
-- last    what the very last line must fit
-- before  what the line before the one with the reason must fit
-- named   counts only where the command names the program, because another one could easily write the same
-- stdout  complains on stdout, and so counts only where the command names the program

local function codes(...)
  local set = {}
  for _, code in ipairs { ... } do set[code] = true end
  return set
end

local wget_says <const> = {
  "^wget: ", "^Connecting to .- failed: ", "^failed: ", "^Proxy tunneling failed: ", "^%d+%-%d+%-%d+ %S+ ERROR 403: ",
}

return {
  { names = { "curl" }, exits = codes(5, 6, 7, 22, 28, 56, 97), says = { "^curl: %(%d+%) ", "^[%d%s:-]+curl: %(%d+%) " } },
  { names = { "wget" }, exits = codes(4, 8), says = wget_says, after = { "^Giving up", "^Retrying" } },
  { names = { "debootstrap" }, exits = codes(1), named = true, says = wget_says, after = { "^[IEW]: ", "^https?://%S+:$" } },
  {
    names = { "git" }, exits = codes(128),
    says = { "^fatal: unable to access '", "^fatal: unable to look up ", "^fatal: unable to connect to ", "^ssh: " },
    after = {
      "^fatal: ", "^Please make sure you have", "^and the repository exists%.", "^Failed to clone '",
    },
  },
  {
    names = { "rsync" }, exits = codes(10, 12, 30, 35, 255), says = { "^rsync: ", "^ssh: " },
    after = { "^rsync error: ", "^rsync: connection unexpectedly closed" },
  },
  { names = { "ssh", "scp", "sftp" }, exits = codes(255), says = { "^ssh: " }, after = { "^scp: Connection closed" } },
  {
    names = { "pip", "pip3" }, exits = codes(1, 2),
    says = { "^WARNING: Retrying %(", "^ERROR: Could not install packages due to an ", "^  fatal: unable to access '" },
    after = {
      "^ERROR: Could not find a version that satisfies the requirement .* %(from versions: none%)",
      "^ERROR: No matching distribution found for ", "^%[notice%] ", "^ *error: subprocess%-exited", "^ *note: This error originates",
      "^ *×", "^ *│", "^ *╰",
    },
    subject = { "^ERROR: No matching distribution found for (%S+)", "the package %s" },
  },
  { names = { "npm", "npx" }, says = { "^npm [Ee][Rr][Rr]" }, after = { "^npm [Ee][Rr][Rr]" } },
  { names = { "yarn", "yarnpkg" }, exits = codes(1), says = { "^error Error: " }, after = { "^    at " } },
  {
    names = { "pnpm", "pnpx" }, exits = codes(1), stdout = true, says = { "^%W*ERR_PNPM_" },
    after = { "^This error happened ", "^No authorization ", "^Try to log in ", "^or add the auth " },
  },
  { names = { "uv", "uvx" }, exits = codes(1, 2), says = { "^  cause: " }, after = { "^  cause: " } },
  { names = { "apt-get", "apt" }, exits = codes(100), says = { "^[EW]: Failed to fetch " }, after = { "^[EW]: " } },
  {
    names = { "go" }, exits = codes(1), says = { '^go: .-: Get "https?://', '^%S+%.go:%d+:%d+: .-: Get "https?://' },
    after = { "^go: ", "^%S+%.go:%d+:%d+: .-@v" },
  },
  {
    names = { "cargo" }, exits = codes(101), says = { "^  failed to resolve address ", "^  failed to connect to ", "^  %[%d+%] " },
    after = { "^Caused by:", "^  " },
  },
  { names = { "gem" }, exits = codes(1, 2), says = { "^ +Unable to download data from ", '^ +403 "' } },
  {
    names = { "bundle", "bundler" }, exits = codes(17), says = { "^Could not reach host ", "^<%S+: Failed to open TCP connection " },
    after = { "^again%.", "^%(" },
  },
  {
    names = { "composer" }, exits = codes(1, 100), named = true, says = { "^  .*getaddrinfo for ", "^ +:? ?Failed to open stream: " },
    after = { "^  ", "^%l[%w-]* %[%-%-" },
  },
  {
    names = { "mvn", "mvnw" }, exits = codes(1), stdout = true, says = { "^%[ERROR%] .*[Cc]ould not " },
    after = { "^%[ERROR%] *$", "^%[ERROR%] To see the full", "^%[ERROR%] Re%-run", "^%[ERROR%] For more info", "^%[ERROR%] %[Help" },
  },
  { names = { "svn" }, exits = codes(1), named = true, says = { "^svn: E%d+: " } },
  { names = { "hg" }, exits = codes(255), says = { "^abort: " } },
  {
    names = { "aria2c" }, stdout = true, says = { "^Exception: ", "^ +%-> %[" },
    after = {
      "^ +%-> %[", "^%d+/%d+ [%d:]+ %[NOTICE%]", "^Download Results:", "^gid ", "^=+%+", "^%x+|", "^Status Legend:", "^%(ERR%):",
      "^aria2 will resume", "^If there are any errors",
    },
  },
  { names = { "lftp" }, exits = codes(1), named = true, says = { "^%l+: " } },
  { names = { "openssl" }, exits = codes(1), named = true, says = { "^%x+:error:" }, after = { "^connect:errno=" } },
  { names = { "socat" }, exits = codes(1), says = { "^%d+/%d+/%d+ [%d:]+ socat%[%d+%] E " } },
  { names = { "http", "https" }, exits = codes(1), says = { "^https?: LogLevel%.ERROR: ", "^https?: error: " }, after = { "^Couldn’t " } },
  { names = { "redis-cli" }, exits = codes(1), named = true, says = { "^Could not connect to Redis at " } },
  { names = { "telnet" }, exits = codes(1), stdout = true, says = { "^Server lookup failure: " } },
  {
    names = { "dig", "host", "nslookup" }, exits = codes(1, 9), stdout = true,
    says = { "^;; UDP setup with ", "^;; communications error ", "^;; no servers could be reached", "^Host ", "^%*%* server can't find " },
    after = { "^;; no servers could be reached", "^;; global options", "^; <<>> DiG " },
  },
  { names = { "perl" }, says = { "^.+ at %S+ line %d+%.$" } },
  { names = { "python", "python3" }, exits = codes(1), says = { "^[%a_][%w_.]*: " }, before = "^%s+%S" },
  {
    names = { "node" }, exits = codes(1), says = { "^%s*%[cause%]: Error: ", "^Error: " }, last = "^Node%.js v%d",
    after = { "^ ", "^}", "^Node%.js v%d", "^Emitted 'error' event" },
  },
  { names = { "ruby" }, exits = codes(1), says = { "^%S+:%d+:in `" }, after = { "^\tfrom " } },
  {
    names = { "java" }, exits = codes(1), says = { '^Exception in thread "', "^Caused by: java%." },
    after = { "^\tat ", "^\t%.%.%. %d+ more" },
  },
  { names = { "php" }, named = true, says = { "^PHP Warning:  ", "^PHP Fatal error:  " }, after = { "^PHP Warning:  " } },
}
