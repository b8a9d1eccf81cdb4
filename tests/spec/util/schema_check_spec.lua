-- SPDX-License-Identifier: Apache-2.0
local humanize = require "sba.util.humanize"
local json = require "sba.util.json"
local metaschema = require "metaschema"
local misfit = require "sba.util.schema_document".misfit
local print_schema = require "sba.util.schema_document".print
local schema_check = require "sba.util.schema_check"

-- The lines of all errors that a JSON text has against a schema.
local function errors_of(wanted, text)
  local value, broken = json.decode(text)
  assert.is_nil(broken)
  local _, first = schema_check.check(json.decode(text), wanted, { total = 0, limit = 1 })
  local _, errors = schema_check.check(value, wanted)
  assert.equal(math.min(errors.total, 1), first.total, text)
  assert.same(errors[1], first[1])
  local lines = {}
  for i, failed in ipairs(errors) do lines[i] = schema_check.line(failed) end
  return lines, errors
end

local function check(wanted, text, ...)
  assert.same({ ... }, (errors_of(wanted, text)), text)
end

describe("schema_check.check", function()
  it("knows the types", function()
    local samples = { string = '"x"', integer = "1", boolean = "false", array = "[]", object = "{}", null = "null" }
    for wanted in pairs(samples) do
      for given, text in pairs(samples) do
        assert.equal(wanted == given and 0 or 1, #errors_of({ type = wanted }, text), wanted .. " " .. text)
      end
    end
    check({ type = "number" }, "1.5")
    check({ type = "number" }, "1")
    check({ type = "integer" }, "1.0")
    check({ type = "integer" }, "1e3")
    check({ type = "integer" }, "1.5", "(job): expected an integer, got the number 1.5")
    for _, text in ipairs { "1e300", "-1e300", "9223372036854775808", "12345678901234567890123" } do
      check({ type = "integer" }, text)
    end
    check({ type = "integer" }, "1234567890.12345678901234567890", "(job): expected an integer, got the number "
      .. "1234567890.12345678901234567890, which has more digits than a double holds")
    for _, text in ipairs { "9223372036854775808", "1234567890.12345678901234567890", "1e300" } do
      check({ type = "number" }, text)
    end
    check({ type = { "string", "array", "null" } }, "{}", "(job): expected a string, an array or null, got an object")
  end)

  it("knows the bounds", function()
    check({ type = "integer", minimum = 1 }, "0", "(job): expected an integer from 1, got the number 0")
    check({ type = "integer", minimum = 1 }, "-12345678901234567890123",
      "(job): expected an integer from 1, got the number -9223372036854775808")
    check({ type = "integer", minimum = 1, maximum = 3 }, "4",
      "(job): expected an integer from 1 to 3, got the number 4")
    check({ type = "number", maximum = 3 }, "3")
    check({ type = "number", exclusiveMinimum = 0 }, "0", "(job): expected a number above 0, got the number 0")
    check({ type = "string", minLength = 1 }, '""', "(job): expected a non-empty string, got an empty string")
    check({ type = "string", maxLength = 2 }, '"éé"')
    check({ type = "string", maxLength = 2 }, '"ééé"',
      '(job): expected a string of at most 2 characters, got the string "ééé"')
    check({ type = "string", pattern = "^[0-9]+\\.[0-9]+$" }, '"1x0"',
      [[(job): expected a string that matches ^[0-9]+\.[0-9]+$, got the string "1x0"]])
    check({ type = "string", pattern = "^[0-9]+\\.[0-9]+$" }, '"1.0"')
    check({ type = "array", minItems = 1 }, "[]", "(job): expected a non-empty array, got an empty array")
    check({ type = "array", maxItems = 1 }, "[1,2]", "(job): expected at most 1 elements, got an array of 2")
    check({ const = "a" }, '"b"', '(job): expected "a", got the string "b"')
    check({ enum = { "direct", "agent" } }, '"agnt"',
      '(job): expected one of "direct" or "agent", got the string "agnt"; did you mean "agent"?')
    check({ enum = { 1, json.null } }, "null")
  end)

  it("names every mistake at its pointer, in a fixed order", function()
    local wanted = {
      type = "object", order = { "b", "a" }, required = { "a", "c" }, additionalProperties = false,
      properties = {
        a = { type = "string" }, b = { type = "array", items = { type = "integer" } }, c = {},
        map = { type = "object", additionalProperties = { type = "string" } },
      },
    }
    check(wanted, [[{"x/~y":1,"b":[1,"2",3,null],"map":{"m":1,"k":2},"zzz":{}}]],
      '/b/1: expected an integer, got the string "2"',
      "/b/3: expected an integer, got null",
      "/a: is missing; expected a string",
      "/c: is missing; expected a value",
      "/map/k: expected a string, got the number 2",
      "/map/m: expected a string, got the number 1",
      '/x~1~0y: unknown field "x/~y"',
      '/zzz: unknown field "zzz"')
  end)

  it("guesses what was meant", function()
    local wanted = {
      type = "object", additionalProperties = false, properties = { working_dir = {}, job_id = {}, path = {} },
      aliases = { cwd = "working_dir" },
    }
    check(wanted, '{"workingDir":1}', '/workingDir: unknown field "workingDir"; did you mean "working_dir"?')
    check(wanted, '{"JOBID":1}', '/JOBID: unknown field "JOBID"; did you mean "job_id"?')
    check(wanted, '{"paht":1}', '/paht: unknown field "paht"; did you mean "path"?')
    check(wanted, '{"cdw":1}', '/cdw: unknown field "cdw"; did you mean "cwd"?') -- two letters that changed places
    check(wanted, '{"cwdd":1}', '/cwdd: unknown field "cwdd"; did you mean "cwd"?')
    check(wanted, '{"p":1}', '/p: unknown field "p"')
    assert.is_nil(humanize.near(("x"):rep(100000), { "path" }))
  end)

  it("takes an alias for its name, not both", function()
    local wanted = {
      type = "object", additionalProperties = false, properties = { working_dir = { type = "string" } },
      aliases = { cwd = "working_dir" },
    }
    check(wanted, '{"cwd":"a"}')
    check(wanted, '{"cwd":1}', "/cwd: expected a string, got the number 1")
    check(wanted, '{"cwd":"a","working_dir":"b"}',
      '/cwd: "cwd" and "working_dir" are two names of one field; give only one')
  end)

  it("has exactly one of", function()
    local one_of <const> = { { required = { "command" } }, { required = { "argv" } }, { required = { "shell" } } }
    local wanted = { type = "object", oneOf = one_of }
    check(wanted, '{"argv":[]}')
    check(wanted, "{}", '(job): expected exactly one of "command", "argv" or "shell", got none')
    check(wanted, '{"argv":[],"shell":""}',
      '(job): expected exactly one of "command", "argv" or "shell", got "argv" and "shell"')
  end)

  it("reports at most 100, counts the rest, and gives up where nearly all is wrong", function()
    for given, counted in pairs { [500] = 500, [100000] = 1000 } do
      local _, errors = errors_of({ type = "array", items = { type = "string" } }, "[" .. ("1,"):rep(given - 1) .. "1]")
      assert.same({ 100, counted, counted == 1000 }, { #errors, errors.total, schema_check.is_enough(errors) })
    end
  end)

  it("keeps messages to one short line whatever the names are", function()
    local wanted = { type = "object", additionalProperties = false, properties = { a = { type = "integer" } } }
    local value = { ["evil\n\27[31mname\127"] = 1, [("é"):rep(100000)] = 2, a = ("\r\n"):rep(100000) }
    for _, line in ipairs(errors_of(wanted, json.encode(value))) do
      assert.is_nil(line:find "%c", line)
      assert.is_true(#line < 1000, line)
    end
  end)

  it("follows a schema that holds itself as deep as the value goes", function()
    local entry = { type = "object", additionalProperties = false, properties = { name = { type = "string" } } }
    entry.properties.children = { type = "array", items = entry }
    check(entry, '{"name":"a","children":[{"children":[{"name":1}]}]}',
      "/children/0/children/0/name: expected a string, got the number 1")
    assert.is_nil(metaschema(entry))
    local printed = json.decode(print_schema(entry))
    assert.equal("#", printed.properties.children.items["$ref"])
  end)
end)

describe("the final form", function()
  it("names aliases, fills defaults, makes whole floats integers", function()
    local wanted = {
      type = "object", aliases = { cwd = "dir" },
      properties = {
        dir = { type = "string" }, n = { type = "integer" }, on = { type = "boolean", default = false },
        list = { type = "array", items = { type = "integer" }, default = json.array {} },
      },
    }
    local value = schema_check.check(json.decode '{"cwd":"x","n":5.0}', wanted)
    assert.same({ dir = "x", n = 5, list = {}, on = false }, value)
    assert.equal("integer", math.type(value.n))
    assert.is_true(json.is_array(value.list))
    assert.is_false(rawequal(value.list, wanted.properties.list.default))
    assert.equal("integer", math.type(schema_check.check(json.decode '{"list":[1.0]}', wanted).list[1]))
  end)
end)

describe("metaschema", function()
  it("finds what nobody would read", function()
    assert.is_nil(metaschema { type = "object", properties = { a = { type = { "string", "null" } } }, order = { "a" } })
    assert.equal("schema.properties.a.minLenght: is no known keyword",
      metaschema { properties = { a = { minLenght = 1 } } })
    assert.is_nil(metaschema { propertyNames = { title = "a letter", pattern = "^[a-z]$" } })
    assert.equal("schema.propertyNames: must have a pattern and a title",
      metaschema { propertyNames = { pattern = "a" } })
    assert.equal("schema.type: has the unknown type 'text'", metaschema { type = "text" })
    assert.equal("schema: order names 'b', which is not a property", metaschema { properties = {}, order = { "b" } })
    assert.equal("schema.items: the alias 'x' must stand for an optional property and be none itself",
      metaschema { items = { required = { "a" }, properties = { a = {} }, aliases = { x = "a" } } })
  end)
end)

describe("a schema of others", function()
  it("bounds numbers, texts and lists, and takes null for none of them", function()
    for name, case in pairs {
      minimum = { 3, 2 }, exclusiveMinimum = { 3, 3 }, maximum = { 3, 4 }, minLength = { 2, "a" },
      maxItems = { 0, json.array { 1 } },
    } do
      assert.truthy(misfit(case[2], json.decode(('{"%s": %d}'):format(name, case[1]))), name)
    end
    assert.matches("got null", misfit({ a = json.null }, { properties = { a = { type = "string" } } }))
  end)

  it("leaves out a count of somebody else's schema that is no whole number", function()
    for _, name in ipairs { "minLength", "maxLength", "minItems", "maxItems" } do
      for _, count in ipairs { 1.5, "0", json.null } do
        for _, value in ipairs { "x", json.array { 1 } } do assert.is_nil(misfit(value, { [name] = count }), name) end
      end
    end
    assert.truthy(misfit("xy", { maxLength = 1.0 }))
  end)
end)

describe("the printed schema", function()
  it("says our keywords in standard ones, in order", function()
    local printed = print_schema({
      type = "object", order = { "z", "a" }, required = { "z" }, additionalProperties = false,
      aliases = { other = "a" },
      properties = { a = { type = "string", default = "x" }, z = { enum = { 1, "b" } } },
    })
    assert.equal([[
{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["z"],
  "properties": {
    "z": {
      "enum": [1, "b"]
    },
    "a": {
      "type": "string",
      "default": "x"
    },
    "other": {
      "$ref": "#/properties/a",
      "description": "Another name for a; give only one."
    }
  },
  "additionalProperties": false,
  "allOf": [
    {
      "not": {
        "properties": {
          "a": true,
          "other": true
        },
        "required": ["a", "other"],
        "type": "object"
      }
    }
  ]
}
]], printed)
  end)
end)
