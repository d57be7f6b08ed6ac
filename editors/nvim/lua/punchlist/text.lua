--- Tasks as lines of text: escaping, formatting and parsing.
local characters = require("punchlist.characters")

local M = {}

--- Status → its checkbox, as in the Markdown files that punch writes.
M.BOX_OF = { pending = " ", in_progress = "/", paused = "=", completed = "x", failed = "✗" }
-- Alternatives that people type. A save replaces them with the checkboxes above.
local STATUS_OF = { ["~"] = "in_progress", ["-"] = "paused", [">"] = "paused", ["!"] = "failed", ["✘"] = "failed", X = "completed" }
for status, box in pairs(M.BOX_OF) do STATUS_OF[box] = status end
M.PRIORITIES = { "low", "normal", "high", "urgent" }
local IS_PRIORITY = { low = true, normal = true, high = true, urgent = true }

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

local function format_end(priority, owner, blocked_by)
  local words = {}
  if priority ~= "normal" then words[1] = "!" .. priority end
  if owner ~= "" then words[#words + 1] = "@" .. M.owner(owner) end
  if #blocked_by > 0 then words[#words + 1] = "<- #" .. table.concat(blocked_by, ",#") end
  return table.concat(words, " ")
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

--- Split a line into its title and its parsed end.
local function split_title(text)
  local title, ending = text:match("^(.*)  (%S.-)%s*$")
  local parsed = ending and parse_end(ending)
  if parsed and title:find("%S") then return title, parsed end
  return text, { priority = "normal", owner = "", blocked_by = {} }, true
end

--- Format a task as a line. "!normal" is added after a title whose last words would otherwise be parsed as members.
function M.format_line(task, depth)
  local title = M.safe(task.title)
  local ending = format_end(task.priority or "normal", task.owner or "", task.blocked_by or {})
  local _, _, is_whole = split_title(title)
  if ending == "" and not is_whole then ending = "!normal" end
  return ("%s[%s] #%s %s%s"):format(("  "):rep(depth), M.BOX_OF[task.status] or "?", task.id, title, ending ~= "" and "  " .. ending or "")
end

local function has_word(title, word)
  return (" " .. title .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

--- Return the member that has moved from the end of the line into the title, or nil.
local function find_taken_member(task, was)
  local lost = {
    was.priority ~= task.priority and "!" .. was.priority,
    was.owner ~= task.owner and "@" .. was.owner,
    #was.blocked_by > #task.blocked_by and "<-",
    #was.blocked_by > #task.blocked_by and "#" .. table.concat(was.blocked_by, ",#"),
  }
  for at = 1, 4 do
    if lost[at] and has_word(task.title, lost[at]) and not has_word(was.title, lost[at]) then return lost[at] end
  end
end

--- Find a part of a title that looks like the end of a line and wasn't in the previous title (`was`, nil for a new task).
--- @return string|nil, boolean the part, and whether it is a member of the same task
function M.find_stray_end(task, was)
  local stray = task.title:match("  ([!@]%S.*)$") or task.title:match("  (<%-.*)$")
  local own = was and find_taken_member(task, was)
  if own then return stray or own, true end
  local is_new = stray and not task.is_closed and not (was and was.title:find(stray, 1, true))
  return is_new and stray or nil, false
end

--- Return the id in a task's line, or nil.
function M.parse_id(line)
  return line:match("^ *%[[^%]]*%] #(%d+) ")
end

--- Parse a line into a task with `depth`, `status`, `id` (nil for a new task), `title` and the members at the end.
--- @return table|nil, string|nil the task, or nil and the error
function M.parse_line(line)
  if not M.is_utf8(line) then return nil, "the line is not UTF-8" end
  local indent, box, rest = line:match("^( *)%[([^%]]+)%] (.+)$")
  if not box then return nil, "expected [ ] Title, with [/] [=] [x] or [✗] for another status" end
  if not STATUS_OF[box] then return nil, ("[%s] is not a status: use [ ] [/] [=] [x] [✗]"):format(M.safe(box)) end
  local id, own = rest:match("^#(%d+) (.*)$")
  local title, parsed = split_title(own or rest)
  title = title:match("^(.*%S)")
  if not title then return nil, "the title is missing" end
  if M.safe(title) ~= title then return nil, "the title has control characters" end
  parsed.depth, parsed.status, parsed.id, parsed.title = math.floor(#indent / 2), STATUS_OF[box], id, title
  return parsed
end

return M
