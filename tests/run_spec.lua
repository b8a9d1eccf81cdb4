-- SPDX-License-Identifier: Apache-2.0
-- cynode-sba --lua run_spec.lua SPEC...: runs busted specs inside the host, where every native.* module is at hand.
package.path = "/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;" .. arg[0]:match("^(.*)/") .. "/?.lua;"
  .. arg[0]:match("^(.*)/") .. "/../cmake/?.lua"
package.cpath = "/usr/lib/x86_64-linux-gnu/lua/5.4/?.so;/usr/lib/aarch64-linux-gnu/lua/5.4/?.so"

table.insert(arg, 1, "--output=plainTerminal")
require "busted.runner" { standalone = false }
