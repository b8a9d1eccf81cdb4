-- SPDX-License-Identifier: Apache-2.0
-- The step write_file: creates or replaces a file of the workspace, atomically, or appends to it.

local check = require "sba.util.fail".check
local humanize = require "sba.util.humanize"
local is = require "sba.util.schema_check"
local lines = require "sba.util.excerpt".lines
local raise = require "sba.util.fail".raise
local redact = require "native.secret".redact
local text = require "native.text"

--- Line ends in base64 mean nothing (RFC 2045): base64(1) writes them, Python and GitHub too.
local function decoded(content) return text.base64_decode((content:gsub("[\r\n]", ""))) end

-- Bytes of a file that a model would replace without having seen it.
local MOST_SHOWN <const> = 4096
-- Bytes of a file that was appended to.
local MOST_HASHED <const> = 1024 * 1024

--- What is still to be appended: an earlier run may have been ended in the middle of it.
local function rest_of(root, path, content, before)
  local there = root:read(path, { offset_bytes = before, max_bytes = #content + 1 })
  local is_ours = there and there.content == content:sub(1, #there.content)
  return is_ours and content:sub(#there.content + 1) or content
end

--- The step may be one that an earlier run began and a kill cut off: what that run appended counts.
local function append(root, path, content, options, job_context)
  local there = root:read(path, { max_bytes = 0 })
  local size = there and there.size_bytes
  local before = size
  if job_context.size_before_append then before = job_context.size_before_append(size) end
  if there and size ~= before then
    content = rest_of(root, path, content, before)
    options.overwrite = true -- the file is the earlier run's
  end
  local written = check(root:write(path, content, options))
  if not written.sha256 then
    there = root:read(path, { max_bytes = 0, digest = true, max_digest = MOST_HASHED })
    written.sha256 = there and there.sha256
  end
  written.created = before == nil
  return written
end

local function show_what_is_there(root, path, failure)
  local there = failure.code == "already_exists" and root:read(path, { max_bytes = MOST_SHOWN })
  if not there then return end
  local cut = there.truncated and "end" or "none"
  failure.text = redact(text.cut(text.repair(there.content), MOST_SHOWN), cut)
end

--- A model may write a part of a file back with the numbers that it was shown with, such as "3\tport = 1": each line
--- has the text of the file's line of that number, and the file has more.
local function refuse_shown_lines(root, path, content)
  local there = content:find "^%s*%d+[\t:]" and root:read(path, { max_bytes = MOST_HASHED })
  if not there or there.truncated then return end
  local old, count = {}, 0
  for _, line in lines(there.content) do old[#old + 1] = line end
  for _, line in lines(content) do
    local number, rest = line:match "^%s*(%d+)[\t:](.*)$" -- bounded: the parts share no character
    if not number or old[tonumber(number)] ~= rest then return end
    count = count + 1
  end
  if count == #old then return end
  raise("invalid", "content is %d of the %d lines of %s, with the numbers that they were shown with, which are no part "
    .. "of it: nothing was written. Change a part with replace_in_file, or give the whole file", count, #old, path)
end

local function run(arguments, job_context)
  local root, path, prefix = job_context.resolve_path(arguments.path)
  check(root, path)
  local content = arguments.content
  if arguments.encoding == "base64" then content = assert(decoded(content)) end -- as checked
  local options = {
    mode = arguments.mode and tonumber(arguments.mode, 8), overwrite = arguments.overwrite,
    append = arguments.append,
  }
  local written
  if job_context.agent and not arguments.append then refuse_shown_lines(root, path, content) end
  if arguments.append then
    written = append(root, path, content, options, job_context)
  else
    local failure
    written, failure = root:write(path, content, options)
    if not written and job_context.agent then show_what_is_there(root, path, failure) end
    check(written, failure)
  end
  written.path = prefix .. root:relative(path)
  local verb = written.created and "created" or "wrote"
  return written, ("%s %s, now %d bytes\n"):format(verb, written.path, written.size_bytes)
end

local function check_arguments(arguments)
  local mode = arguments.mode
  if mode and not mode:find "^0?[0-7][0-7][0-7]$" then
    local message = "mode must be permission bits in octal, such as \"0644\", not above \"0777\", got %s"
    return message:format(humanize.quoted(mode)), "mode"
  end
  if arguments.encoding == "base64" then
    local content, failure = decoded(arguments.content)
    if not content then return failure.message, "content" end
  end
end

return {
  name = "write_file",
  summary = "Create or replace a file of the workspace, or append to it; missing directories are made.",
  arguments = is.object {
    "path!", is.text("Relative to the workspace or absolute below it. "
      .. "A link is followed, where it stays inside.", { nul = false, minLength = 1 }),
    "content!", is.text(),
    "encoding", {
      enum = { "utf-8", "base64" }, default = "utf-8",
      description = "Of content; base64, which may have line ends, is decoded before it is written.",
    },
    "mode", is.text("Permission bits in octal, such as \"0755\"; "
      .. "else those of the file replaced, or 0644.", { printed = { pattern = "^0?[0-7]{3}$" } }),
    "overwrite", is.flag("Where false, a file that is there is an error.", { default = true }),
    "append", is.flag("Keep what the file holds, and add content to its end.", { default = false }),
  },
  for_model = {
    summary = "Create or replace a whole file. Missing directories are made.",
    order = { "path", "content", "append" },
    descriptions = { append = "Add content to the file's end" },
    called = { "write", "create_file", "save_file", "write_to_file", "file_write", "new_file", "write_text_file" },
  },
  result = is.object {
    "path!", is.text "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.",
    "size_bytes!", is.count "Of the whole file.",
    "sha256", is.text("Of the whole file, in hex; absent after an append to a file that is then larger than 1 MiB."),
    "created!", is.flag "There was no such file before.",
  },
  check = check_arguments,
  brief = true,
  run = run,
}
