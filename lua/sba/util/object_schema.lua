-- SPDX-License-Identifier: Apache-2.0
-- The JSON Schema of objects with certain members and no others.

---@param members any[] names and their schemas by turns, in the order in which they are written; "name!" must be there
---@param schema? table its other keywords
---@return table schema
return function(members, schema)
  schema = schema or {}
  local order, required, properties = {}, {}, {}
  for i = 1, #members, 2 do
    local name = members[i]
    if name:sub(-1) == "!" then
      name = name:sub(1, -2)
      required[#required + 1] = name
    end
    order[#order + 1], properties[name] = name, members[i + 1]
  end
  schema.type, schema.additionalProperties, schema.properties = "object", false, properties
  schema.order, schema.required = order, #required > 0 and required or nil
  return schema
end
