-- SPDX-License-Identifier: Apache-2.0
-- Long texts from outside, each made so that a pattern that backtracks would take hours over it.
local acceptance = require "sba.run.agent.acceptance"
local context = require "sba.job.context"
local digest = require "sba.report.digest"
local endpoint = require "sba.inference.endpoint"
local exchange = require "sba.run.agent.exchange"
local history = require "sba.run.history"
local json = require "sba.util.json"
local retry = require "sba.util.retry"
local rules = require "sba.orchestrator.rules"
local temporary_directory = require "temporary_directory"
local text = require "native.text"
local text_protocol = require "sba.inference.text_protocol"
local tool_result = require "sba.orchestrator.tool_result"
local url = require "sba.util.url"

local LONG <const> = 1000000

local function many(characters)
  return characters:rep(LONG // #characters)
end

describe("a long text", function()
  local directory

  before_each(function() directory = temporary_directory.make() end)
  after_each(function() temporary_directory.remove(directory) end)

  local function put(name, content)
    local handle = assert(io.open(directory .. "/" .. name, "wb"))
    handle:write(content)
    handle:close()
    return directory .. "/" .. name
  end

  it("is trimmed", function()
    assert.is_true(text.trim("\n " .. "a" .. many " " .. "b" .. many "\t") == "a" .. many " " .. "b")
    assert.are.equal("", text.trim(many " \n"))
    assert.is_true(text.trim_end("a" .. many "/" .. "b//", "/") == "a" .. many "/" .. "b")
    assert.are.equal("a\0", text.trim_end("a\0 "))
  end)

  it("may be the torn last line of a journal", function()
    local torn = '{"event":"job","job_sha256":"x","started_wall":1}\n{"event":"' .. many "a"
    local read = assert(history.read(put("journal.jsonl", torn), { job_sha256 = "x" }))
    assert.are.equal(1, read.started_wall)
    assert.are.equal("its last line is incomplete, which happens when the runner is killed", digest.read(torn).problem)
  end)

  it("may be a file of requirements", function()
    os.execute(("mkdir '%s/context'"):format(directory))
    local function requirements(markdown)
      put("context/requirements.md", markdown)
      return context.load(nil, directory .. "/").requirements
    end
    local size <const> = 1000000 -- a context file has 1 MiB at most
    assert.same({ "a" .. (" "):rep(size) .. "b" }, requirements("a" .. (" "):rep(size) .. "b"))
    assert.same({ "a" }, requirements("a" .. ("\t"):rep(size)))
    assert.are.equal(size - 1, #requirements(("a\n"):rep(size // 2))[1])
    assert.are.equal(size // 4, #requirements(("- a\n"):rep(size // 4)))
  end)

  it("may be a Retry-After", function()
    assert.is_nil(retry.after(many "1" .. "x"))
    assert.are.equal(math.huge, retry.after(many "1"))
    assert.is_nil(retry.after(many " "))
  end)

  it("may be the name of a tool", function()
    assert.is_nil(rules.refusal("a" .. many " " .. "b", false))
    assert.are.equal("tool_forbidden", rules.refusal(many " " .. "db.read" .. many " ", true).code)
  end)

  it("may be the name of a model, or a URL", function()
    local name = many ":" .. "/x"
    assert.is_nil(endpoint.choose({ { name = name .. "y" } }, { name }))
    assert.is_not_nil(endpoint.choose({ { name = name } }, { name .. ":latest" }))
    local candidates = endpoint.candidates({ INFERENCE_PROXY_URL = "http://h" .. many "/" .. "x" }, "worker", {})
    assert.are.equal("x", candidates[1].endpoint.base:sub(-1))
    assert.are.equal("http://" .. many "1" .. ":80", url.origin("http://" .. many "1"))
  end)

  it("may be a reply of a model", function()
    local tools = { { name = "read_file" } }
    for _, reply in ipairs {
      many "``` ", many "`", "```" .. many "a", many "<tool_call>", many "{", many "{}", many "```\nx", many "x ```", many " ", many "\n",
      many "[", many '{"a":',
    } do
      assert.is_nil(text_protocol.read(reply, tools))
      assert.is_nil(text_protocol.find(reply, tools))
    end
    assert.are.equal("read_file", text_protocol.read("```json\n" .. many " " .. '{"tool":"read_file"}\n```', tools)[1].name)
  end)

  it("may be an image of a gateway", function()
    local answer = tool_result.of_mcp {
      content = json.array { { type = "image", data = many "=" .. "a", mimeType = "image/png" } },
    }
    assert.are.equal(("[image, image/png, %d bytes]"):format(LONG // 4 * 3), answer.content)
  end)

  it("may be what a finish says of a criterion", function()
    local entries = { { criterion = "a" .. many " ." .. "b", met = true, evidence = "step" .. many " " .. "x" } }
    local _, missing = acceptance.judge({ acceptance_criteria = { "c" }, checks = {} }, entries, function() end)
    assert.are.equal('no entry for the criterion "c"', missing[1])
    assert.same({}, acceptance.named_steps(entries[1].evidence))
  end)

  it("may be in a replay", function()
    local function message(content) return { { role = "tool", content = content } } end
    local talk = exchange.new {
      journal = {}, replay = true, recorded = { { messages = message(many "1" .. " s\nx"), reply = {} } },
    }
    local _, failure = talk:next(message(many "1" .. " x\nx"), error)
    assert.is_truthy(failure.message:find('line 1: the recording has "<duration> s", this run has "111', 1, true))
  end)
end)
