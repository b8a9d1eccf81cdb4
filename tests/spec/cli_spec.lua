-- SPDX-License-Identifier: Apache-2.0
local cli = require "sba.cli"
local usage = require "sba.about".usage

--- As in a container, where /job and /workspace are there.
local function everywhere() return true end
local function nowhere() return false end

local function with(environment, ...) return cli.parse({ ... }, environment, everywhere) end
local function parse(...) return with({}, ...) end
local function split(line) -- by single blanks
  local words = {}
  for word in (line .. " "):gmatch "([^ ]*) " do words[#words + 1] = word end
  return table.unpack(words)
end
local function parse_line(line) return parse(split(line)) end

local function refusal(...)
  local settings, message = parse(...)
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
    for job, wanted in pairs {
      ["d/job.json"] = { "d/result.json", "d/workspace" }, ["job.json"] = { "./result.json", "/workspace" },
    } do
      local settings = desk("--job", job)
      assert.same(wanted, { settings.result, settings.workspace })
    end
    assert.equal("r", desk("--job", "job.json", "--result", "r").result)
    assert.equal("-", desk("--stdin").result)
    local message = select(2, desk())
    assert.equal(2, select(2, message:gsub("\n", "")))
    assert.truthy(message:find("cynode-sba --job job.json --workspace DIR", 1, true))
    assert.equal("/job/job.json", desk("--validate").job)
  end)

  it("takes a value behind a space or an equals sign, with one dash or two", function()
    for _, argv in ipairs { { "--job", "x=y" }, { "--job=x=y" }, { "-job", "x=y" }, { "-job=x=y" } } do
      assert.equal("x=y", parse(table.unpack(argv)).job)
    end
    for _, job in ipairs { "-", "--odd" } do assert.equal(job, parse("--job", job).job) end
  end)

  it("lets an option beat its variable, and the first variable the next", function()
    local environment = {
      SBA_JOB_PATH = "variable", SBA_WORKSPACE = "", CYNODE_WORKSPACE_DIR = "second",
      SBA_USER = "u", SBA_LOG_FORMAT = "json",
    }
    local given = with(environment, "--job", "option")
    assert.same({ "option", "second", "u", "json" }, { given.job, given.workspace, given.user, given.log_format })
    environment.SBA_WORKSPACE = "first"
    given = with(environment)
    assert.same({ "variable", "first" }, { given.job, given.workspace })
  end)

  it("knows the streams by their names in /dev", function()
    for job, result in pairs {
      ["/dev/stdin"] = "/dev/stdout", ["/dev/fd/0"] = "/dev/fd/1", ["/proc/self/fd/0"] = "/proc/self/fd/1",
    } do
      local settings = parse("--job", job, "--result", result)
      assert.same({ "-", "-" }, { settings.job, settings.result })
      assert.equal(job, parse("--result", job).result)
    end
    assert.equal("-", with { SBA_RESULT_PATH = "/dev/stdout" }.result)
    assert.matches("%-%-resume requires a result file", refusal("--resume", "--result", "/dev/stdout"))
  end)

  it("reads stdin and writes stdout when told, but for what an option names", function()
    local environment = { SBA_STDIN_STDOUT = "true", SBA_JOB_PATH = "variable", SBA_RESULT_PATH = "result" }
    local settings = with(environment)
    assert.same({ "-", "-" }, { settings.job, settings.result })
    settings = with(environment, "--result", "file")
    assert.same({ "-", "file" }, { settings.job, settings.result })
    assert.equal("-", parse("--stdin").result)
    for switch, job in pairs { TRUE = "-", ["false"] = "variable" } do
      environment.SBA_STDIN_STDOUT = switch
      assert.equal(job, with(environment).job)
    end
    assert.matches("SBA_STDIN_STDOUT", select(2, with { SBA_STDIN_STDOUT = "perhaps" }))
  end)

  it("runs a job where its own name is the only argument", function()
    for _, name in ipairs { "cynode-sba", "/usr/local/bin/cynode-sba" } do
      assert.equal("run", parse(name).mode)
      assert.matches("is not an option", select(2, parse(name, "--stdin")))
    end
  end)

  it("takes a job without its option", function()
    assert.equal("job.json", parse("job.json", "--stdin").job)
    assert.equal("d/result.json", cli.parse({ "--workspace", "w", "d/job.json" }, {}, nowhere).result)
    assert.equal("not-cynode-sba", parse("not-cynode-sba").job)
  end)

  it("takes a task in place of a job", function()
    local environment = { SBA_WORKSPACE = "/elsewhere", SBA_STDIN_STDOUT = "true" }
    local argv = { "--task", "do it", split "--check a --check=b --model m --time 45m" }
    local settings = cli.parse(argv, environment, nowhere)
    assert.same({ "do it", { "a", "b" }, "m", 2700, "." },
      { settings.task, settings.check, settings.model, settings.time, settings.workspace })
    assert.equal("w", parse("--task", "x", "--workspace", "w").workspace)
    for _, more in ipairs { "--job j", "j", "--result r", "--stdin", "--resume", "--idle" } do
      assert.matches("%-%-task and %-%-%l+ cannot be combined", refusal("--task", "x", split(more)))
    end
    for _, option in ipairs { "--check", "--model", "--time" } do
      assert.matches(option .. " requires %-%-task", refusal(option, "1m"))
    end
    for _, time in ipairs { "45", "m", "0m", "-1m", "1.5h", "1d", "1h30m" } do
      assert.matches("such as 90s, 45m or 2h", refusal("--task", "x", "--time", time))
    end
  end)

  it("knows the modes and their values", function()
    for line, values in pairs {
      ["--validate file"] = { "file" }, ["--validate - b --job x"] = { "-", "b" }, ["--validate=file"] = { "file" },
      ["--validate --job x"] = {}, ["--schema steps"] = { "steps" }, ["--completion zsh"] = { "zsh" },
    } do assert.same(values, parse_line(line).values) end
    for line, mode in pairs {
      ["--validate"] = "validate", ["-h"] = "help", ["-V"] = "version",
      ["--idle"] = "idle", ["--version"] = "version", ["--help"] = "help",
    } do assert.equal(mode, parse(line).mode) end
    for _, script in ipairs { {}, { "-e", "code", "--job" } } do
      assert.same(script, parse("--lua", table.unpack(script)).script)
    end
    assert.is_true(parse("--resume").resume)
  end)

  it("refuses what it does not know and names what is near", function()
    for words, lines in pairs {
      ["did you mean --result?"] = { "--reslut x" }, ["did you mean --workspace?"] = { "--workspce=x" },
      ["see --help"] = { "--frobnicate" }, ["requires a result file"] = { "--resume --stdin" },
      ["a second job"] = { "job.json other.json", "--job job.json other.json" },
      ["not an option"] = { "", "--version job.json", "-", "--", "--report a b" },
      ["cannot be combined"] = { "--replay x --resume", "--version --help" },
      ["requires a value"] = { "--job", "--job=", "--completion" },
      ["does not take a value"] = { "--stdin=yes", "--version=1" },
      ["must be one of job, result, steps"] = { "--schema other" },
      ["must be one of bash, fish, zsh"] = { "--completion csh" },
      ["must be one of auto, json, text"] = { "--log-format xml" },
    } do
      for _, line in ipairs(lines) do assert.matches(words, refusal(split(line)), 1, true) end
    end
    assert.matches("SBA_LOG_FORMAT", select(2, with { SBA_LOG_FORMAT = "xml" }))
  end)

  it("explains itself on one screen and names every option", function()
    for line in usage:gmatch "[^\n]+" do assert.is_true(#line <= 80, line) end
    assert.is_true(select(2, usage:gsub("\n", "")) <= 23)
    for _, option in ipairs(cli.options) do
      assert.truthy(option.of or usage:find("--" .. option.name, 1, true), option.name)
    end
  end)
end)
