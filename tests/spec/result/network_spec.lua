-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local network = require "sba.result.network"

local TABLE <const> = debug.getinfo(1, "S").source:match "^@(.*/)" .. "../../network/learned.jsonl"

local PROXIES <const> = {
  proxy_refuses = { "https_proxy=http://127.0.0.1:3128", "HTTP_PROXY=http://127.0.0.1:3128/" },
  proxy_dead = { "https_proxy=http://127.0.0.1:3129", "http_proxy=http://user:secret@127.0.0.1:3129" },
}

-- Where a tool does not say what was missing, so that nobody can tell; true: in no situation.
local SILENT <const> = {
  cpanm = true, rscript = true, bundle = { proxy_refuses = true }, gpg = { no_answer = true, proxy_refuses = true, proxy_dead = true },
}

local function is_silent(row, where)
  return row.exit == 0 or SILENT[row.tool] == true or SILENT[row.tool] and SILENT[row.tool][where] or false
end

--- What a failed command is said to have wanted; what it did is a table: shell, argv or command, and exit_code, stderr, stdout.
local function wanted(did, environment)
  local result = {
    exit_code = did.exit_code, stdout = did.stdout or "", stderr = did.stderr or "", stderr_truncated = did.cut, stdout_truncated = did.cut,
  }
  return network.wanted(result, { shell = did.shell, argv = did.argv, command = did.command, args = did.args,
    env = did.env }, environment or {})
end

local UNRESOLVED <const> = "curl: (6) Could not resolve host: files.example.org\n"
local PIP <const> = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x>: Failed to establish a new "
  .. "connection: [Errno -3] Temporary failure in name resolution')': /simple/leftpad/\n"
local NO_VERSION <const> = "ERROR: Could not find a version that satisfies the requirement leftpad (from versions: none)\n"
  .. "ERROR: No matching distribution found for leftpad\n"

describe("what tools said when they were run without the outside", function()
  local count = 0
  for line in io.lines(TABLE) do
    local row = assert(json.decode(line))
    for _, where in ipairs(row.situations) do
      it(("is known of %s, %s"):format(row.tool, where), function()
        row.argv, row.exit_code = row.arguments.argv, row.exit
        assert.are.equal(not is_silent(row, where), wanted(row, PROXIES[where]) ~= nil)
      end)
      count = count + 1
    end
  end
  it("is there", function() assert.is_true(count > 300) end)
end)

describe("what was wanted", function()
  local function of(did, environment) return assert(wanted(did, environment)) end

  it("is the host that the tool names", function()
    assert.are.equal("the host files.example.org, whose name does not resolve", of { command = "curl", exit_code = 6, stderr = UNRESOLVED })
    assert.are.equal("the host 198.51.100.7, which cannot be reached", of {
      command = "ssh", exit_code = 255, stderr = "ssh: connect to host 198.51.100.7 port 22: Network is unreachable\n" })
  end)

  it("is the host that the command names, where the tool does not", function()
    assert.are.equal("the host b.example.org, which the proxy refuses", of {
      argv = { "curl", "https://user:pw@b.example.org/x" }, exit_code = 56, stderr = "curl: (56) CONNECT tunnel failed, response 403\n" })
  end)

  it("is the package, where the tool names no host", function()
    assert.are.equal("the package leftpad", of { argv = { "pip", "install", "leftpad" }, exit_code = 1, stderr = PIP .. NO_VERSION })
  end)

  it("is told without what a terminal obeys, and in bounds", function()
    local name = "a\27b" .. ("x"):rep(1000)
    local words = of { command = "ssh", exit_code = 255,
      stderr = "ssh: Could not resolve hostname " .. name .. ": Name or service not known\n" }
    assert.is_nil(words:find "%c")
    assert.is_true(#words < 250)
  end)

  it("is what a dead proxy kept away", function()
    local did = { argv = { "curl", "https://b.example.org/" }, exit_code = 7,
      stderr = "curl: (7) Failed to connect to 127.0.0.1 port 3129 after 0 ms: Couldn't connect to server\n" }
    assert.are.equal("the host b.example.org through a proxy that does not answer", of(did, PROXIES.proxy_dead))
    did.env = { ALL_PROXY = "http://127.0.0.1:3129" }
    assert.are.equal("the host b.example.org through a proxy that does not answer", of(did))
  end)
end)

describe("the outside was missing", function()
  local function missing(did, environment)
    assert.is_string(wanted(did, environment))
  end

  it("for a tool that make ran", function()
    missing { argv = { "make", "data" }, exit_code = 2, stdout = "curl -sSO https://files.example.org/x\n",
      stderr = UNRESOLVED .. "make: *** [Makefile:2: data] Error 6\n" }
    missing { argv = { "make" }, exit_code = 2,
      stderr = UNRESOLVED .. "make[1]: *** [Makefile:2: data] Error 6\nmake: *** [Makefile:5: all] Error 2\n" }
    missing { argv = { "make" }, exit_code = 2, stdout = "svn checkout https://files.example.org/a\n",
      stderr = "svn: E670002: Name or service not known\nmake: *** [Makefile:2: a] Error 1\n" }
  end)

  it("for a tool in a script of its own", function()
    missing { argv = { "./setup.sh" }, exit_code = 6, stdout = "fetching\n", stderr = UNRESOLVED }
    missing { argv = { "./setup.sh" }, exit_code = 1, stderr = PIP .. NO_VERSION }
    missing { shell = "set -e\ncd src\ncurl -sSO https://files.example.org/x\nmake", exit_code = 6, stderr = UNRESOLVED }
  end)

  it("for a script that ends otherwise once its tool has failed", function()
    missing { shell = "curl -sS https://files.example.org/x | tar xz", exit_code = 2,
      stderr = UNRESOLVED
        .. "\ngzip: stdin: unexpected end of file\ntar: Child returned status 1\ntar: Error is not recoverable: exiting now\n" }
    missing { shell = "curl -sSO https://files.example.org/x || { echo download failed >&2; exit 1; }", exit_code = 1,
      stderr = UNRESOLVED .. "download failed\n" }
  end)

  it("for a tool whose complaints the script sent to stdout", function()
    missing { shell = "pip install leftpad 2>&1", exit_code = 1, stdout = "Defaulting to user installation\n" .. PIP .. NO_VERSION }
    missing { argv = { "bash", "-ec", "git clone https://files.example.org/a 2>&1" }, exit_code = 128,
      stdout = "Cloning into 'a'...\nfatal: unable to access 'https://files.example.org/a/': Could not resolve host: files.example.org\n" }
  end)

  it("for a program of the job's own that the command names", function()
    missing { argv = { "./bin/fetcher", "x" }, exit_code = 3, stderr = "starting\nfetcher: files.example.org: Name or service not known\n" }
  end)

  it("for a tool that is the command, whatever it has written to stdout", function()
    missing { command = "curl", exit_code = 6, stdout = "3 tests failed\n", stderr = UNRESOLVED }
  end)

  it("after progress bars and colours", function()
    missing { command = "curl", exit_code = 6, stderr = "  0     0    0     0\r  0     0    0     0 --:--:-- --:--:--     0" .. UNRESOLVED }
    missing { command = "curl", exit_code = 6, stderr = "\27[1;31m" .. UNRESOLVED .. "\27[0m" }
  end)

  it("where a proxy forbids what only the server could forbid else", function()
    local did = { argv = { "curl", "-f", "https://files.example.org" }, exit_code = 22,
      stderr = "curl: (22) The requested URL returned error: 403\n" }
    missing(did, PROXIES.proxy_refuses)
    assert.is_nil(wanted(did))
  end)
end)

describe("the outside was not missing", function()
  local function nobody(did, environment)
    assert.is_nil(wanted(did, environment))
  end

  it("where the command did not fail", function()
    nobody { command = "curl", exit_code = 0, stderr = UNRESOLVED }
    nobody { command = "curl", stderr = UNRESOLVED } -- ended by a signal
  end)

  it("for a test suite that prints such words in its report", function()
    local report = "test_offline (tests.Fetch) ... ok\ntest_could_not_resolve_host (tests.Fetch) ... FAIL\n"
      .. UNRESOLVED
        .. "FAIL: test_could_not_resolve_host (tests.Fetch)\nTraceback (most recent call last):\n  File \"t.py\", line 3, in test\n"
      .. "AssertionError: 'curl: (6) Could not resolve host: mock' != ''\n\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n"
    nobody { argv = { "python3", "-m", "unittest" }, exit_code = 1, stderr = report }
    nobody { argv = { "python3", "-m", "pytest" }, exit_code = 1,
      stdout = "E   socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
      .. "FAILED t.py::test_gone - socket.gaierror: [Errno -3] Temporary failure in name resolution\n1 failed, 30 passed in 0.12s\n" }
  end)

  it("for a test suite whose last words on stderr are such, but whose report is on stdout", function()
    nobody { argv = { "node", "--test" }, exit_code = 1, stdout = "not ok 1 - retries\n1..1\n# tests 1\n# pass 0\n# fail 1\n",
      stderr = "npm error network request to https://mock.example.org/x failed, reason: getaddrinfo ENOTFOUND mock.example.org\n" }
    nobody { argv = { "./run_tests" }, exit_code = 6, stdout = "6 of 20 tests failed\n", stderr = UNRESOLVED }
    nobody { argv = { "make", "check" }, exit_code = 2, stdout = "1 failed, 2 passed\n",
      stderr = UNRESOLVED .. "make: *** [Makefile:9: check] Error 6\n" }
  end)

  it("where another exit code came from it", function()
    nobody { argv = { "make", "test" }, exit_code = 2, stderr = UNRESOLVED .. "make: *** [Makefile:3: test] Error 1\n" }
    nobody { argv = { "./test.sh" }, exit_code = 1, stderr = UNRESOLVED }
    nobody { argv = { "./test.sh" }, exit_code = 134,
      stderr = "fatal: unable to access 'https://a.example.org/': Could not resolve host: a.example.org\n" }
  end)

  it("where something else failed after it", function()
    nobody { shell = "git fetch; make", exit_code = 2,
      stderr = "fatal: unable to access 'https://a.example.org/': Could not resolve host: a.example.org\n"
      .. "a.c:1:1: error: unknown type name 'in'\nmake: *** [<builtin>: a.o] Error 1\n" }
    nobody { shell = "curl -sSO https://files.example.org/x; ls missing", exit_code = 2,
      stderr = UNRESOLVED .. "ls: cannot access 'missing': No such file or directory\n" }
    nobody { shell = "curl -sSO https://files.example.org/x || true; ./test", exit_code = 134,
      stderr = UNRESOLVED .. "test: test.c:3: main: Assertion `a == b' failed.\n" }
    nobody { argv = { "pip", "install", "leftpad==99" }, exit_code = 1,
      stderr = PIP .. "ERROR: Could not find a version that satisfies the requirement leftpad==99 (from versions: 1.0, 1.1)\n"
        .. "ERROR: No matching distribution found for leftpad==99\n" }
  end)

  it("for words in the output of another program", function()
    nobody { argv = { "grep", "-rn", "resolve", "." }, exit_code = 2, stdout = "log:1:" .. UNRESOLVED,
      stderr = "grep: secret: Permission denied\n" }
    nobody { shell = "cat log; exit 6", exit_code = 6, stdout = UNRESOLVED }
    nobody { shell = "grep -h curl *.log; exit 6", exit_code = 6, stdout = UNRESOLVED }
    nobody { argv = { "cat", "err.log" }, exit_code = 1, stdout = UNRESOLVED, stderr = "cat: other.log: No such file or directory\n" }
  end)

  it("for the log of a mock server and names of tests", function()
    nobody { argv = { "./server_test" }, exit_code = 1,
      stderr = '[mock] 12:00:01 GET / -> "curl: (6) Could not resolve host: a.example.org"\n[mock] 12:00:01 Network is unreachable\n' }
    nobody { argv = { "ctest" }, exit_code = 8, stdout = "3/3 Test #3: could_not_resolve_host ....***Failed\n",
      stderr = "Errors while running CTest\n" }
    nobody { argv = { "go", "test", "./..." }, exit_code = 1,
      stdout = '--- FAIL: TestDial (0.00s)\n    a_test.go:9: dial tcp: lookup mock.example.org: no such host\nFAIL\nFAIL\ta\t0.002s\n' }
    nobody { argv = { "cargo", "test" }, exit_code = 101,
      stderr = "error: test failed, to rerun pass `--lib`\n", stdout = "failed to resolve address for mock: Name or service not known\n" }
  end)

  it("for what only tools that are not named would say on stdout, or an uncaught error of node", function()
    nobody { argv = { "./run" }, exit_code = 1, stdout = "Host mock.example.org not found: 3(NXDOMAIN)\n" }
    nobody { argv = { "make", "docs" }, exit_code = 1, stdout = "[ERROR] Could not render: Unknown host mock\n" }
    nobody { argv = { "./run" }, exit_code = 1, stderr = "Error: getaddrinfo ENOTFOUND mock.example.org\n    at mock (t.js:3:1)\n" }
  end)

  it("for a service on the loopback that does not run", function()
    nobody { argv = { "curl", "http://localhost:8080/health" }, exit_code = 7,
      stderr = "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server\n" }
    nobody { argv = { "psql", "-h", "127.0.0.1" }, exit_code = 2,
      stderr = 'psql: error: connection to server at "127.0.0.1", port 5432 failed: Connection refused\n' }
    nobody { argv = { "python3", "t.py" }, exit_code = 1,
      stderr = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n"
        .. "ConnectionRefusedError: [Errno 111] Connection refused\n" }
    nobody({ argv = { "curl", "http://127.0.0.1:8080/" }, exit_code = 7,
      stderr = "curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: Couldn't connect to server\n" }, PROXIES.proxy_dead)
  end)

  it("where what was printed is not whole", function()
    nobody { command = "curl", exit_code = 6, stderr = UNRESOLVED, cut = true }
  end)

  it("where tools fail for another cause", function()
    nobody { command = "curl", exit_code = 22, stderr = "curl: (22) The requested URL returned error: 404\n" }
    nobody { argv = { "git", "push" }, exit_code = 128, stderr = "fatal: 'origin' does not appear to be a git repository\n"
      .. "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"
      .. "and the repository exists.\n" }
    nobody { argv = { "npm", "test" }, exit_code = 1, stderr = "npm error Test failed.  See above for more details.\n" }
  end)

  it("for bytes without end or sense, in no time", function()
    for _, piece in ipairs { "curl: (6) ", "a", " ", "\r\n", "^[%d%s:-]+",
      "npm error ", "    ", "1:", "fatal: unable to access '", "\27[0", "at " } do
      local stream = piece:rep(2000000 // #piece) .. "x"
      local before = os.clock()
      nobody { shell = "curl x | npm y; exit 1", exit_code = 1, stderr = stream, stdout = stream }
      assert.is_true(os.clock() - before < 5, piece)
    end
  end)

  it("for commands and proxies without end, in no time", function()
    local long, before = ("a"):rep(100000), os.clock()
    for _, shell in ipairs { long, ("a | curl "):rep(10000) } do
      nobody({ shell = shell, exit_code = 1, env = { a_proxy = long .. "/x" } }, { "HTTP_PROXY=" .. long })
    end
    assert.is_true(os.clock() - before < 5)
  end)
end)
