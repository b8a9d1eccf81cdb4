-- SPDX-License-Identifier: Apache-2.0
local context = require "sba.job.context"
local json = require "sba.util.json"
local scratch = require "scratch"

local here = scratch()

local function refusal(given)
  local loaded, errors = context.load(given, here.path)
  assert.is_nil(loaded)
  assert.equal(1, errors.total)
  return errors[1].message
end

describe("context", function()
  it("takes from files what the job leaves out, and only that", function()
    here:put("context/baseline.md", "from a file")
    here:put("context/task.md", "the task")
    here:put("context/requirements.md", "# Requirements\n\n- one\n  goes on\n- two\n")
    here:put("context/acceptance_criteria.md", "1. first\n2) second\n")
    here:put("context/preferences.json", '{"indent": 2}')
    here:put("context/additional.md", "more")
    here:put("context/skills/b.md", "skill b")
    here:put("context/skills/a.md", "skill a")
    here:put("context/skills/readme.txt", "no skill")
    local loaded = context.load({ baseline_context = "given" }, here.path)
    assert.equal("given", loaded.baseline_context)
    assert.equal("the task", loaded.task_context)
    assert.same({ "one goes on", "two" }, { table.unpack(loaded.requirements) })
    assert.same({ "first", "second" }, { table.unpack(loaded.acceptance_criteria) })
    assert.same({ indent = 2 }, loaded.preferences)
    assert.equal("more", loaded.additional_context)
    assert.same({ { name = "a", text = "skill a" }, { name = "b", text = "skill b" } }, loaded.skills)
  end)

  it("shows structures as JSON, and takes one requirement for a list of one", function()
    local loaded = context.load({
      project_context = { name = "p", tags = json.array { "a" } }, task_context = json.array { 1, 2 },
      requirements = json.array { "plain", { must = "hold" } },
    }, here.path)
    assert.equal('{"name":"p","tags":["a"]}', loaded.project_context)
    assert.equal("[1,2]", loaded.task_context)
    assert.same({ "plain", '{"must":"hold"}' }, { table.unpack(loaded.requirements) })
    assert.same({ "only one" }, { table.unpack(context.load({ requirements = "only one" }, here.path).requirements) })
    assert.same({ '{"a":1}' }, { table.unpack(context.load({ requirements = { a = 1 } }, here.path).requirements) })
  end)

  it("reads paragraphs where a file holds no list", function()
    here:put("context/requirements.md", "the first\nin two lines\n\nthe second\n")
    assert.same({ "the first in two lines", "the second" }, { table.unpack(context.load(nil, here.path).requirements) })
  end)

  it("loses nothing that stands beside a list, or below an item of it", function()
    for markdown, wanted in pairs {
      ["# Must\n\nAll of it, at once.\n\n- one\n\n  with a paragraph\n- two\n\nAnd no less.\n"] = {
        "All of it, at once.", "one\nwith a paragraph", "two", "And no less.",
      },
      ["#123 is mended\n\n## Then\n#124 too\n"] = { "#123 is mended", "#124 too" },
      ["Must\n====\n1. one\n   goes on\n- - -\nlast\n"] = { "one goes on", "last" },
      ["- run\n  ```sh\n  # no heading\n  - no item\n  ```\n- two\n"] = {
        "run\n```sh\n  # no heading\n  - no item\n  ```", "two",
      },
      ["- one\n  - nested\n\n***\n"] = { "one", "nested" },
    } do
      here:put("context/requirements.md", markdown)
      assert.same(wanted, { table.unpack(context.load(nil, here.path).requirements) })
    end
    here:put("context/requirements.md", "- one\n")
  end)

  it("reads the file that a text names below /job/", function()
    here:put("notes/base.md", "from notes")
    assert.equal("from notes", context.load({ baseline_context = "/job/notes/base.md" }, here.path).baseline_context)
  end)

  it("takes skills in every form", function()
    here:put("s.md", "from s")
    for _, given in ipairs {
      "text", json.array { "text", { name = "n", content = "c" } }, { n = "text", m = { text = "t" } }, "/job/s.md",
    } do
      for _, skill in ipairs(context.load({ skills = given }, here.path).skills) do assert.is_string(skill.text) end
    end
    assert.same({ { name = "s", text = "from s" } }, context.load({ skills = "/job/s.md" }, here.path).skills)
  end)

  it("refuses a file that is missing, no file, outside, too large or not text", function()
    assert.matches("/job/none.md", refusal { task_context = "/job/none.md" }, 1, true)
    assert.matches("escapes", refusal { task_context = "/job/../etc/passwd" })
    for command, words in pairs {
      ["mkfifo task.md"] = "task.md", ["ln -s /etc/passwd task.md"] = "escapes",
      ["printf '\\377\\376' > task.md"] = "UTF%-8", ["head -c 1048577 /dev/zero | tr '\\0' x > task.md"] = "larger",
      ["echo '[1]' > preferences.json"] = "object", ["echo '{' > preferences.json"] = "not JSON",
    } do
      here:shell("rm -rf context && mkdir context && cd context && " .. command)
      assert.matches(words, refusal {})
    end
  end)

  it("says so where a path is named and there is no job directory", function()
    local _, errors = context.load({ task_context = "/job/x.md" }, nil)
    assert.matches("no job directory", errors[1].message)
    assert.equal("/context/task_context", errors[1].pointer)
  end)
end)
