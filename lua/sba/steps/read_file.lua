-- SPDX-License-Identifier: Apache-2.0
-- The step read_file: a file of the workspace, or a range of it.

local secret = require "sba.util.secret"
local text = require "native.text"

-- The longest beginning of cut content that ends with a whole character.
local function without_half_character(content)
  local at = content:find("[\xC2-\xF4][\x80-\xBF]*$", -4) -- bounded: 4 bytes
  if at and utf8.len(content, at) == nil then return content:sub(1, at - 1) end
  return content
end

--- At which ends the range may have cut a secret.
local function cut_of(arguments, read)
  local at_start, at_end = arguments.offset_bytes or arguments.start_line, read.truncated or arguments.end_line
  return at_start and (at_end and "both" or "start") or at_end and "end" or "none"
end

---What is returned of the bytes read, and how: at most bound bytes of content.
local function encoded(arguments, read, bound)
  local bytes = secret.redact(read.content, cut_of(arguments, read))
  local content = read.truncated and without_half_character(bytes) or bytes
  if text.is_utf8(content) then return text.cut(content, bound), "utf-8", read.truncated or #content > bound end
  local most = bound // 4 * 3
  return text.base64_encode(bytes:sub(1, most)), "base64", read.truncated or #bytes > most
end

---@param arguments { path: string, max_bytes?: integer, start_line?: integer, end_line?: integer, offset_bytes?: integer }
---@param job_context sba.job_context
---@return table? result
---@return string|native.failure text or failure
---@return boolean? is_cut whether something is missing from the text
local function run(arguments, job_context)
  local bound, own = job_context.max_output_bytes, arguments.max_bytes
  local root, path, prefix = job_context.place(arguments.path)
  if not root then return nil, path end
  local read, failure = root:read(path, {
    offset_bytes = arguments.offset_bytes,
    start_line = arguments.start_line,
    end_line = arguments.end_line,
    max_bytes = math.min(own or bound, bound),
    digest = true,
  })
  if not read then return nil, failure end
  local content, encoding, truncated = encoded(arguments, read, bound)
  local result = {
    path = prefix .. root:relative(path), content = content, encoding = encoding,
    size_bytes = read.size_bytes, truncated = truncated, sha256 = read.sha256,
  }
  local shown = encoding == "utf-8" and content or ("%d bytes that are not UTF-8\n"):format(read.size_bytes)
  if not truncated or (own and own <= bound) then return result, shown, truncated end
  local message = ("%s is larger than the job's max_output_bytes (%d); set max_bytes, lines or an offset")
    :format(result.path, bound)
  return nil, { code = "constraint_violation", message = message, result = result, text = shown, is_cut = true }
end

local function is_range(value)
  return type(value) == "table" and #value == 2 and math.type(value[1]) == "integer" and math.type(value[2]) == "integer"
end

--- What models write of lines: [10, 20], and -1 for the last one.
local function read_range(arguments)
  for _, name in ipairs { "view_range", "line_range", "lines", "range" } do
    if is_range(arguments[name]) and not arguments.start_line then
      arguments.start_line, arguments.end_line, arguments[name] = arguments[name][1], arguments[name][2], nil
    end
  end
  if arguments.start_line == 0 then arguments.start_line = 1 end
  if arguments.end_line == -1 then arguments.end_line = nil end
  return arguments
end

local function check(arguments)
  local first, last = arguments.start_line, arguments.end_line
  if first and last and last < first then return ("end_line (%d) is before start_line (%d)"):format(last, first), "end_line" end
end

return {
  name = "read_file",
  summary = "Read a file of the workspace, or a range of its lines or bytes.",
  arguments = {
    type = "object",
    required = { "path" },
    order = { "path", "max_bytes", "start_line", "end_line", "offset_bytes" },
    additionalProperties = false,
    properties = {
      path = {
        type = "string", nul = false, minLength = 1,
        description = "A regular file, relative to the workspace or absolute below it.",
      },
      max_bytes = { type = "integer", minimum = 0, description = "Bytes to return at most; what is more is left out and said." },
      start_line = { type = "integer", minimum = 1, description = "First line to return, from 1." },
      end_line = { type = "integer", minimum = 1, description = "Last line to return, inclusive." },
      offset_bytes = { type = "integer", minimum = 0, description = "Bytes to leave out at the start; lines are counted from there." },
    },
  },
  for_model = {
    summary = "Read a file, or a range of its lines, with line numbers.",
    order = { "path", "start_line", "end_line" },
    called = { "read", "cat", "view", "open", "view_file", "open_file", "get_file", "file_read", "read_text_file", "show_file" },
    read = read_range,
  },
  result = {
    type = "object",
    required = { "path", "content", "encoding", "size_bytes", "truncated", "sha256" },
    order = { "path", "content", "encoding", "size_bytes", "truncated", "sha256" },
    additionalProperties = false,
    properties = {
      path = { type = "string", description = "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR." },
      content = { type = "string" },
      encoding = { enum = { "utf-8", "base64" }, description = "Of content; base64 where the bytes are not UTF-8." },
      size_bytes = { type = "integer", minimum = 0, description = "Of the whole file." },
      truncated = { type = "boolean", description = "The range holds more than content." },
      sha256 = { type = "string", description = "Of the whole file, in hex." },
    },
  },
  check = check,
  brief = true,
  run = run,
}
