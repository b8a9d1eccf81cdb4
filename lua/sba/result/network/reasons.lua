-- SPDX-License-Identifier: Apache-2.0
-- The words with which a line says that the outside was missing, whichever tool wrote it, and whom it wanted. tests/network holds
-- what the tools really say.

local reasons = {}

-- { kind, pattern }; the first that fits counts; captures are host and port. Kinds: "name": it does not resolve; "unreachable"; "refused"
-- by the proxy; "forbidden" by the proxy or the server, which counts where there is a proxy; "dead": the proxy does not answer;
-- "silent": somebody does not answer, which counts where he is known and not the loopback.
local spellings = {
  { "refused", "CONNECT tunnel failed, response %d" },
  { "refused", "Received HTTP code %d+ from proxy after CONNECT" },
  { "refused", "Tunnel connection failed: %d" },
  { "refused", "[Uu]nable to tunnel through proxy" },
  { "refused", "Proxy tunneling failed: " },
  { "refused", "Cannot connect to HTTPS server through proxy" },
  { "refused", "Proxy connection failed" },
  { "refused", "tunnel error: unsuccessful" },
  { "refused", "tunneling socket could not be established, statusCode=%d" },
  { "dead", "tunneling socket could not be established, cause=" },
  { "forbidden", " GET https?://%S+: [%a ]+ %- 403$" },
  { "refused", 'Get "https://[^"]+": %u[%a ]*$' }, -- the reason phrase of the proxy's answer
  { "forbidden", "The requested URL returned error: 40[37]$" },
  { "forbidden", "ERROR 403: " },
  { "forbidden", " 403 403 [%a ]+ %- GET https?://" },
  { "forbidden", "  403  [%a ]+ %[IP: " },
  { "forbidden", "Access failed: 403 " },
  { "forbidden", ' 403 "[%a ]+"' },
  { "forbidden", "The response status is not successful%. status=403" },
  { "dead", "Cannot connect to proxy" },
  { "dead", "proxyconnect tcp: " },
  { "name", "[Cc]ould not resolve host: ([%w._-]+)" },
  { "name", "[Cc]ould not resolve hostname ([%w._-]+)" },
  { "name", "unable to resolve host address [‘'`]*([%w._-]+)" },
  { "name", "[Cc]ould not resolve '([^']+)'" },
  { "name", "failure resolving '([^']+)'" },
  { "name", "getaddrinfo EAI_AGAIN ([%w._-]+)" },
  { "name", "getaddrinfo ENOTFOUND ([%w._-]+)" },
  { "name", "dial tcp: lookup ([%w._-]+)" },
  { "name", "bad address '([^']+)'" },
  { "name", "UnknownHostException: ([%w._-]+)" },
  { "name", "Unknown host ([%w._-]+)" },
  { "name", "getaddrinfo: ([%w._-]+) %d+: " },
  { "name", 'getaddrinfo for host "([^"]+)"' },
  { "name", "getaddrinfo for ([%w._-]+) failed" },
  { "name", 'getaddrinfo%("([^"]+)"' },
  { "name", "unable to look up ([%w._-]+)" },
  { "name", 'translate host name "([^"]+)"' },
  { "name", "[Nn]ame resolution for ([%w._-]+) failed" },
  { "name", "failed to resolve address for ([%w._-]+)" },
  { "name", "^Could not reach host ([%w._-]*%w)" },
  { "name", "^Host ([%w._-]+) not found: %d+%(NXDOMAIN%)" },
  { "name", "can't find ([%w._-]+): NXDOMAIN" },
  { "name", "for ([%w._-]+) failed: network unreachable" },
  { "name", "^;; communications error to " },
  { "name", "^;; no servers could be reached" },
  { "name", "Temporary failure in name resolution" },
  { "name", "Name or service not known" },
  { "name", "No address associated with hostname" },
  { "name", "host name resolve timeout" },
  { "name", "keyserver receive failed: No name" },
  { "unreachable", "[Nn]etwork is unreachable" },
  { "unreachable", "[Nn]o route to host" },
  { "unreachable", "ENETUNREACH" },
  { "unreachable", "EHOSTUNREACH" },
  { "silent", "Failed to connect to ([%w._-]+) port (%d+)" },
  { "silent", "[Cc]onnecting to ([%w._-]+):(%d+)%.%.%. failed: Connection " },
  { "silent", "[Cc]onnecting to .-|([%d.]+)|:(%d+)%.%.%. failed: Connection " },
  { "silent", "[Cc]ould not connect to ([%w._-]+):(%d+) " },
  { "silent", "connection to ([%w._-]+):(%d+) ?%(?[Cc]onnection " },
  { "silent", "connection to ([%w._-]+):(%d+)$" },
  { "silent", "refused %- connect%(2%) for ([%w._-]+):(%d+)" },
  { "silent", "ECONNREFUSED ([%d.]+):(%d+)" },
  { "silent", "ETIMEDOUT ([%d.]+):(%d+)" },
  { "silent", "dial tcp ([%w._-]+):(%d+): " },
  { "silent", "connect to host ([%w._-]+) port (%d+): Connection " },
  { "silent", "connect to ([%w._-]+) port (%d+) %(tcp%) failed: Connection " },
  { "silent", "[Cc]onnection refused" },
  { "silent", "[Cc]onnection timed out" },
}

---Why a line says that the outside was missing; nil where it does not.
---@param line string
---@return string? kind, string? host, string? port
function reasons.of(line)
  for _, spelling in ipairs(spellings) do
    local from, _, host, port = line:find(spelling[2]) -- bounded: a line has 600 bytes at most
    if from then return spelling[1], host ~= "" and host or nil, port end
  end
end

-- Where else a text names a host, the first that fits.
local places = {
  "%f[%a]%a+://[^/%s'\"@]*@([%w._-]+)", "%f[%a]%a+://([%w._-]+)", "host='([%w._-]+)'", "to host ([%w._-]+) port", "to ([%w._-]+) port %d",
  " at ([%w._-]+):%d+: ", "lookup failure: +([%w._-]+):%d", "^%l+: ([%l%d_-]+%.[%l%d._-]+): ", "Can't connect to ([%w._-]+):%d",
  "%-connect ([%w._-]+):%d", "%f[%w]%w[%w._-]*@([%w_-]+%.[%w._-]+)",
}

---A host that a text names.
---@param text string
---@return string?
function reasons.host(text)
  for _, place in ipairs(places) do
    local host = text:match(place) -- bounded: at most 8192 bytes of a command
    if host then return host end
  end
end

---The host that a command asks for, as far as its words show.
---@param text string
---@return string?
function reasons.asked(text)
  return reasons.host(text) or text:match "%f[%d](%d+%.%d+%.%d+%.%d+)%f[^%d.]" -- bounded: at most 8192 bytes of a command
end

return reasons
