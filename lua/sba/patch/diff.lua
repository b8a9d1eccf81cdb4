-- SPDX-License-Identifier: Apache-2.0
-- Reads unified diffs, git's extensions included, and the form of "*** Begin Patch" that models are
-- taught. native.edit reads the lines of hunks, this module what is between, by patterns that pass
-- over each line once.

local edit = require "native.edit"
local fail = require "sba.util.fail"
local header = require "sba.patch.header"
local lpeg = require "lpeg"
local text = require "native.text"

local raise = fail.raise
local P, R, S = lpeg.P, lpeg.R, lpeg.S
local C, Cp = lpeg.C, lpeg.Cp

local diff = {}

local MARK <const> = "\u{FEFF}" -- of the byte order
local MOST_REPAIRED <const> = 4 << 20 -- bytes of a diff of a model

local newline = P "\n"
local line_end = P "\r" ^ -1 * (newline + -1)
local rest = (1 - newline) ^ 0 * newline ^ -1 -- of a line
local line = newline + (1 - newline) * rest
local blank = P "\r" ^ -1 * newline
local blanks = (S " \t" ^ 0 * blank) ^ 0 -- lines
local names = "--- " * rest * "+++ "
local signature = P "--" * P " " ^ -1 * P "\r" ^ -1 * (newline * -S " +-@\\" + -1) -- of a mail
local binary = P "GIT binary patch" * P "\r" ^ 0 * line_end
  + "Binary files " * (1 - (newline + " differ" * line_end)) ^ 1 * " differ" * line_end
local separator = P "diff " + "Index: " + "====" + "From " + "commit " + "Only in " + "```"
  + "Property changes on" + "*** End Patch" + binary + names + signature + -1
local marked = S " +" + P "-" - names - signature
local blank_lines = blank ^ 0 * Cp()
local tail = (blank + line - separator - marked - "@@" - "\\") ^ 0 * Cp()
local field = "*** " * C(P "Add File" + "Delete File" + "Update File") * ":" * Cp()
local move_to = "*** Move to:" * Cp()
local gap = S " \t" ^ 0
local begin = gap * "*** Begin Patch" * gap * line_end * blanks * gap * field
local end_patch = blanks * gap * Cp() * "*** End Patch" * gap * line_end
local end_of_file = blanks * "*** End of File" * S " \t" ^ 0 * line_end * Cp()

-- Git's lines about a file without "diff --git".
local mode_line = P "old mode " + "new mode " + "new file mode " + "deleted file mode "
local bare_git = mode_line * R "07" ^ 6 * line_end + "similarity index " * R "09" ^ 1 * "%"
  + "rename from " * rest * "rename to " + "copy from " * rest * "copy to "

-- Lines outside of any file.
-- A file of which svn shows no lines; and what it says of properties, up to the next file.
local no_lines = blanks * (P "Property changes on" + "Index: " + -1)
local properties = P "Property changes on" * rest
  * (blank + line - "Index: " - "diff " - "Property changes on") ^ 0 * Cp()

local special = P "diff --git " + "Property changes on" + bare_git + names + begin + "```" + "From "
  + "commit " + "@@ -" + binary
local boring = ((blank + #separator * line) - special) ^ 0 * Cp()
local words = (line - special - separator - blank) ^ 1 * Cp()

-- The lines of a hunk by their look, without blank lines at its end. In "*** Begin Patch" nothing
-- else can look so.
local by_look = (blank ^ 0 * (marked + "\\ ") * rest) ^ 0 * Cp()
-- Though it looks like context.
local fence = ("```" * rest * blanks) ^ -1
local last_line = gap * "*** End Patch" * gap * line_end * blanks * fence * -1
local begin_look = (blank ^ 0 * (S " +-" + "\\ " - last_line) * rest) ^ 0 * Cp()
-- Below a hunk that has as many lines as it says: more of its kind, or, below a blank line,
-- perhaps. What only begins with '+' there cannot be told from a signature, and is none.
local goes_on = marked
local may_go_on = blank ^ 1 * (blank + (P "+" + "\\ ") * rest) ^ 0 * (S " -" - names - signature)
local text_below = blank ^ 1 * (blank + line - separator - "@@ -") ^ 0 * Cp() + tail
local ends_well = blank + "@@" + separator
local next_hunk = blanks * Cp() * "@@"
local at_lines = ("@@" * rest) ^ 0 * Cp()
local past_gap = blanks * gap * Cp()
local begin_ends = blanks * (P "*** " + last_line + -1)
local begin_ends_well = next_hunk + begin_ends
local added_lines = (P "+" * rest) ^ 1 * ("\\ " * rest) ^ -1 * Cp()
local fenced_off = "```" * rest * (line - blank - marked - separator) ^ 0 * marked

-- At most nine: no file has more lines.
local digits = R "09" * R "09" ^ -8
local range = digits * ("," * digits) ^ -1
local numbered = "@@ -" * range * " +" * range * " @@" * rest * Cp()
local bare = (P "@@" * (#line_end + " ") * rest - "@@ " * S "+-" * R "09") ^ 1 * Cp()

---@class sba.patch.file a part of a diff
---@field old_path? string unquoted, not stripped; nil: /dev/null, or only from and to are said
---@field new_path? string
---@field from? string of a rename or copy, without a prefix
---@field to? string
---@field old? string path in the workspace, set by apply
---@field new? string the same; only what is renamed or copied has two
---@field action "created"|"modified"|"deleted"|"renamed"|"copied"|"mode_changed"
---@field is_plain? boolean only "---" and "+++" stand before its hunks
---@field is_begin? boolean of "*** Begin Patch"
---@field prefix? boolean both names begin with a directory that belongs to no name; nil: unknown
---@field is_new? boolean its one hunk says that the file is new or empty
---@field not_empty? boolean the old content, by the "index" line
---@field old_mode? integer as git writes it: 0100644 (octal), 0120000 a link
---@field new_mode? integer
---@field first integer number of its first hunk in the diff
---@field hunks integer
---@field removes? boolean some hunk does
---@field adds? boolean the same
---@field recounted? integer hunks whose @@ line had wrong counts
---@field tolerated table<string, true> as far as the diff alone shows it

local DAMAGED <const> = "neither a line of the hunk (' ', '+', '-') nor its end; the diff is damaged"
local BINARY <const> = "a binary patch cannot be applied; write the file with write_file instead"

local function invalid(reader, message, at, code)
  local _, before = reader.diff:sub(1, (at or reader.at) - 1):gsub("\n", "")
  raise(code or "invalid_patch", "line %d of the diff: %s", before + 1, message)
end

local function refuse_if(is_wrong, reader, message)
  if is_wrong then invalid(reader, message) end
end

local function is_at(reader, pattern) return lpeg.match(pattern, reader.diff, reader.at) end

local function starts(reader, with)
  return reader.diff:sub(reader.at, reader.at + #with - 1) == with
end

local function reach(reader, pattern)
  local at = is_at(reader, pattern)
  reader.at = at or reader.at
  return at ~= nil
end

--- The next line without its end.
local function take(reader)
  local at, stop = reader.at, reader.diff:find("\n", reader.at, true) or #reader.diff + 1
  reader.at = stop + 1
  return reader.diff:sub(at, reader.diff:byte(stop - 1) == 13 and stop - 2 or stop - 1)
end

local function new_file(reader, fields)
  fields.action, fields.tolerated = fields.action or "modified", {}
  fields.first, fields.hunks = reader.count + 1, 0
  reader.files[#reader.files + 1] = fields
  return fields
end

--- Takes what hunks:read returned. False: there are no hunks.
local function note_hunks(reader, file, after, count, _, removes, adds, is_new)
  if not after and count then error(count, 0) end
  if not after or count == 0 then return false end
  file.is_new = file.hunks == 0 and count == 1 and is_new
  file.removes, file.adds = file.removes or removes, file.adds or adds
  reader.count, reader.at, file.hunks = reader.count + count, after, file.hunks + count
  return true
end

local function add_hunk(reader, file, body, limit, by_content, at_end)
  local number, hunks = reader.count + 1, reader.hunks
  local is_noted = note_hunks(reader, file, hunks:read(number, reader.at, body, limit, by_content, at_end))
  if is_noted then return end
  invalid(reader, "the hunk above changes nothing, or goes on below '\\ No newline'", limit)
end

--- Reads a hunk without numbers, or one that has not as many lines as they say.
local function read_by_look(reader, file)
  local body = is_at(reader, numbered)
  if body then
    file.recounted = (file.recounted or 0) + 1
  else
    file.tolerated.no_line_numbers = true
  end
  local first = body or is_at(reader, bare)
  refuse_if(not first, reader, "a hunk begins with '@@ -LINE,COUNT +LINE,COUNT @@'")
  local after = lpeg.match(by_look, reader.diff, first)
  if not lpeg.match(ends_well, reader.diff, after) then invalid(reader, DAMAGED, after) end
  add_hunk(reader, file, first, after, not body)
  reader.is_open = true
  refuse_if(is_at(reader, fenced_off), reader,
    "this looks like the end of a hunk, but lines that look like a part of it follow")
end

local function has_more(reader, after)
  if lpeg.match(goes_on, reader.diff, after) then return true end
  local is_doubtful = lpeg.match(may_go_on, reader.diff, after) ~= nil
  reader.is_doubtful = reader.is_doubtful or is_doubtful
  return is_doubtful and not reader.trusts_counts
end

--- As note_hunks; but where the last hunk is longer than it says, without it. last: where it
--- begins.
local function note_counted(reader, file, after, count, last, ...)
  if after and has_more(reader, after) then after, count = last, count - 1 end
  return note_hunks(reader, file, after, count, last, ...)
end

local function read_hunk(reader, file)
  reader.is_open, reader.is_counted = false, true
  if note_counted(reader, file, reader.hunks:read(reader.count + 1, reader.at)) then return end
  reader.is_counted = false
  read_by_look(reader, file)
end

--- Passes blank lines and words below a file's last hunk. Lines that may be a part of a hunk are
--- refused, because a change would be lost, unless the hunk has all the lines that it says and a
--- blank line follows: a signature, a list, the boundary of a mail.
local function pass_tail(reader)
  local after = is_at(reader, reader.is_counted and text_below or tail)
  if is_at(reader, blank_lines) < after then reader.tolerated.prose = true end
  reader.at = after
  refuse_if(starts(reader, "\\"), reader, "'\\ No newline' belongs right below a line of a hunk")
  refuse_if(not is_at(reader, separator), reader, "this looks like a part of a hunk, but what stands above it does not")
end

local function read_hunks(reader, file)
  local at = reader.at
  reader.is_counted = false
  while starts(reader, "@@") or file.hunks > 0 and reach(reader, next_hunk) do
    if reader.at ~= at then file.tolerated.blank_lines = true end
    read_hunk(reader, file)
    at = reader.at
  end
  local action, has_none = file.action, file.hunks == 0
  if has_none and file.is_plain and reader.is_svn and is_at(reader, no_lines) then
    table.remove(reader.files)
    return
  end
  refuse_if(has_none and file.is_plain, reader,
    "after '---' and '+++' a hunk must begin, with '@@ -LINE,COUNT +LINE,COUNT @@'")
  refuse_if(action == "created" and file.removes, reader, "the new file above takes lines from an old one")
  refuse_if(action == "deleted" and file.adds, reader, "the deleted file above still has lines")
  local has_mode = file.new_mode and file.old_mode ~= file.new_mode
  if action == "modified" and has_none and has_mode then file.action = "mode_changed" end
  pass_tail(reader)
end

local function read_file(reader, fields)
  local file, seen = new_file(reader, fields), {}
  repeat
    local at, found = reader.at, take(reader)
    seen[found:sub(1, 4)] = true
    local mistake = header.read(file, found)
    if mistake then invalid(reader, mistake, at) end
  until not is_at(reader, header.known) or file.is_plain and seen["+++ "]
  if is_at(reader, binary) then invalid(reader, BINARY, nil, "binary_patch") end
  refuse_if(seen["--- "] ~= seen["+++ "], reader, "the header above has only one of its lines '---' and '+++'")
  local mistake = header.settle(file)
  if mistake then invalid(reader, mistake) end
  read_hunks(reader, file)
  return file
end

--- The name from an offset to the end of the next line.
local function take_name(reader, from)
  local at = reader.at
  local name = header.name(text.trim(take(reader):sub(from - at + 1)))
  return name or invalid(reader, header.NO_NAME, at)
end

-- The readers of a part of "*** Begin Patch", by the field that it begins with.
local begin_parts = {}

begin_parts["Update File"] = function(reader, name)
  local to = is_at(reader, move_to)
  to = to and take_name(reader, to)
  local file = new_file(reader, { is_begin = true, old_path = name, new_path = name })
  if to then file.action, file.from, file.to = "renamed", name, to end
  while reach(reader, next_hunk) or not is_at(reader, begin_ends) do
    local body = is_at(reader, at_lines)
    local after = lpeg.match(begin_look, reader.diff, body)
    local at_end = lpeg.match(end_of_file, reader.diff, after)
    if not lpeg.match(begin_ends_well, reader.diff, after) then invalid(reader, DAMAGED, after) end
    add_hunk(reader, file, body, after, true, at_end ~= nil)
    reader.at, file.tolerated.no_line_numbers = at_end or reader.at, true
  end
  refuse_if(file.hunks == 0 and not to, reader, "the file above is to be updated, but no change follows")
end

begin_parts["Add File"] = function(reader, name)
  local file = new_file(reader, { is_begin = true, action = "created", new_path = name })
  local after = is_at(reader, added_lines)
  if after then add_hunk(reader, file, reader.at, after, true) end
end

begin_parts["Delete File"] = function(reader, name)
  new_file(reader, { is_begin = true, action = "deleted", old_path = name })
end

local function read_begin(reader)
  reader.tolerated.begin_patch = true
  take(reader)
  while not reach(reader, end_patch) do
    reach(reader, past_gap)
    refuse_if(reader.at > #reader.diff, reader, "'*** Begin Patch' without '*** End Patch': the patch was cut off")
    local kind, after = is_at(reader, field)
    refuse_if(not kind, reader, "here '*** Add File: ', '*** Delete File: ', '*** Update File: ' "
      .. "or '*** End Patch' belongs; each line of a new file begins with '+'")
    begin_parts[kind](reader, take_name(reader, after))
  end
  take(reader)
  reader.is_open = false
end

local function read_next(reader)
  reader.at = is_at(reader, boring)
  if reader.at > #reader.diff then return end
  local after = is_at(reader, words)
  if after then
    reader.tolerated.prose, reader.at = not reader.is_mail or reader.tolerated.prose, after
  elseif starts(reader, "```") then
    reader.in_fence, reader.tolerated.code_fence = not reader.in_fence, true
    take(reader)
  elseif is_at(reader, begin) then
    read_begin(reader)
  elseif reach(reader, properties) then
    reader.tolerated.properties = true
  elseif starts(reader, "diff --git ") then
    read_file(reader, {})
  elseif is_at(reader, bare_git) then
    read_file(reader, {}).tolerated.no_git_line = true
  elseif is_at(reader, names) then
    read_file(reader, { is_plain = true })
  elseif is_at(reader, binary) then
    invalid(reader, BINARY, nil, "binary_patch")
  elseif starts(reader, "@@ -") then
    invalid(reader, "a hunk without '---' and '+++' before it: which file is it for?")
  else -- the first line of a mail, or of a commit in a log
    reader.is_mail = true
    take(reader)
  end
end

--- Git writes a header alone for a file if only its times differ.
local function changes_anything(files)
  for _, file in ipairs(files) do
    if file.hunks > 0 or file.action ~= "modified" or file.new_mode then return true end
  end
end

local function read(bytes, trusts_counts)
  if bytes:sub(1, #MARK) == MARK then bytes = bytes:sub(#MARK + 1) end
  local reader = {
    diff = bytes, at = 1, -- where the next line begins
    files = {}, -- sba.patch.file
    hunks = edit.hunks(bytes), count = 0,
    tolerated = {}, -- of the whole diff
    is_mail = false, -- or a log: it has words
    in_fence = false, -- a code fence is open
    is_svn = bytes:find("^Index: ") ~= nil or text.find(bytes, "\nIndex: ", 1) ~= nil,
    is_open = false, -- only its lines tell where the last hunk ends
    is_counted = false, -- the last hunk has as many lines as it says
    is_doubtful = false, -- of some such hunk, lines below a blank one may be its own
    trusts_counts = trusts_counts, -- they are not
  }
  while reader.at <= #bytes do read_next(reader) end
  if not changes_anything(reader.files) then
    local message = "no change found: a unified diff has lines '--- a/FILE', '+++ b/FILE' and '@@ -1,3 +1,4 @@'"
    raise("invalid_patch", message)
  end
  refuse_if(reader.in_fence and reader.is_open, reader,
    "a code fence (```) has no other end: the diff may have been cut off")
  return reader
end

---@class sba.patch.parsed
---@field files sba.patch.file[]
---@field hunks native.edit.hunks
---@field tolerated table<string, true>
---@field is_doubtful boolean it could be read with trusts_counts in another way

---@param bytes string
---@param trusts_counts? boolean what follows a hunk of as many lines as it says, and a blank line,
---is none of it
---@return sba.patch.parsed? parsed
---@return native.failure? failure invalid_patch (with the line), binary_patch, too_large
function diff.parse(bytes, trusts_counts) return fail.caught(read, bytes, trusts_counts) end

local ends_part = P "diff --git " + "*** " + "```" + "Index: " + names
local function with_blanks(unmarked)
  local body = "@@" * rest + S "+-\\" * rest + blank + unmarked
  return lpeg.Cs(("@@" * rest * (body - ends_part) ^ 0 + line) ^ 0)
end
local add_blank = P "" / " " * line
local all, some = with_blanks(add_blank), with_blanks(" " * rest + add_blank)

---The diff with a blank before each context line (a model that leaves out one leaves out all: what
---looks like one is indentation), and with a blank before each that has none. Neither, if each line
---of each hunk has its mark.
---@param bytes string
---@return string[]
function diff.with_blanks(bytes)
  if #bytes > MOST_REPAIRED then return {} end
  local second = lpeg.match(some, bytes)
  return second ~= bytes and { lpeg.match(all, bytes), second } or {}
end

return diff
