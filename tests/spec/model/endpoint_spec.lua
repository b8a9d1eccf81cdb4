-- SPDX-License-Identifier: Apache-2.0
local endpoint = require "sba.model.endpoint"
local wire = require "sba.model.wire"

local function variables(environment, source)
  local list = {}
  for i, candidate in ipairs((endpoint.candidates(environment, source))) do
    list[i] = candidate.endpoint.name .. " " .. candidate.endpoint.base
  end
  return list
end

describe("endpoint.candidates", function()
  it("are those that the environment names, the worker's first, then the sidecar", function()
    local all = {
      INFERENCE_PROXY_URL = "http://a//", OLLAMA_BASE_URL = "http://b", SBA_API_EGRESS_URL = "http://c/v1/", OPENAI_BASE_URL = "http://d",
    }
    local worker = { "INFERENCE_PROXY_URL http://a", "OLLAMA_BASE_URL http://b" }
    local egress = { "SBA_API_EGRESS_URL http://c/v1", "OPENAI_BASE_URL http://d" }
    local sidecar <const> = "the sidecar http://localhost:11434"
    assert.are.same({ worker[1], worker[2], egress[1], egress[2], sidecar }, variables(all))
    assert.are.same(variables(all), variables(all, "orchestrator"))
    assert.are.same({ worker[1], worker[2], sidecar }, variables(all, "worker"))
    assert.are.same(egress, variables(all, "api_egress"))
    all.INFERENCE_PROXY_URL, all.OLLAMA_BASE_URL = "", nil
    assert.are.same(egress, variables(all))
    assert.are.same({ sidecar }, variables(all, "worker"))
    assert.are.same({ sidecar }, variables({}))
    assert.are.same({ "OLLAMA_BASE_URL http://localhost:11434" }, variables { OLLAMA_BASE_URL = "http://localhost:11434/" })
  end)

  it("name the variables if none is set", function()
    local none, missing = endpoint.candidates({}, "api_egress")
    assert.are.same({ {}, { "SBA_API_EGRESS_URL", "OPENAI_BASE_URL" } }, { none, missing })
    assert.are.same({ "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL" }, select(2, endpoint.candidates({}, "worker")))
    assert.is_nil(select(2, endpoint.candidates { OLLAMA_BASE_URL = "http://b" }))
  end)
end)

describe("endpoint.choose", function()
  it("takes the first wanted model, under the job's name for it", function()
    local served = { { name = "qwen3:8b" }, { name = "llama3:latest", entry = { a = 1 } } }
    assert.are.same({ name = "llama3", entry = { a = 1 } }, endpoint.choose(served, { "none", "llama3", "qwen3:8b" }))
    assert.is_nil(endpoint.choose(served, { "qwen3", "llama", "LLAMA3" }))
    local many = {}
    for i = 1, 50000 do served[i], many[i] = { name = "served-" .. i }, "wanted-" .. i end
    assert.is_nil(endpoint.choose(served, many))
  end)

  it("wants INFERENCE_MODEL first, where the job allows it", function()
    assert.are.same({ "b", "a" }, endpoint.wanted({ "a", "b" }, "b"))
    assert.are.same({ "b", "a" }, endpoint.wanted({ "a", "b" }, "b:latest"))
    assert.are.same({ "a", "b" }, endpoint.wanted({ "a", "b" }, "c"))
  end)
end)

describe("wire.refusal", function()
  local target = { base = "http://host" }

  it("finds the words of an error in every form, and its cause", function()
    for _, case in ipairs {
      { 400, { error = "registry.ollama.ai/library/m:1 does not support tools" }, "tools_unsupported", "does not support tools" },
      { 400, { error = '{"error":{"message":"too long","type":"exceed_context_size_error","n_ctx":4096}}' }, "context_cut", "too long" },
      { 400, { error = { message = "x", code = "context_length_exceeded" } }, "context_cut", "x" },
      { 400, { error = "the input length exceeds the context length" }, "context_cut", "input length" },
      { 400, { object = "error", message = "This model's maximum context length is 2048 tokens", code = 400 }, "context_cut", "2048" },
      { 422, { detail = "no such field" }, "refused", "no such field" },
      { 401, { error = "unauthorized", signin_url = "x" }, "refused", "unauthorized" },
      { 429, { error = { message = "m", code = "insufficient_quota" } }, "quota", "m" },
      { 529, "overloaded", "busy", "overloaded" },
      { 502, "<html>\n</html>", "server_failed", "an HTML page" },
      { 403, "", "refused", "an empty answer" }, { 507, "full", "refused", "full" },
      { 500, { error = { code = 1 } }, "server_failed", '{"error":{"code":1}}' },
    } do
      local failure = wire.refusal(target, case[1], case[2])
      assert.are.equal(case[3], failure.cause)
      assert.is_truthy(failure.message:find(case[4], 1, true), failure.message)
      assert.are.equal(case[3] == "context_cut" and "context_cut" or "inference_unavailable", failure.code)
    end
  end)

  it("learns the window", function()
    assert.are.equal(2048, wire.refusal(target, 400, { message = "maximum context length is 2048 tokens" }).context_length)
    assert.are.equal(4096, wire.refusal(target, 400, { error = { type = "exceed_context_size_error", n_ctx = 4096 } }).context_length)
  end)

  it("cuts a long answer, between characters", function()
    assert.is_true(#wire.refusal(target, 400, ("ü"):rep(10000)).message < 400)
  end)
end)
