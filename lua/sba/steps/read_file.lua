-- SPDX-License-Identifier: Apache-2.0
-- The step read_file: a file of the workspace, or a range of it.

local excerpt = require "sba.util.excerpt"
local fail = require "sba.util.fail"
local is = require "sba.util.schema_check"
local long_text = require "sba.util.files".long_text
local secret = require "sba.util.secret"
local text = require "native.text"

local check = fail.check
-- Bytes of a line that a model is shown.
local LONGEST_LINE <const> = 2000
local HEADER_ROOM <const> = 400 -- bytes
-- Bytes of plain text, and of content in memory.
local MOST_TEXT <const> = 1024 * 1024
-- Bytes of a file that is read to its end, if all is wanted.
local MOST_HASHED <const> = 256 << 20

-- The longest beginning of cut content that ends with a whole character.
local function without_half_character(content)
  local at = content:find("[\xC2-\xF4][\x80-\xBF]*$", -4) -- bounded: 4 bytes
  if at and utf8.len(content, at) == nil then return content:sub(1, at - 1) end
  return content
end

local function without_half_start(content)
  return content:sub(content:sub(1, 4):find("[^\x80-\xBF]") or 1)
end

--- At which ends the range may have cut a secret.
local function cut_of(arguments, truncated)
  local at_end = truncated or arguments.end_line
  if arguments.offset_bytes or arguments.start_line then return at_end and "both" or "start" end
  return at_end and "end" or "none"
end

--- How large a file may be to be read to its end, for its digest and its lines.
local function hashed_up_to(arguments, bound)
  if arguments.offset_bytes then return 0 end
  if arguments.max_bytes then return arguments.max_bytes end
  if arguments.start_line or arguments.end_line then return MOST_HASHED end
  return math.max(MOST_HASHED, bound)
end

---@class read_file.part
---@field content string|long_text
---@field encoding "utf-8"|"base64"
---@field truncated boolean the range holds more
---@field shown? string the plain text

--- At most bound bytes of what was read.
---@return read_file.part
local function short(read, cut, bound)
  local bytes = secret.redact(read.content, cut)
  local content = read.truncated and without_half_character(bytes) or bytes
  if text.is_utf8(content) then
    local kept, is_cut = text.cut(content, bound), read.truncated or #content > bound
    return { content = kept, encoding = "utf-8", truncated = is_cut, shown = kept }
  end
  local most = bound // 4 * 3
  local encoded, is_cut = text.base64_encode(bytes:sub(1, most)), read.truncated or #bytes > most
  return { content = encoded, encoding = "base64", truncated = is_cut }
end

-- Where head and tail of a text are cut, by where the text itself is.
local cuts <const> = {
  none = { head = "end", tail = "start" }, start = { head = "both", tail = "start" },
  ["end"] = { head = "end", tail = "both" }, both = { head = "both", tail = "both" },
}

--- Head and tail of a long text, and its head alone. beginning: at least as much of it.
local function shown_of(root, path, beginning, content)
  local half, after = MOST_TEXT // 2, content.offset + content.size
  local tail = root:read(path, { offset_bytes = after - half, max_bytes = half })
  local ends = cuts[content.cut]
  local head = text.repair(secret.redact(without_half_character(beginning:sub(1, half)), ends.head))
  tail = text.repair(secret.redact(without_half_start(tail and tail.content or ""), ends.tail))
  return excerpt.join(head, tail, content.length, MOST_TEXT), head
end

--- The same of a range that stays in its file. Raises failures.
---@return read_file.part
local function long(root, path, read, cut, bound)
  local content = check(long_text.new({
    file = check(root:open(path)), offset = read.from, size = read.length, cut = cut,
    is_part = read.truncated,
  }, bound))
  if content.encoding == "utf-8" then
    content.shown, content.head = shown_of(root, path, read.content, content)
  end
  return {
    content = content, encoding = content.encoding,
    truncated = read.truncated or content.is_cut, shown = content.shown,
  }
end

--- In place of bytes that are no text: how many were read. A part of a text may begin or end inside
--- a character.
local function not_text(count, size)
  if count == size then return ("%d bytes that are not UTF-8\n"):format(size) end
  return ("%d of %d bytes, which are not UTF-8 by themselves\n"):format(count, size)
end

local function run(arguments, job_context)
  local bound, own = job_context.max_output_bytes, arguments.max_bytes
  local root, path, prefix = job_context.resolve_path(arguments.path)
  check(root, path)
  local read = check(root:read(path, {
    offset_bytes = arguments.offset_bytes, start_line = arguments.start_line,
    end_line = arguments.end_line, max_bytes = math.min(own or bound, bound),
    max_content = MOST_TEXT, digest = true, max_digest = hashed_up_to(arguments, bound),
  }))
  local cut, is_long = cut_of(arguments, read.truncated), read.length > MOST_TEXT
  local part
  if is_long then part = long(root, path, read, cut, bound) else part = short(read, cut, bound) end
  local truncated = part.truncated
  local result = {
    path = secret.redact(prefix .. root:relative(path)),
    content = part.content, encoding = part.encoding, size_bytes = read.size_bytes,
    truncated = truncated, sha256 = read.sha256,
    total_lines = part.encoding == "utf-8" and read.lines or nil,
  }
  local shown = part.shown or not_text(read.length, read.size_bytes)
  local may_be_cut = own and own <= bound or job_context.agent
  if may_be_cut or not truncated then return result, shown, truncated or is_long end
  local message = "%s is larger than the job's max_output_bytes (%d); set max_bytes, lines or an offset"
  return fail.with("constraint_violation", message:format(result.path, bound), result, shown, true)
end

--- Lines with their numbers, as many as there is room for, and the last number.
local function numbered(content, first, room)
  local shown, number, size = {}, first - 1, 0
  for _, line in excerpt.lines(content) do
    local rest = #line - LONGEST_LINE
    if rest > 0 then
      line = ("%s [... %d bytes of this line left out ...]"):format(text.cut(line, LONGEST_LINE), rest)
    end
    line = ("%d\t%s\n"):format(number + 1, line)
    size = size + #line
    if size > room and number >= first then break end
    number = number + 1
    shown[#shown + 1] = line
  end
  return table.concat(shown), number
end

local function show_bytes(result, content, offset, limit)
  local part = text.cut(content, math.max(0, limit - HEADER_ROOM))
  local last, size = offset + #part, result.size_bytes
  return ("%s, bytes %d to %d of %d\n%s"):format(result.path, offset, last, size, part)
end

--- content: what there is of the range, from the line `first`; is_part: it goes on.
local function show_lines(result, content, is_part, first, wanted_last, limit)
  local total = result.total_lines -- nil: unknown
  local back = is_part and content:reverse():find("\n", 1, true)
  if back then content = content:sub(1, #content - back + 1) end -- only whole lines
  local body, last = numbered(content, first, limit - HEADER_ROOM)
  local last_there = total
  if not total then
    last_there = is_part and math.maxinteger or first + text.count_lines(content) - 1
  end
  local more = ""
  if last < math.min(last_there, wanted_last or last_there) then
    more = ("; start_line %d reads on"):format(last + 1)
  elseif last == total and content:byte(-1) ~= 0x0A then
    more = "; no newline at the end"
  end
  local of = total and (" of %d"):format(total) or ""
  return ("%s, lines %d to %d%s%s\n%s"):format(result.path, first, last, of, more, body)
end

--- What a model sees.
local function show(result, arguments, limit)
  local content, first = result.content, arguments.start_line or 1
  if result.encoding ~= "utf-8" then
    local form = "%s is not text, but %d bytes of something else; "
      .. "run_command can look into it, for example with file or xxd"
    return form:format(result.path, result.size_bytes)
  end
  local is_part = result.truncated or type(content) == "table"
  if type(content) == "table" then content = content.head end
  local offset = arguments.offset_bytes
  if offset then return show_bytes(result, content, offset, limit) end
  if result.size_bytes == 0 then return result.path .. " is empty" end
  if content ~= "" then
    return show_lines(result, content, is_part, first, arguments.end_line, limit)
  end
  if not result.total_lines then return ("%s has no line %d"):format(result.path, first) end
  return ("%s has only %d lines"):format(result.path, result.total_lines)
end

local function is_range(value)
  if type(value) ~= "table" or #value ~= 2 then return false end
  return math.type(value[1]) == "integer" and math.type(value[2]) == "integer"
end

--- What models write of lines: [10, 20], and -1 for the last one.
local function read_range(arguments)
  for _, name in ipairs { "view_range", "line_range", "lines", "range" } do
    local range = arguments[name]
    if is_range(range) and not arguments.start_line then
      arguments.start_line, arguments.end_line = range[1], range[2]
      arguments[name] = nil
    end
  end
  if arguments.start_line == 0 then arguments.start_line = 1 end
  if arguments.end_line == -1 then arguments.end_line = nil end
  return arguments
end

local function check_range(arguments)
  local first, last = arguments.start_line, arguments.end_line
  if not (first and last and last < first) then return end
  return ("end_line (%d) is before start_line (%d)"):format(last, first), "end_line"
end

return {
  name = "read_file",
  summary = "Read a file of the workspace, or a range of its lines or bytes.",
  arguments = is.object {
    "path!", is.text("A regular file, relative to the workspace or absolute below it.",
      { nul = false, minLength = 1 }),
    "max_bytes", is.count "Most bytes to return; the rest is omitted, and truncated is true.",
    "start_line", is.count("First line to return, from 1.", { minimum = 1 }),
    "end_line", is.count("Last line to return, inclusive.", { minimum = 1 }),
    "offset_bytes", is.count "Bytes to leave out at the start; lines are counted from there.",
  },
  for_model = {
    summary = "Read a file, or a range of its lines, with line numbers.",
    order = { "path", "start_line", "end_line" },
    called = {
      "read", "cat", "view", "open", "view_file", "open_file", "get_file", "file_read",
      "read_text_file", "show_file",
    },
    read = read_range,
  },
  result = is.object {
    "path!", is.text "Relative to the workspace; an artifact's begins with $CYNODE_ARTIFACTS_DIR.",
    "content!", is.text(),
    "encoding!", { enum = { "utf-8", "base64" }, description = "Of content; base64 where the bytes are not UTF-8." },
    "size_bytes!", is.count "Of the whole file.",
    "truncated!", is.flag "The range holds more than content.",
    "sha256", is.text "Of the whole file, in hex; absent where the file was not read to its end.",
    "total_lines", is.count("Of the whole file; absent where content is base64, or the file was not read to its end."),
  },
  check = check_range,
  show = show,
  brief = true,
  redacts = true,
  run = run,
}
