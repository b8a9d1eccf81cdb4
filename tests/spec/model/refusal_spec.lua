-- SPDX-License-Identifier: Apache-2.0
local json = require "sba.util.json"
local refusal = require "sba.model.refusal"
local wire = require "sba.model.wire"

local endpoint = wire.endpoint { base = "http://host" }
local OWN <const> = { tools = true, has_system = true, thinking_field = true, may_fit = true, others = true, tried = true }

--- What was sent, as an example has it: names of tools, fields of the body.
local function sent_of(given)
  local sent = { fields = {}, max_tokens = given.max_tokens, tried = {} }
  for name, value in pairs(given) do
    if OWN[name] then sent[name] = value else sent.fields[name] = value end
  end
  for i, name in ipairs(given.tools or {}) do
    sent.tools = i == 1 and {} or sent.tools
    sent.tools[i] = { name = name }
  end
  return sent
end

--- The failure of an example, whose status 0 stands for an error in a reply.
local function failure_of(status, said)
  local more = status == 0 and { is_in_reply = true } or {}
  local body = type(said) == "table" and { error = said } or said
  local failure = endpoint:refusal(status == 0 and 502 or status, body, more)
  if status == 0 then failure.status = nil end
  return failure
end

local function holds(wanted, found, name)
  for key, value in pairs(wanted) do
    if type(value) == "table" then holds(value, found[key] or {}, name) else assert.equal(value, found[key], name) end
  end
end

describe("a refusal", function()
  it("is judged as the examples of each rule say", function()
    for _, rule in ipairs(refusal.rules) do
      assert.is_true(#rule.examples > 0, rule.name)
      for _, example in ipairs(rule.examples) do
        local status, said, sent, wanted = table.unpack(example)
        local name = ("%s: %s %s"):format(rule.name, status, type(said) == "table" and said.message or said)
        holds(wanted, refusal.judge(failure_of(status, said), sent_of(sent)), name)
      end
    end
  end)

  it("moves no field that was not sent, whatever it says", function()
    for _, rule in ipairs(refusal.rules) do
      for _, example in ipairs(rule.examples) do
        local move = refusal.judge(failure_of(example[1], example[2]), sent_of {})
        assert.is_nil(move.field)
        assert.is_true(move.act == "again" or move.act == "give_up" or move.act == "wait", rule.name)
      end
    end
  end)

  it("of any words is judged", function()
    for _, said in ipairs { "", "\0", ("9"):rep(100000), ("1, "):rep(10000) .. "tokens exceed", ("tools["):rep(10000), "tools[9]" } do
      local sent = sent_of { tools = { "a.b" }, max_tokens = 512, may_fit = true, has_system = true, temperature = 1 }
      assert.is_string(refusal.judge(failure_of(400, said), sent).act)
    end
    assert.equal("give_up", refusal.judge({ code = "inference_unavailable", message = "x" }, sent_of {}).act)
    assert.is_string(json.encode(failure_of(400, "x").words))
  end)
end)
