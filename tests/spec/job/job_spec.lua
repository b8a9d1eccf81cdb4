-- SPDX-License-Identifier: Apache-2.0
local about = require "sba.about"
local catalogue = require "sba.catalogue"
local job = require "sba.job"
local job_schema = require "sba.job.job_schema"
local json = require "sba.util.json"
local metaschema = require "metaschema"
local schema_check = require "sba.util.schema_check"

local ANY_TYPE <const> = 'expected one of "apply_unified_diff", "ask_model", "call_tool", "list_tree", "read_file", '
  .. '"replace_in_file", "run_agent", "run_command", "search_files" or "write_file"'
local NO_STEPS <const> = "/steps: is missing; expected an array (only a job of agent_inference may leave it out)"
local NOT_UNIQUE <const> = "ids must be unique (a step without an id is step-N, N from 1)"

local function text_of(fields, without)
  local whole = {
    protocol_version = "1.0", job_id = "j", task_id = "t",
    constraints = { max_runtime_seconds = 10, max_output_bytes = 1000 },
    steps = json.array {},
  }
  for name, value in pairs(fields or {}) do whole[name] = value end
  if without then whole[without] = nil end
  return json.encode(whole)
end

local function lines_of(text, environment)
  local parsed, failure = job.parse(text, catalogue, environment or {})
  if parsed then return {} end
  local lines = {}
  for i, failed in ipairs(failure.errors) do lines[i] = schema_check.line(failed) end
  return lines, failure
end

local function check(fields, ...)
  assert.same({ ... }, (lines_of(text_of(fields))))
end

describe("job.parse", function()
  it("loads a context whose files are named well, and no other", function()
    local loaded
    local function load(context)
      loaded = context
      return context
    end
    for _, case in ipairs {
      { context = json.null, is_loaded = false }, { context = { task_context = "x" }, is_loaded = true },
      { context = { skill_ids = "x" }, is_loaded = false }, { context = "x", is_loaded = false },
      { context = { acceptance_criteria = json.array { { criterion = "c", check = {} } } }, is_loaded = true },
    } do
      loaded = nil
      job.parse(text_of { context = case.context }, catalogue, {}, load)
      assert.equal(case.is_loaded, loaded ~= nil, json.encode(case.context))
    end
  end)

  it("takes 100,000 steps, requirements and criteria, and no more", function()
    local many = json.array {}
    for i = 1, 100000 do many[i] = "r" end
    check { context = { requirements = many, acceptance_criteria = many } }
    many[#many + 1] = "r"
    for pointer, fields in pairs {
      ["/context/requirements"] = { context = { requirements = many } }, ["/steps"] = { steps = many },
      ["/context/acceptance_criteria"] = { context = { acceptance_criteria = many } },
    } do
      local lines = lines_of(text_of(fields))
      assert.matches(pointer .. ": .*100000", table.concat(lines, "\n"))
    end
  end)

  it("takes the specification's example", function()
    local parsed = assert(job.parse([[{
      "protocol_version": "1.0", "job_id": "uuid", "task_id": "uuid",
      "constraints": {"max_runtime_seconds": 300, "max_output_bytes": 1048576, "ext_net_allowed": false},
      "inference": {"allowed_models": ["llama3.2"], "source": "worker"},
      "context": {"baseline_context": "b", "project_context": "p", "task_context": "t", "requirements": ["r"],
        "acceptance_criteria": ["c"], "preferences": {}, "additional_context": "a", "skill_ids": ["s"], "skills": null},
      "steps": []}]], catalogue, {}))
    assert.equal("agent_inference", parsed.execution_mode)
  end)

  it("resolves steps", function()
    local parsed = assert(job.parse(text_of {
      steps = {
        { type = "read_file", args = { path = "x", max_bytes = 5.0 } },
        { id = "mine", type = "run_command", arguments = { shell = "true", cwd = "d" } },
      },
    }, catalogue, {}))
    assert.same({
      { id = "step-1", type = "read_file", arguments = { path = "x", max_bytes = 5 } },
      { id = "mine", type = "run_command", arguments = { shell = "true", working_dir = "d" } },
    }, parsed.steps)
    assert.equal("integer", math.type(parsed.steps[1].arguments.max_bytes))
    assert.is_false(parsed.constraints.ext_net_allowed)
  end)

  it("names every error at once, in the order of the file", function()
    check({
      protocol_version = "2.0", task_id = 5, allowed_paths = {},
      constraints = { max_runtime_seconds = 0, network_allowed = true },
      steps = {
        { type = "raed_file", arguments = {} }, { type = "read_file", args = { pth = "" } },
        { type = "run_command", skill_id = "" },
        { type = "run_command", arguments = { shell = "true", args = json.array {} } },
        { type = "read_file", args = { path = "a" }, arguments = { path = "a" } }, { arguments = {} }, 7,
      },
    },
      '/allowed_paths: unknown field "allowed_paths"',
      "/constraints/max_output_bytes: is missing; expected an integer from 1, such as 1048576",
      "/constraints/max_runtime_seconds: expected an integer from 1, got the number 0",
      '/constraints/network_allowed: unknown field "network_allowed"',
      '/protocol_version: protocol version "2.0" is not supported; this runner speaks 1.x',
      "/steps/0/type: " .. ANY_TYPE .. ', got the string "raed_file"; did you mean "read_file"?',
      "/steps/1/args/path: is missing; expected a non-empty string",
      '/steps/1/args/pth: unknown field "pth"; did you mean "path"?',
      '/steps/2/arguments: expected exactly one of "command", "argv" or "shell", got none',
      '/steps/2/skill_id: unknown field "skill_id"',
      "/steps/3/arguments/args: args go with command",
      '/steps/4/args: "args" and "arguments" are two names of one field; give only one',
      "/steps/5/type: is missing; " .. ANY_TYPE,
      "/steps/6: expected an object, got the number 7",
      "/task_id: expected a non-empty string, got the number 5")
  end)

  it("wants a version of major 1", function()
    for _, good in ipairs { "1.0", "1.7", "1.10" } do check { protocol_version = good } end
    for _, bad in ipairs { "1", "1.", "v1.0", "1.0.0", " 1.0", "1.0\n", "", "2.0", "0.9", "10.0", "11.0" } do
      assert.equal(1, #lines_of(text_of { protocol_version = bad }), bad)
    end
    assert.equal(1, #lines_of(text_of { protocol_version = 1.0 }))
  end)

  it("wants ids that are unique, defaults included", function()
    local function step(id) return { id = id, type = "run_command", arguments = { shell = "true" } } end
    check({ steps = { step "a", step "a" } },
      '/steps/1/id: the id "a" belongs to /steps/0 and /steps/1; ' .. NOT_UNIQUE)
    check({ steps = { step "step-2", step() } },
      '/steps/0/id: the id "step-2" belongs to /steps/0 and /steps/1; ' .. NOT_UNIQUE)
    check({ steps = { step "step-1", step() } })
    check({ steps = { step "" } }, "/steps/0/id: expected a non-empty string, got an empty string")
  end)

  it("lets only an agent's job leave out steps", function()
    assert.same({ NO_STEPS }, (lines_of(text_of({}, "steps"))))
    local parsed = assert(job.parse(text_of({ execution_mode = "agent_inference" }, "steps"), catalogue, {}))
    assert.is_true(json.is_array(parsed.steps))
    assert(job.parse(text_of({ execution_mode = "agent_inference", steps = json.null }), catalogue, {}))
    assert(job.parse(text_of({}, "steps"), catalogue, { SBA_EXECUTION_MODE = "agent_inference" }))
    check({ steps = json.null }, NO_STEPS)
  end)

  it("takes null as absent, at every level", function()
    local null = json.null
    local step = { id = null, type = "run_command", args = null }
    step.arguments = { shell = "true", command = null, args = null, env = null }
    local parsed = assert(job.parse(text_of {
      execution_mode = null, inference = null, persona = null, persona_id = null, steps = { step },
      context = { requirements = null, skills = null, agents_md = nil, preferences = null },
      constraints = { max_runtime_seconds = 1, max_output_bytes = 1, ext_net_allowed = null },
    }, catalogue, {}))
    local settled = { id = "step-1", type = "run_command", arguments = { shell = "true", working_dir = "." } }
    assert.same(settled, parsed.steps[1])
    assert.is_false(parsed.constraints.ext_net_allowed)
    assert.is_nil(parsed.persona)
    assert.same({}, parsed.context)
    assert.equal(1, #lines_of(text_of { job_id = null }))
  end)

  it("takes an integer beyond 64 bits for the largest, and passes it on in a tool's arguments", function()
    local long = "12345678901234567890123"
    local function with(arguments)
      return (text_of { steps = { { type = "call_tool", arguments = arguments } } }:gsub('"LONG"', long))
    end
    local parsed = assert(job.parse(with { tool = "t", arguments = { id = "LONG" } }, catalogue, {}))
    assert.equal('{"id":' .. long .. "}", json.encode(parsed.steps[1].arguments.arguments))
    local large = text_of { constraints = { max_runtime_seconds = "LONG", max_output_bytes = 1 } }:gsub('"LONG"', long)
    assert.equal(math.maxinteger, assert(job.parse(large, catalogue, {})).constraints.max_runtime_seconds)
  end)

  it("refuses a NUL in a path and in what a command is given before anything runs", function()
    local nul, list = "a\0b", json.array { "a", "a\0b" }
    for _, one in ipairs {
      { "read_file", "path", { path = nul } }, { "list_tree", "path", { path = nul } },
      { "write_file", "path", { path = nul, content = "" } }, { "search_files", "path", { path = nul, pattern = "x" } },
      { "search_files", "include", { include = nul, pattern = "x" } },
      { "replace_in_file", "path", { path = nul, old_text = "a", new_text = "b" } },
      { "ask_model", "save_to", { prompt = "x", save_to = nul } }, { "run_command", "command", { command = nul } },
      { "run_command", "args/1", { command = "x", args = list } }, { "run_command", "argv/1", { argv = list } },
      { "run_command", "shell", { shell = nul } }, { "run_command", "working_dir", { shell = "x", working_dir = nul } },
      { "run_command", "cwd", { shell = "x", cwd = nul } },
      { "run_command", "env/A", { shell = "x", env = { A = nul } } },
    } do
      local kind, pointer, arguments = table.unpack(one)
      local _, failure = job.parse(text_of { steps = { { type = kind, arguments = arguments } } }, catalogue, {})
      assert.equal("/steps/0/arguments/" .. pointer, failure.errors[1].pointer)
      assert.matches("a string without NUL", failure.message)
    end
  end)

  it("says of each bad name of a variable what is expected, with all other mistakes", function()
    local named = ": expected the name of a variable, not empty and without = and NUL, got "
    local arguments = { shell = "x", timeout_seconds = 0, env = { ["A=B"] = 1, [""] = "x", ["a\0"] = "", OK = "" } }
    check({ steps = { { type = "run_command", arguments = arguments } } },
      "/steps/0/arguments/env/" .. named .. "an empty string",
      '/steps/0/arguments/env/A=B' .. named .. 'the string "A=B"',
      "/steps/0/arguments/env/A=B: expected a string, got the number 1",
      '"/steps/0/arguments/env/a\\u0000"' .. named .. 'the string "a\\u0000"',
      "/steps/0/arguments/timeout_seconds: expected a number above 0, got the number 0")
  end)

  it("decides the mode: environment, job, content", function()
    local inference = { allowed_models = { "m" } }
    local step = { { type = "run_command", arguments = { shell = "true" } } }
    for _, case in ipairs {
      { "direct_steps", {} }, { "agent_inference", { inference = inference } },
      { "direct_steps", { inference = inference, steps = step } },
      { "agent_inference", { execution_mode = "agent_inference", steps = step } },
      { "direct_steps", { execution_mode = "agent_inference" }, { SBA_DIRECT_STEPS = "1" } },
      { "agent_inference", { steps = step }, { SBA_EXECUTION_MODE = "agent_inference", SBA_DIRECT_STEPS = "1" } },
      { "agent_inference", { inference = inference }, { SBA_EXECUTION_MODE = "", SBA_DIRECT_STEPS = "0" } },
      { "agent_inference", { steps = step }, { SBA_EXECUTION_MODE = " agent_inference\n" } },
      { "direct_steps", { inference = inference }, { SBA_DIRECT_STEPS = " TRUE " } },
    } do
      local mode, fields, environment = table.unpack(case)
      assert.equal(mode, assert(job.parse(text_of(fields), catalogue, environment or {})).execution_mode)
    end
    local mistake = "(job): the environment variable SBA_EXECUTION_MODE must be direct_steps or agent_inference, not "
    assert.same({ mistake .. '"fast"' }, (lines_of(text_of(), { SBA_EXECUTION_MODE = "fast" })))
    assert.equal(1, #lines_of(text_of(), { SBA_DIRECT_STEPS = "yes" }))
  end)

  it("gives back the ids that can be read", function()
    local _, failure = job.parse(text_of { task_id = 5 }, catalogue, { CYNODE_JOB_ID = "ej", CYNODE_TASK_ID = "et" })
    assert.same({ "j", "et" }, { failure.job_id, failure.task_id })
  end)

  it("says all errors in one line", function()
    local _, failure = lines_of("{}")
    assert.equal('the job is not valid: /protocol_version: is missing; expected a string, such as "1.0"; '
      .. "/job_id: is missing; expected a non-empty string; /task_id: is missing; expected a non-empty string; "
      .. "/constraints: is missing; expected an object; " .. NO_STEPS, failure.message)
    assert.equal("schema_validation", failure.code)
    _, failure = lines_of("{'a'}")
    assert.equal("the job is not valid: (job): line 1, column 2: expected a member name in double quotes, found '''" ..
      "; JSON has double quotes only", failure.message)
  end)
end)

describe("the job's schema", function()
  it("is one that is understood, described everywhere, with orders that name every property", function()
    local function walk(wanted, path)
      if wanted.properties then
        for name, property in pairs(wanted.properties) do
          local at = path .. "/" .. name
          assert.is_truthy(property.description, at .. " has no description")
          assert.is_true(json.contains(wanted.order, name), at .. " is not in order")
          walk(property, at)
        end
      end
      if wanted.items then walk(wanted.items, path .. "/*") end
    end
    local whole = job_schema(catalogue.names())
    assert.is_nil(metaschema(whole))
    walk(whole, "")
  end)

  it("is printed with the step types in it", function()
    local document = assert(json.decode(about.schemas.job()))
    assert.equal(catalogue.get("read_file").summary, document["$defs"].read_file.properties.type.description)
    assert.equal("#/$defs/apply_unified_diff", document.properties.steps.items.oneOf[1]["$ref"])
    assert.is_truthy(json.decode(about.schemas.steps()).properties.run_command.properties.arguments.properties.cwd)
  end)
end)
