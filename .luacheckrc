-- SPDX-License-Identifier: Apache-2.0
std = "lua54"
cache = false
color = false
max_line_length = 140
files["lua/types"] = { ignore = { "631" } } -- signatures are one line
files["tests/spec"] = { std = "+busted" }
files["tests/bind"] = { std = "+busted" }
