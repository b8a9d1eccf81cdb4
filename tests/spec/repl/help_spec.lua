-- SPDX-License-Identifier: Apache-2.0
local bundle = require "native.bundle"
local globals = require "sba.repl.globals"
local help = require "sba.repl.help"
local manual = require "sba.repl.manual"
globals.install {}
local native, sba = _G.native, _G.sba

local function says(thing, ...)
  local text = help.text(thing)
  for _, words in ipairs { ... } do assert.truthy(text:find(words, 1, true), text) end
end

describe("help", function()
  it("knows modules, functions, handles and types, by themselves and by name", function()
    says(require "native.process", "native.process\n", "native.process.run(options)  Runs one command")
    says(native.process.run, "native.process.run(options)\n", "  options native.process.options", "  -> native.process.outcome|nil")
    says("native.process.options", "argv string[]")
    says("process", "native.process\n")
    says("util.json.decode", "sba.util.json.decode(bytes, limits)\n")
    says(require "native.workspace".open ".", "native.root\n", "native.root:read(path, options)")
    says(sba.job, "sba.job\nBytes to a job", "sba.job.parse(bytes, catalogue, environment, more)",
      "sba.job.context  What the work is about")
    says("sba.util.indent", "sba.util.indent(compact)  Spreads compact JSON")
    says(globals.step, "step(type, arguments)\nRuns one step in the current directory")
    says("run_command", "step type run_command\n", "  shell?  ")
    says(require "sba.steps.read_file", "step type read_file\n", "  path  a non-empty string.")
    local arguments = require "sba.steps.read_file".arguments
    local order = arguments.order
    arguments.order = nil
    says("read_file", "  end_line?  ", "  max_bytes?  ", "  path  a non-empty string.")
    arguments.order = order
    says("steps", "  read_file  ", "  run_command  ")
  end)

  it("says so where nothing is known", function()
    says("native.proces", 'nothing is known of "native.proces"; help() says what there is')
    says(string.format, 'nothing is known of "string.format"; help() says')
    says("a\27b", 'nothing is known of "a\\x1bb"; help() says')
    says(12, "nothing is known of this number")
    says(nil, "nothing is known of nil")
    says({}, "nothing is known of this table")
  end)
end)

describe("the manual", function()
  local by_name = {}
  for _, entry in ipairs(manual) do by_name[entry.name] = entry end

  it("has words on every module", function()
    for _, name in ipairs(bundle.list "sba.") do
      if name ~= "repl.manual" then
        local entry = by_name["sba." .. name]
        assert.truthy(entry and entry.text:find("%w"), name)
      end
    end
    for name in pairs(package.preload) do
      if name:find("^native%.") then assert.truthy(by_name[name] and by_name[name].text:find("%w"), name) end
    end
  end)
end)
