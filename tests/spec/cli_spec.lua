-- SPDX-License-Identifier: Apache-2.0
local cli = require "sba.cli"
local usage = require "sba.about".usage

--- As in a container, where /job and /workspace are there.
local function everywhere() return true end

local function parse(...) return cli.parse({ ... }, {}, everywhere) end

local function refusal(...)
  local settings, message = cli.parse({ ... }, {}, everywhere)
  assert.is_nil(settings)
  assert.is_nil(message:find "\n")
  return message
end

describe("the command line", function()
  it("has the contract's defaults", function()
    assert.same({
      mode = "run", job = "/job/job.json", result = "/job/result.json", workspace = "/workspace", log_format = "auto",
      resume = false, confine = "auto",
    }, parse())
  end)

  it("looks next to the job where there is no container", function()
    local function desk(...)
      return cli.parse({ ... }, {}, function(path) return path == "d/workspace" end)
    end
    assert.equal("d/result.json", desk("--job", "d/job.json").result)
    assert.equal("d/workspace", desk("--job", "d/job.json").workspace)
    assert.equal("./result.json", desk("--job", "job.json").result)
    assert.equal("/workspace", desk("--job", "job.json").workspace)
    assert.equal("r", desk("--job", "job.json", "--result", "r").result)
    assert.equal("-", desk("--stdin").result)
    local message = select(2, desk())
    assert.equal(2, select(2, message:gsub("\n", "")))
    assert.truthy(message:find("cynode-sba --job job.json --workspace DIR", 1, true))
    assert.equal("/job/job.json", desk("--validate").job)
  end)

  it("takes a value behind a space or an equals sign, with one dash or two", function()
    for _, argv in ipairs { { "--job", "x=y" }, { "--job=x=y" }, { "-job", "x=y" }, { "-job=x=y" } } do
      assert.equal("x=y", cli.parse(argv, {}, everywhere).job)
    end
    assert.equal("-", parse("--job", "-").job)
    assert.equal("--odd", parse("--job", "--odd").job)
  end)

  it("lets an option beat its variable, and the first variable the next", function()
    local environment = {
      SBA_JOB_PATH = "variable", SBA_WORKSPACE = "", CYNODE_WORKSPACE_DIR = "second", SBA_USER = "u", SBA_LOG_FORMAT = "json",
    }
    local settings = cli.parse({ "--job", "option" }, environment, everywhere)
    assert.same({ "option", "second", "u", "json" }, { settings.job, settings.workspace, settings.user, settings.log_format })
    environment.SBA_WORKSPACE = "first"
    assert.equal("first", cli.parse({}, environment, everywhere).workspace)
    assert.equal("variable", cli.parse({}, environment, everywhere).job)
  end)

  it("reads stdin and writes stdout when told, but for what an option names", function()
    local environment = { SBA_STDIN_STDOUT = "true", SBA_JOB_PATH = "variable", SBA_RESULT_PATH = "variable" }
    local settings = cli.parse({}, environment, everywhere)
    assert.equal("-", settings.job)
    assert.equal("-", settings.result)
    settings = cli.parse({ "--result", "file" }, environment, everywhere)
    assert.equal("-", settings.job)
    assert.equal("file", settings.result)
    assert.equal("-", parse("--stdin").result)
    environment.SBA_STDIN_STDOUT = "TRUE"
    assert.equal("-", cli.parse({}, environment, everywhere).job)
    environment.SBA_STDIN_STDOUT = "false"
    assert.equal("variable", cli.parse({}, environment, everywhere).job)
    environment.SBA_STDIN_STDOUT = "perhaps"
    assert.matches("SBA_STDIN_STDOUT", select(2, cli.parse({}, environment, everywhere)))
  end)

  it("runs a job where its own name is the only argument", function()
    for _, name in ipairs { "cynode-sba", "/usr/local/bin/cynode-sba" } do
      assert.equal("run", parse(name).mode)
      assert.matches("is not an option", select(2, parse(name, "--stdin")))
    end
  end)

  it("takes a job without its option", function()
    assert.equal("job.json", parse("job.json", "--stdin").job)
    assert.equal("d/result.json", cli.parse({ "--workspace", "w", "d/job.json" }, {}, function() return false end).result)
    assert.equal("not-cynode-sba", parse("not-cynode-sba").job)
  end)

  it("takes a task in place of a job", function()
    local function nowhere() return false end
    local environment = { SBA_WORKSPACE = "/elsewhere", SBA_STDIN_STDOUT = "true" }
    local settings = cli.parse({ "--task", "do it", "--check", "a", "--check=b", "--model", "m", "--time", "45m" }, environment, nowhere)
    assert.same({ "do it", { "a", "b" }, "m", 2700, "." },
      { settings.task, settings.check, settings.model, settings.time, settings.workspace })
    assert.equal("w", parse("--task", "x", "--workspace", "w").workspace)
    for _, more in ipairs { { "--job", "j" }, { "j" }, { "--result", "r" }, { "--stdin" }, { "--resume" }, { "--idle" } } do
      assert.matches("%-%-task and %-%-%l+ cannot be combined", refusal("--task", "x", table.unpack(more)))
    end
    for _, option in ipairs { "--check", "--model", "--time" } do assert.matches(option .. " requires %-%-task", refusal(option, "1m")) end
    for _, time in ipairs { "45", "m", "0m", "-1m", "1.5h", "1d", "1h30m" } do
      assert.matches("such as 90s, 45m or 2h", refusal("--task", "x", "--time", time))
    end
  end)

  it("knows the modes and their values", function()
    assert.equal("validate", parse("--validate").mode)
    assert.same({ "file" }, parse("--validate", "file").values)
    assert.same({ "-", "b" }, parse("--validate", "-", "b", "--job", "x").values)
    assert.same({ "file" }, parse("--validate=file").values)
    assert.same({}, parse("--validate", "--job", "x").values)
    assert.same({ "steps" }, parse("--schema", "steps").values)
    assert.same({ "zsh" }, parse("--completion", "zsh").values)
    assert.equal("help", parse("-h").mode)
    assert.equal("version", parse("-V").mode)
    assert.same({ "-e", "code", "--job" }, parse("--lua", "-e", "code", "--job").script)
    assert.same({}, parse("--lua").script)
    for _, mode in ipairs { "idle", "version", "help" } do assert.equal(mode, parse("--" .. mode).mode) end
    assert.is_true(parse("--resume").resume)
  end)

  it("refuses what it does not know and names what is near", function()
    for words, lines in pairs {
      ["did you mean --result?"] = { { "--reslut", "x" } }, ["did you mean --workspace?"] = { { "--workspce=x" } },
      ["see --help"] = { { "--frobnicate" } }, ["a second job"] = { { "job.json", "other.json" }, { "--job", "job.json", "other.json" } },
      ["not an option"] = { { "" }, { "--version", "job.json" }, { "-" }, { "--" }, { "--report", "a", "b" } },
      ["cannot be combined"] = { { "--replay", "x", "--resume" }, { "--version", "--help" } },
      ["requires a value"] = { { "--job" }, { "--job=" }, { "--completion" } },
      ["does not take a value"] = { { "--stdin=yes" }, { "--version=1" } },
      ["must be one of job, result, steps"] = { { "--schema", "other" } },
      ["must be one of bash, fish, zsh"] = { { "--completion", "csh" } },
      ["must be one of auto, json, text"] = { { "--log-format", "xml" } },
      ["requires a result file"] = { { "--resume", "--stdin" } },
    } do
      for _, line in ipairs(lines) do assert.matches(words, refusal(table.unpack(line)), 1, true) end
    end
    assert.matches("SBA_LOG_FORMAT", select(2, cli.parse({}, { SBA_LOG_FORMAT = "xml" }, everywhere)))
  end)

  it("explains itself on one screen and names every option", function()
    local lines = 0
    for line in usage:gmatch "([^\n]*)\n" do
      lines = lines + 1
      assert.is_true(#line <= 80, line)
    end
    assert.is_true(lines <= 23)
    for _, name in ipairs { "job", "result", "stdin", "resume", "replay", "validate", "report", "schema", "idle", "lua", "version",
      "help", "workspace", "user", "log-format" } do
      assert.truthy(usage:find("--" .. name, 1, true), name)
    end
  end)
end)
