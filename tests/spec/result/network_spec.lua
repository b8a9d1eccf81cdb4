-- SPDX-License-Identifier: Apache-2.0
local network = require "sba.result.network"

--- What a failed command is said to have wanted. did: its shell; and exit_code (default 1), stderr, stdout, cut.
local function wanted(did, environment)
  local result = {
    exit_code = did.exit_code or 1, stdout = did.stdout or "", stderr = did.stderr or "",
    stderr_truncated = did.cut, stdout_truncated = did.cut,
  }
  return network.wanted(result, { shell = did.shell or "tool" }, environment or {})
end

-- What tools say, and the host that each line names.
local LINES <const> = [[
x.example.org | curl: (6) Could not resolve host: x.example.org
x.example.org | fatal: unable to access 'https://u:p@x.example.org/a.git/': Could not resolve host: x.example.org
x.example.org | wget: unable to resolve host address ‘x.example.org’
x.example.org | ssh: Could not resolve hostname x.example.org: Temporary failure in name resolution
x.example.org | Can't connect to x.example.org:80 (Temporary failure in name resolution) at -e line 1.
x.example.org | E: Failed to fetch http://x.example.org/a.deb  Temporary failure resolving 'x.example.org'
x.example.org | npm ERR! request to https://x.example.org/a failed, reason: getaddrinfo EAI_AGAIN x.example.org
x.example.org | npm ERR! network request to https://x.example.org/a failed, reason: connect ENETUNREACH 198.51.100.7:443
x.example.org | go: dial tcp: lookup x.example.org on 127.0.0.1:53: server misbehaving
x.example.org | wget: bad address 'x.example.org'
x.example.org | WARNING: fetching https://x.example.org/main: DNS: transient error (try again later)
x.example.org | ERROR: https://x.example.org/v3.19/main: temporary error (try again later)
x.example.org | java.net.UnknownHostException: x.example.org
x.example.org | [ERROR] Could not transfer artifact a:b:pom:1 from/to c (https://x.example.org/maven2): Unknown host x
x.example.org | Could not reach host x.example.org. Check your network connection and try again.
x.example.org | ping: unknown host x.example.org
x.example.org | error NU1301: Resource temporarily unavailable (x.example.org:443)
x.example.org | psql: error: could not translate host name "x.example.org" to address: Try again
198.51.100.7 | curl: (7) Failed to connect to 198.51.100.7 port 80 after 0 ms: Couldn't connect to server
198.51.100.7 | ssh: connect to host 198.51.100.7 port 22: Network is unreachable
198.51.100.7 | error: connect EHOSTUNREACH 198.51.100.7:443
none | getaddrinfo: Try again (SocketError)
none | curl: (6) getaddrinfo() failed: Name has no usable address
none | urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>
none | urllib.error.URLError: <urlopen error [Errno -3] Try again>
none | Retrying (Retry(total=0)) after 'NewConnectionError(': [Errno -2] Name or service not known')': /simple/leftpad/
none | nc: connect: No route to host
none |   Caused by: dns error: failed to lookup address information: Try again
none | Caused by: java.nio.channels.UnresolvedAddressException
none | 2026/01/01 lookup x.example.org on 127.0.0.1:53: no such host
]]
local UNRESOLVED <const> = "curl: (6) Could not resolve host: files.example.org\n"
local PROXY <const> = { "https_proxy=http://127.0.0.1:3128" }

describe("a command that wanted the outside", function()
  it("is known by a phrase of libc, curl or another tool, with the host that the line names", function()
    for name, line in LINES:gmatch "(%S+) | ([^\n]+)" do
      assert.equal(name, assert(wanted { stderr = line }, line).host or "none")
    end
  end)

  it("is found in Maven's stdout, where all of its words are", function()
    local words <const> = "[INFO] BUILD FAILURE\n[ERROR] Could not transfer artifact a:b:pom:1 from/to central "
      .. "(https://files.example.org/maven2): files.example.org: Unknown host files.example.org -> [Help 1]\n"
    assert.equal("files.example.org", wanted({ shell = "mvn -q test", stdout = words }).host)
    assert.is_nil(wanted { shell = "sh test", stdout = "ping: unknown host files.example.org\n" })
    local coloured <const> = "[\27[1;31mERROR\27[m] failed for https://198.51.100.7/a: Network is unreachable\n"
    assert.equal("198.51.100.7", wanted({ shell = "mvn -q test", stdout = coloured }).host)
  end)

  it("is said to have wanted the host of the command, where the tool names none", function()
    local line <const> = "socket.gaierror: [Errno -2] Name or service not known"
    local found <const> = wanted { shell = "python3 fetch.py https://b.example.org/x", stderr = line .. "\n" }
    assert.same({ host = "b.example.org", line = line, policy = false }, found)
  end)

  it("may have been told to say nothing: the exit code of the last program is enough then", function()
    local url = "https://files.example.org/x"
    assert.equal("files.example.org", wanted({ shell = "wget -q " .. url, exit_code = 4 }).host)
    assert.equal("files.example.org", wanted({ shell = "mkdir a; A=1 /usr/bin/curl -s " .. url, exit_code = 6 }).host)
    assert.is_true(wanted({ shell = "curl -s " .. url, exit_code = 56 }, PROXY).policy)
    for _, did in ipairs {
      { shell = "curl -s " .. url, exit_code = 56 }, { shell = "wget -q " .. url, exit_code = 8 },
      { shell = "curl -s " .. url .. "; sh x", exit_code = 6 },
      { shell = "curl " .. url, exit_code = 6, stderr = "no" },
      { shell = "curl -s http://localhost:1/", exit_code = 6 },
    } do
      assert.is_nil(wanted(did))
    end
  end)

  it("may have been refused by a proxy, which is a policy where the status is 403", function()
    for line, policy in pairs {
      ["curl: (56) CONNECT tunnel failed, response 403"] = true,
      ["curl: (56) Received HTTP code 403 from proxy after CONNECT"] = true,
      ["OSError: Tunnel connection failed: 403 Filtered"] = true, ["Proxy tunneling failed: Forbidden"] = true,
      ["npm ERR! tunneling socket could not be established, statusCode=403"] = true,
      ["curl: (56) CONNECT tunnel failed, response 502"] = false,
      ['java.io.IOException: Unable to tunnel through proxy. Proxy returns "HTTP/1.1 403 Filtered"'] = true,
      ["Caused by: java.io.IOException: Tunnel failed, got: 403"] = true,
      ["The proxy tunnel request to proxy 'http://127.0.0.1:3128/' failed with status code '403'."] = true,
      ['go: example.org/a@latest: Get "https://proxy.example.org/a/@v/list": Forbidden'] = true,
    } do
      assert.equal(policy, assert(wanted { stderr = line }, line).policy)
    end
    -- The URL alone speaks of a proxy; the status is another.
    assert.is_nil(wanted { stderr = "reading https://proxy.example.org/list: 403 Forbidden" })
    assert.is_nil(wanted { stderr = "the proxy sent 4030 bytes" })
  end)

  it("may have a server's 403 from its proxy, which is a policy where the URL is http://", function()
    for _, line in ipairs {
      "ERROR 403: Filtered.", "curl: (22) The requested URL returned error: 403", "403 Filtered at -e line 1.",
    } do
      for shell, is_policy in pairs {
        tool = false, ["curl -f https://x.example.org/"] = false, ["curl -f http://x.example.org/"] = true,
      } do
        local did <const> = { shell = shell, stderr = line }
        assert.equal(is_policy, wanted(did, PROXY).policy)
        assert.is_nil(wanted(did))
        assert.is_nil(wanted(did, { "https_proxy=", "NO_PROXY=x" }))
      end
    end
  end)

  it("is known by the end of stderr, or of stdout where the command sends stderr there", function()
    local of_make <const> = "make: *** [Makefile:2: data] Error 6\n"
    assert.truthy(wanted { stderr = ("x"):rep(10000000) .. "\n" .. UNRESOLVED .. of_make })
    assert.is_nil(wanted { stderr = UNRESOLVED .. ("x\n"):rep(4096) })
    assert.is_nil(wanted { shell = "./fetch", stdout = UNRESOLVED })
    assert.truthy(wanted { shell = "./fetch 2>&1", stdout = UNRESOLVED })
    assert.is_nil(wanted { stderr = UNRESOLVED, cut = true })
  end)
end)

describe("a command that failed for another reason", function()
  it("succeeded, or says nothing of the outside", function()
    assert.is_nil(wanted { exit_code = 0, stderr = UNRESOLVED })
    assert.is_nil(wanted { stderr = "error: Could not resolve './module' from src/index.js\n" })
    local hostname <const> = "sudo: unable to resolve host build: Temporary failure in name resolution\nerror\n"
    assert.is_nil(wanted { stderr = hostname })
  end)

  it("wanted a service of its own", function()
    for _, name in ipairs { "localhost", "127.0.0.1", "db.localhost" } do
      local words <const> = "curl: (7) Failed to connect to %s port 1 after 0 ms: Couldn't connect to server"
      assert.is_nil(wanted { stderr = words:format(name) })
    end
  end)

  it("is a test suite whose report follows", function()
    for _, report in ipairs {
      "FAILED (failures=1)", "3 passed, 1 failed", "1 of 9 tests failed", "AssertionError: 1 != 2",
      "not ok 3 - fetches",
    } do
      assert.is_nil(wanted { stderr = UNRESOLVED .. report .. "\n" })
      assert.is_nil(wanted { stderr = UNRESOLVED, stdout = report .. "\n" })
    end
  end)
end)
