--- Tasks as lines of text: escaping, formatting and parsing.
local characters = require("punchlist.characters")

local M = {}

--- Status → its checkbox, as in the Markdown files that punch writes.
M.BOX_OF = { pending = " ", in_progress = "/", paused = "=", completed = "x", failed = "✗" }
M.BLOCKED, M.ASKS = ".", "?"
-- Alternatives that people type. A save replaces them with the checkboxes above.
local STATUS_OF = {
  ["~"] = "in_progress", ["-"] = "paused", [">"] = "paused", ["!"] = "failed", ["✘"] = "failed", X = "completed",
  [M.BLOCKED] = "pending", [M.ASKS] = "asks",
}
for status, box in pairs(M.BOX_OF) do STATUS_OF[box] = status end
M.PRIORITIES = { "low", "normal", "high", "urgent" }
local MAX_NOTE = 120 -- characters of a result or a reason
local NEAR = { [-1] = "yesterday", [0] = "today", [1] = "tomorrow" }
local IS_PRIORITY = { low = true, normal = true, high = true, urgent = true }

local function is_set(value)
  return value ~= nil and value ~= vim.NIL
end

local function is_within(code, ranges)
  for _, range in ipairs(ranges) do
    if code <= range[2] then return code >= range[1] end
  end
  return false
end

--- Decode the character at `at`. Return its code point (nil if it isn't UTF-8) and its length in bytes.
local function decode_at(text, at)
  local first = text:byte(at)
  if first < 0x80 then return first, 1 end
  local length = first >= 0xf0 and 4 or first >= 0xe0 and 3 or 2
  if first < 0xc2 or first > 0xf4 or at + length - 1 > #text then return nil, 1 end
  local code = first % 2 ^ (7 - length)
  for index = at + 1, at + length - 1 do
    local byte = text:byte(index)
    if byte < 0x80 or byte > 0xbf then return nil, 1 end
    code = code * 64 + byte - 0x80
  end
  return code, length
end

local function escape(code)
  return (code < 0x100 and "\\x%02x" or code < 0x10000 and "\\u%04x" or "\\U%08x"):format(code)
end

--- Return whether a joiner is allowed next to this character, which is true for letters, digits, marks and emoji.
local function is_writing(code)
  if not code then return false end
  if code < 0x100 then return is_within(code, characters.LATIN) end
  return not is_within(code, characters.UNSAFE) and not is_within(code, characters.SPACES)
end

--- Escape control, bidirectional and invisible characters, by the same rule as punchlist/base/text.py.
function M.safe(text)
  if not text:find("[%c\127-\255]") then return text end
  local parts, at, marks, before = {}, 1, 0, nil
  while at <= #text do
    local code, length = decode_at(text, at)
    marks = code and is_within(code, characters.MARKS) and marks + 1 or 0
    local is_safe = code and not is_within(code, characters.UNSAFE) and marks <= characters.MAX_MARKS
    if code and not is_safe and is_writing(before) then
      local after = at + length <= #text and decode_at(text, at + length) or nil
      is_safe = is_within(code, characters.SELECTORS) or (is_within(code, characters.JOINERS) and is_writing(after))
    end
    parts[#parts + 1] = is_safe and text:sub(at, at + length - 1) or escape(code or text:byte(at))
    at, before = at + length, code
  end
  return table.concat(parts)
end

function M.is_utf8(text)
  local at = 1
  while at <= #text do
    local code, length = decode_at(text, at)
    if not code then return false end
    at = at + length
  end
  return true
end

--- Describe what a completed task waits for at its gate.
function M.describe_gate(row)
  local gate = row.gate or {}
  if row.waits_for ~= "yes" then return "the check " .. M.safe(gate.check or "") end
  return (gate.by or "") == "" and "your yes" or M.safe(gate.by) .. "'s yes"
end

--- Return an owner as one word in a line.
function M.owner(owner)
  return (M.safe(owner):gsub(" ", "\\x20"))
end

--- Return the checkbox of a task. A pending task that can't start yet has another one than a ready task.
function M.box(task)
  if task.waits_for == "yes" then return M.ASKS end
  local is_blocked = #(task.open_blockers or {}) > 0 or is_set(task.not_before)
  if task.status == "pending" and is_blocked then return M.BLOCKED end
  return M.BOX_OF[task.status] or M.ASKS
end

--- Parse the priority, owner and blockers at the end of a line. Return nil for any other text.
local function parse_end(text)
  local parsed = { priority = "normal", owner = "", blocked_by = {} }
  local rest, blockers = text:match("^(.*)<%-([#%d,%s]+)$")
  if blockers then
    for id in blockers:gmatch("%d+") do parsed.blocked_by[#parsed.blocked_by + 1] = id end
    if blockers:gsub("#%d+", ""):find("[^,%s]") then return nil end
  end
  for word in (rest or text):gmatch("%S+") do
    local priority, owner = word:match("^!(%a+)$"), word:match("^@(%S+)$")
    if IS_PRIORITY[priority] then
      parsed.priority, parsed.is_closed = priority, priority == "normal"
    elseif owner then
      parsed.owner = owner
    else
      return nil
    end
  end
  return parsed
end

local function cut(words)
  local line = M.safe(words:match("^%s*([^\n]*)"))
  return vim.fn.strchars(line) > MAX_NOTE and vim.fn.strcharpart(line, 0, MAX_NOTE - 1) .. "…" or line
end

local function format_date(at, day)
  local when = math.floor(at / 1000)
  local date = day or os.date("%Y-%m-%d", when)
  for offset, name in pairs(NEAR) do
    if date == os.date("%Y-%m-%d", os.time() + offset * 86400) then date = name end
  end
  return day and date or date .. os.date(" %H:%M", when)
end

--- Return the members that a line doesn't contain, as chunks of virtual text.
function M.members(row)
  local chunks = {}
  local function add(words, highlight) chunks[#chunks + 1] = { "  " .. words, highlight } end
  if row.priority and row.priority ~= "normal" then add("!" .. row.priority, "punchlistPriority") end
  if #(row.open_blockers or {}) > 0 then add("<- #" .. table.concat(row.open_blockers, " #"), "punchlistBlockers") end
  for _, label in ipairs(row.labels or {}) do add("+" .. M.safe(label), "punchlistLabel") end
  if (row.owner or "") ~= "" then add("@" .. M.safe(row.owner), "punchlistOwner") end
  local is_finished = row.status == "completed" or row.status == "failed"
  if is_set(row.due) and not is_finished then
    local day = is_set(row.due_day) and row.due_day or nil
    local is_late = day and day < os.date("%Y-%m-%d") or not day and row.due / 1000 < os.time()
    add((is_late and "late: due " or "due ") .. format_date(row.due, day), is_late and "WarningMsg" or "Comment")
  end
  if is_set(row.not_before) then
    add("put off until " .. format_date(row.not_before, is_set(row.not_before_day) and row.not_before_day or nil), "Comment")
  end
  return chunks
end

--- Return the state of a task as chunks of virtual text: its claim, and what it waits for or came to.
function M.state(row)
  local chunks = {}
  local function add(words) chunks[#chunks + 1] = { "  " .. words, "Comment" } end
  if row.fence then
    local till = row.lease_expires_at and os.date(" until %H:%M", math.floor(row.lease_expires_at / 1000)) or ""
    local where = (row.machine or "") ~= "" and " on " .. M.safe(row.machine) or ""
    local left = row.left_at or row.silent_at
    add((left and "left at " .. os.date("%H:%M", math.floor(left / 1000)) or "claimed") .. where .. till)
  end
  if row.waits_for then add("waits for " .. M.describe_gate(row)) end
  local outcome = row.status == "failed" and row.fail_reason or row.result_summary
  if (outcome or "") ~= "" then add(cut(outcome)) end
  return chunks
end

function M.join(chunks)
  return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks))
end

--- Split a new line into its title and its parsed end.
local function split_title(text)
  local title, ending = text:match("^(.*)  (%S.-)%s*$")
  local parsed = ending and parse_end(ending)
  if parsed and title:find("%S") then return title, parsed end
  return text, { priority = "normal", owner = "", blocked_by = {} }
end

--- Format a task as a line: its checkbox, number and title. Its other members are shown as virtual text.
function M.format_line(task, depth)
  return ("%s[%s] #%s %s"):format(("  "):rep(depth), M.box(task), task.id, M.safe(task.title))
end

--- Find a part of a new task's title that looks like the end of a line but can't be parsed.
function M.find_stray_end(task)
  return not task.is_closed and (task.title:match("  ([!@]%S.*)$") or task.title:match("  (<%-.*)$")) or nil
end

--- Find a priority or blockers at the end of a known task's title, where they are only text.
--- @return string|nil, string|nil the words, and the action that would change the member
function M.find_member(title)
  local priority, blockers = title:match("%s!(%a+)$"), title:match("%s(<%-[#%d,%s]+)$")
  if IS_PRIORITY[priority] then return "!" .. priority, "raise" end
  if blockers then return blockers, "block" end
end

--- Return the id in a task's line, or nil.
function M.parse_id(line)
  return line:match("^ *%[[^%]]*%] #(%d+) ")
end

--- Parse a line into a task with `depth`, `status`, `id` (nil for a new task) and `title`. A new task also has the
--- members at the end of its line; in the line of a known task, everything after the number is its title.
--- @return table|nil, string|nil the task, or nil and the error
function M.parse_line(line)
  if not M.is_utf8(line) then return nil, "the line is not UTF-8" end
  local indent, box, rest = line:match("^( *)%[([^%]]+)%] (.+)$")
  if not box then return nil, "expected [ ] Title, with [/] [=] [x] or [✗] for another status" end
  if not STATUS_OF[box] then return nil, ("[%s] is not a status: use [ ] [/] [=] [x] [✗]"):format(M.safe(box)) end
  local id, own = rest:match("^#(%d+) (.*)$")
  local title, parsed = own, {}
  if not id then title, parsed = split_title(rest) end
  title = title:match("^(.*%S)")
  if not title then return nil, "the title is missing" end
  if M.safe(title) ~= title then return nil, "the title has control characters" end
  parsed.depth, parsed.status, parsed.id, parsed.title = math.floor(#indent / 2), STATUS_OF[box], id, title
  return parsed
end

return M
