-- SPDX-License-Identifier: Apache-2.0
-- An answer of these lines, as sba.model.wire reads it; one that ends with "|" lacks its end. A table at the end is its
-- failure.
return function(lines)
  local i, exchange = 0, { idle = function() end }
  function exchange.line()
    i = i + 1
    if type(lines[i]) ~= "string" then return nil, lines[i] end
    local whole = lines[i]:gsub("|$", "")
    return whole, whole == lines[i]
  end
  return exchange
end
