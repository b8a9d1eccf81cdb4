-- SPDX-License-Identifier: Apache-2.0
-- What an image must have, tried out in the image itself, point by point:
--   cynode-sba --lua requirements.lua [IMAGE.json]
-- IMAGE.json (`-`: stdin) is what `podman image inspect` prints; without it nothing is said of labels and settings.
-- Exit status 1 where something is missing that must be there.

local file = require "native.file"
local identity = require "native.identity"
local json = require "sba.util.json"
local process = require "native.process"
local text = require "native.text"
local workspace = require "native.workspace"

local LARGEST_DESCRIPTION <const> = 16 * 1024 * 1024 -- bytes
local LARGEST_BUNDLE <const> = 16 * 1024 * 1024
local LONGEST_WAIT <const> = 60 -- seconds, for one command

local environment = identity.environment {}
local own_status = assert(file.read("/proc/self/status", 65536))
local own_id, own_pid = own_status:match "Uid:%s+(%d+)", own_status:match "\nPid:%s+(%d+)"
local scratch -- a directory for the tools to work in

--- Runs a command in the scratch directory.
---@return native.process.outcome?, string? why
local function run(argv, variable)
  local list = { "PATH=" .. (environment.PATH or "/usr/local/bin:/usr/bin:/bin"), "HOME=" .. scratch:path(), variable }
  local directory <const> = scratch:directory "."
  local outcome, failure = process.run {
    argv = argv, env = list, directory = directory, timeout = LONGEST_WAIT, output_limit = 65536,
  }
  directory:close()
  if outcome then return outcome end
  return nil, failure.code == "not_found" and "there is no " .. argv[1] or failure.message
end

local function ending(outcome)
  return outcome.exit_code and "exit status " .. outcome.exit_code or outcome.signal or outcome.ended
end

--- Whether the commands end well, one after the other, and the last one prints what is expected (a pattern).
local function works(commands, expected, variable)
  local last
  for _, argv in ipairs(commands) do
    local outcome, why = run(argv, variable)
    if not outcome then return nil, why end
    if outcome.exit_code ~= 0 then
      return nil, ("`%s`: %s %s"):format(table.concat(argv, " "), ending(outcome), outcome.stderr:match "[^\n]*")
    end
    last = outcome
  end
  if last.stdout:find(expected or "") then return true end
  return nil, ("`%s` printed something else than it should"):format(table.concat(commands[#commands], " "))
end

--- A check of commands; each is words separated by blanks.
local function try(lines, expected)
  return function()
    local commands = {}
    for i, line in ipairs(lines) do
      commands[i] = {}
      for word in line:gmatch "%S+" do table.insert(commands[i], word) end
    end
    return works(commands, expected)
  end
end

local posix_script <const> = [[
set -eu
f() { for word; do case $word in b*) echo "${word#b}$((6 * 7))"; return 0 ;; esac; done; return 1; }
test "$(f a bc)" = c42 && cat_free=$(while read -r line; do echo "$line"; done <<END
here
END
) && [ "$cat_free" = here ] && (exit 3) || [ $? -eq 3 ] && echo fine]]

local function posix_shell() return works({ { "/bin/sh", "-c", posix_script } }, "^fine\n$") end

local function bash() return works({ { "bash", "-c", "[[ ab == a* ]] && a=(x y) && echo ${#a[@]} ${a[1]^^}" } }, "^2 Y\n$") end

local function python3()
  return works({ { "python3", "-c", "import json, sys; print(json.dumps(sys.version_info[0]))" } }, "^3\n$")
end

local function streams()
  local outcome, why = run { "/bin/sh", "-c", "echo out; echo err >&2; exit 7" }
  if not outcome then return nil, why end
  return outcome.stdout == "out\n" and outcome.stderr == "err\n" and outcome.exit_code == 7, "they do not arrive as written"
end

-- "packed\n" as the file `zipped` of an archive, so that unzip is tried without zip.
local archive <const> = "UEsDBBQAAAAAAAAAIQBD4EEvBwAAAAcAAAAGAAAAemlwcGVkcGFja2VkClBLAQIUAxQAAAAAAAAAIQBD4EEvBwAAAAcAAAAG" ..
  "AAAAAAAAAAAAAACAAQAAAAB6aXBwZWRQSwUGAAAAAAEAAQA0AAAAKwAAAAAA"

local function unzip()
  scratch:write("archive.zip", text.base64_decode(archive))
  return works({ { "unzip", "-q", "-o", "archive.zip" }, { "cat", "zipped" } }, "^packed\n$")
end

local function process_status() return works({ { "ps" } }, "PID") end

local function shows_environment()
  local shown <const> = "SBA_SHOWN=here"
  local ok, why = works({ { "env" } }, shown, shown)
  return ok or works({ { "printenv" } }, shown, shown), why
end

local function difference()
  scratch:write("other", "two\n")
  local outcome, why = run { "diff", "-u", "one", "other" }
  if not outcome then return nil, why end
  return outcome.exit_code == 1 and outcome.stdout:find("@@ -1 +1 @@\n-one\n+two\n", 1, true), "it does not write unified diffs"
end

local git <const> = {
  "git init -q repository", "cp one repository", "git -C repository add one",
  "git -C repository -c user.name=x -c user.email=x@localhost commit -q -m x", "git -C repository status --short",
  "git -C repository diff", "git -C repository log --oneline",
}

-- Where TLS libraries look: Debian and Alpine, Fedora, openSUSE, others.
local bundles <const> = {
  "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
}

local function trust_store()
  for _, path in ipairs { environment.SSL_CERT_FILE or bundles[1], table.unpack(bundles) } do
    local bytes = file.read(path, LARGEST_BUNDLE)
    if bytes and bytes:find("BEGIN CERTIFICATE", 1, true) then return true end
  end
  return nil, "none of the usual files holds a certificate"
end

--- A check that the directory takes a new file.
local function writable(path)
  return function()
    local directory, failure = workspace.open(path)
    if not directory then return nil, failure.message end
    local name, written = ".sba-check-" .. own_pid
    written, failure = directory:write(name, "")
    if not written then return nil, failure.message end
    return os.remove(path .. "/" .. name)
  end
end

local secret_names <const> = { "TOKEN$", "SECRET$", "PASSWORD$", "API_KEY$", "ACCESS_KEY$", "CREDENTIALS$" }
local secret_files <const> = { ".git-credentials", ".netrc", ".aws/credentials", ".docker/config.json", ".ssh/id_rsa", ".ssh/id_ed25519" }

local function no_credentials()
  for name in pairs(environment) do
    for _, pattern in ipairs(secret_names) do
      if name:upper():find(pattern) then return nil, "the environment has " .. name end
    end
  end
  for _, name in ipairs(secret_files) do
    local path = (environment.HOME or "/root") .. "/" .. name
    if file.read(path, LARGEST_BUNDLE) then return nil, "there is " .. path end
  end
  return true
end

local function not_root() return not identity.is_root(), "it runs as root; give the image a USER" end

local workspace_path <const> = environment.CYNODE_WORKSPACE_DIR or "/workspace"

-- Level, requirement of the specification, what, check.
local everywhere <const> = {
  { "MUST", "REQ-SANDBX-0126", "/bin/sh is a POSIX shell", posix_shell },
  { "MUST", "REQ-SANDBX-0126", "cat", try({ "cat one" }, "^one\n$") },
  { "MUST", "REQ-SANDBX-0126", "cp", try({ "cp one two", "cat two" }, "^one\n$") },
  { "MUST", "REQ-SANDBX-0126", "mv", try({ "cp one two", "mv two three", "cat three" }, "^one\n$") },
  { "MUST", "REQ-SANDBX-0126", "rm", try { "cp one two", "rm two" } },
  { "MUST", "REQ-SANDBX-0126", "mkdir", try { "mkdir -p deep/down" } },
  { "MUST", "REQ-SANDBX-0126", "chmod", try { "chmod 600 one" } },
  { "MUST", "REQ-SANDBX-0126", "chown", try { "chown " .. own_id .. " one" } },
  { "MUST", "REQ-SANDBX-0126", "find", try({ "find . -name one -type f" }, "^./one\n$") },
  { "MUST", "REQ-SANDBX-0126", "tar", try({ "tar -cf one.tar one", "tar -xOf one.tar one" }, "^one\n$") },
  { "MUST", "REQ-SANDBX-0126", "gzip", try({ "cp one packed", "gzip -f packed", "gzip -d packed.gz", "cat packed" }, "^one\n$") },
  { "MUST", "REQ-SANDBX-0126", "unzip", unzip },
  { "MUST", "MinimumRequiredSoftware", "zip", try { "zip -q new.zip one" } },
  { "MUST", "REQ-SANDBX-0126", "a process-status tool (ps)", process_status },
  { "MUST", "REQ-SANDBX-0126", "a tool that shows the environment (env, printenv)", shows_environment },
  { "MUST", "REQ-SANDBX-0126", "certificates of authorities (ca-certificates)", trust_store },
  { "SHOULD", "MinimumRequiredSoftware", "date", try({ "date -u +%Y" }, "^%d%d%d%d\n$") },
  { "MUST", "REQ-SANDBX-0105", "a command's exit status, stdout and stderr", streams },
  { "MUST", "REQ-SANDBX-0108", "a writable " .. workspace_path, writable(workspace_path) },
  { "SHOULD", "FilesystemWorkingDirs", "a writable /tmp", writable "/tmp" },
  { "MUST", "REQ-SANDBX-0100", "no credentials inside", no_credentials },
}

local runner <const> = {
  { "MUST", "SbaContainerImage", "bash", bash },
  { "MUST", "SbaContainerImage", "diff", difference },
  { "MUST", "SbaContainerImage", "jq", try({ "jq -n -c {a:(1+1)}" }, '^{"a":2}\n$') },
  { "MUST", "SbaContainerImage", "git, used locally", try(git, "^%x+ x\n$") },
  { "MUST", "SbaContainerImage", "python3", python3 },
  { "MUST", "SbaContainerImage", "a user that is not root", not_root },
  { "MUST", "SbaContainerImage", "a writable /job", writable "/job" },
}

local function label(config, name) return type(config.Labels) == "table" and config.Labels[name] or nil end

local function is_compatible(config)
  return label(config, "io.cynodeai.sandbox.agent-compatible") == "true", 'io.cynodeai.sandbox.agent-compatible is not "true"'
end

local function has_purpose(config)
  local purpose = label(config, "io.cynodeai.sandbox.purpose")
  if not purpose then return nil, "io.cynodeai.sandbox.purpose is not there" end
  for token in (purpose .. ","):gmatch "([^,]*)," do
    if not token:find "^[%w-]+$" then return nil, ('"%s" is not a list of words with commas between them'):format(purpose) end
  end
  return true
end

local function names_user(config)
  local user = config.User or ""
  if user == "" or user:find "^0%f[%D]" or user:find "^root%f[^%a]" then return nil, "it says root, or nothing" end
  return user:find "^%d" ~= nil, ("Kubernetes' runAsNonRoot wants a number, not %s"):format(user)
end

local function no_ports(config)
  return type(config.ExposedPorts) ~= "table" or next(config.ExposedPorts) == nil, "EXPOSE is not wanted: nothing connects to a sandbox"
end

local function runs_us(config)
  local first = type(config.Entrypoint) == "table" and config.Entrypoint[1] or ""
  return first:find "cynode%-sba$" ~= nil, ("it is %s"):format(first == "" and "not set" or first)
end

local settings <const> = {
  { "MUST", "REQ-SANDBX-0124", "the label that agents may use it", is_compatible },
  { "SHOULD", "REQ-SANDBX-0127", "the label of its purpose", has_purpose },
  { "SHOULD", "SbaContainerImage", "USER is a number, not root's", names_user },
  { "SHOULD", "REQ-SANDBX-0103", "no listening ports", no_ports },
  { "SHOULD", "SbaContainerImage", "ENTRYPOINT is cynode-sba", runs_us },
}

--- Says how each point of a group is met. Returns how many that must be are not.
local function go_through(title, points, config)
  local missing = 0
  print(title)
  for _, point in ipairs(points) do
    local level, requirement, what, check = table.unpack(point)
    local ok, why = check(config)
    local word = ok and "ok" or level == "MUST" and "MISSING" or "remark"
    if word == "MISSING" then missing = missing + 1 end
    print(("  %-8s %-6s %-23s  %s%s"):format(word, level, requirement, what, ok and "" or ": " .. (why or "no")))
  end
  return missing
end

--- The settings of the image that `podman image inspect` or `docker image inspect` describes.
local function read_config(path)
  local bytes, failure = file.read(path, LARGEST_DESCRIPTION)
  local description = bytes and json.decode(bytes)
  local image = type(description) == "table" and (description[1] or description)
  if image and image.Config then return image.Config end
  io.stderr:write("requirements: ", failure and failure.message or "this is not what `podman image inspect` prints", "\n")
  os.exit(2)
end

--- A directory of our own to try things in: below /tmp, or else where there is one.
local function new_scratch()
  for _, place in ipairs { "/tmp", workspace_path, "/dev/shm", "/" } do
    local path = workspace.open(place) and file.make_temporary_directory(place)
    local directory = path and workspace.open(path)
    if directory and directory:write("one", "one\n") then return directory, path end
  end
  io.stderr:write("requirements: neither /tmp nor ", workspace_path, " can be written to: nothing can be tried\n")
  os.exit(1)
end

local config = arg[1] and read_config(arg[1])
local path
scratch, path = new_scratch()
local missing = go_through("Every sandbox image", everywhere) + go_through("The runner's image", runner)
if config then missing = missing + go_through("What is said of the image", settings, config) end
run { "rm", "-rf", path }
print(missing == 0 and "All that must be there is." or ("%d of what must be there is missing."):format(missing))
os.exit(missing == 0 and 0 or 1, true)
