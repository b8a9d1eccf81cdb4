-- SPDX-License-Identifier: Apache-2.0
local model = require "sba.model.connect"

local function variables(environment, source)
  local list = {}
  for i, candidate in ipairs((model.candidates { environment = environment, source = source })) do
    list[i] = candidate.endpoint.name .. " " .. candidate.endpoint.base
  end
  return list
end

describe("model.candidates", function()
  it("are those that the environment names, the worker's first, then the sidecar", function()
    local all = {
      INFERENCE_PROXY_URL = "http://a//", OLLAMA_BASE_URL = "http://b",
      SBA_API_EGRESS_URL = "http://c/v1/", OPENAI_BASE_URL = "http://d",
    }
    local worker = { "INFERENCE_PROXY_URL http://a", "OLLAMA_BASE_URL http://b" }
    local egress = { "SBA_API_EGRESS_URL http://c/v1", "OPENAI_BASE_URL http://d" }
    local sidecar <const> = "the sidecar http://localhost:11434"
    assert.same({ worker[1], worker[2], egress[1], egress[2], sidecar }, variables(all))
    assert.same(variables(all), variables(all, "orchestrator"))
    assert.same({ worker[1], worker[2], sidecar }, variables(all, "worker"))
    assert.same(egress, variables(all, "api_egress"))
    all.INFERENCE_PROXY_URL, all.OLLAMA_BASE_URL = "", nil
    assert.same(egress, variables(all))
    assert.same({ sidecar }, variables(all, "worker"))
    assert.same({ sidecar }, variables({}))
    assert.same({ "OLLAMA_BASE_URL http://localhost:11434" }, variables { OLLAMA_BASE_URL = "http://localhost:11434/" })
  end)

  it("name the variables if none is set", function()
    local none, missing = model.candidates { environment = {}, source = "api_egress" }
    assert.same({ {}, { "SBA_API_EGRESS_URL", "OPENAI_BASE_URL" } }, { none, missing })
    missing = select(2, model.candidates { environment = {}, source = "worker" })
    assert.same({ "INFERENCE_PROXY_URL", "OLLAMA_BASE_URL" }, missing)
    assert.is_nil(select(2, model.candidates { environment = { OLLAMA_BASE_URL = "http://b" } }))
  end)
end)

describe("model.choose", function()
  it("takes the first wanted model, under the job's name for it", function()
    local served = { { name = "qwen3:8b" }, { name = "llama3:latest", entry = { a = 1 } } }
    assert.same({ name = "llama3", entry = { a = 1 } }, model.choose(served, { "none", "llama3", "qwen3:8b" }))
    assert.is_nil(model.choose(served, { "qwen3", "llama", "LLAMA3" }))
    local many = {}
    for i = 1, 50000 do served[i], many[i] = { name = "served-" .. i }, "wanted-" .. i end
    assert.is_nil(model.choose(served, many))
  end)
end)
