--- Tasks as lines of text: made harmless, written, and read back.
local characters = require("punchlist.characters")

local M = {}

--- Status → its box: those that punch writes into Markdown files.
M.BOX_OF = { pending = " ", in_progress = "/", paused = "=", completed = "x", failed = "✗" }
-- What people type besides; each is written as above once it is saved.
local STATUS_OF = { ["~"] = "in_progress", ["-"] = "paused", [">"] = "paused", ["!"] = "failed", ["✘"] = "failed", X = "completed" }
for status, box in pairs(M.BOX_OF) do STATUS_OF[box] = status end
M.PRIORITIES = { "low", "normal", "high", "urgent" }
local IS_PRIORITY = { low = true, normal = true, high = true, urgent = true }

local function within(code, ranges)
  for _, range in ipairs(ranges) do
    if code <= range[2] then return code >= range[1] end
  end
  return false
end

--- The code point and length in bytes of the character at `at`; nil where the bytes are not UTF-8.
local function character(text, at)
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

--- Whether a joiner may stand beside this character: a letter, a digit, a mark or a picture.
local function is_writing(code)
  if not code then return false end
  if code < 0x100 then return within(code, characters.LATIN) end
  return not within(code, characters.UNSAFE) and not within(code, characters.SPACES)
end

--- The text with everything that could steer or deceive made a visible escape: the rule of punchlist/base/text.py.
function M.safe(text)
  if not text:find("[%c\127-\255]") then return text end
  local shown, at, marks, before = {}, 1, 0, nil
  while at <= #text do
    local code, length = character(text, at)
    marks = code and within(code, characters.MARKS) and marks + 1 or 0
    local harmless = code and not within(code, characters.UNSAFE) and marks <= characters.MAX_MARKS
    if code and not harmless and is_writing(before) then
      local after = at + length <= #text and character(text, at + length) or nil
      harmless = within(code, characters.SELECTORS) or (within(code, characters.JOINERS) and is_writing(after))
    end
    shown[#shown + 1] = harmless and text:sub(at, at + length - 1) or escape(code or text:byte(at))
    at, before = at + length, code
  end
  return table.concat(shown)
end

--- Whether the text is UTF-8.
function M.is_utf8(text)
  local at = 1
  while at <= #text do
    local code, length = character(text, at)
    if not code then return false end
    at = at + length
  end
  return true
end

--- What a task that is done waits for at its gate.
function M.gate(row)
  local gate = row.gate or {}
  if row.waits_for ~= "yes" then return "the check " .. M.safe(gate.check or "") end
  return (gate.by or "") == "" and "your yes" or M.safe(gate.by) .. "'s yes"
end

--- An owner as it stands in a line: in one word.
function M.owner(owner)
  return (M.safe(owner):gsub(" ", "\\x20"))
end

local function tail(priority, owner, blocked_by)
  local words = {}
  if priority ~= "normal" then words[1] = "!" .. priority end
  if owner ~= "" then words[#words + 1] = "@" .. M.owner(owner) end
  if #blocked_by > 0 then words[#words + 1] = "<- #" .. table.concat(blocked_by, ",#") end
  return table.concat(words, " ")
end

--- The priority, owner and blockers that end a line; nil where a text is no such end.
local function read_tail(text)
  local read = { priority = "normal", owner = "", blocked_by = {} }
  local rest, blockers = text:match("^(.*)<%-([#%d,%s]+)$")
  if blockers then
    for id in blockers:gmatch("%d+") do read.blocked_by[#read.blocked_by + 1] = id end
    if blockers:gsub("#%d+", ""):find("[^,%s]") then return nil end
  end
  for word in (rest or text):gmatch("%S+") do
    local priority, owner = word:match("^!(%a+)$"), word:match("^@(%S+)$")
    if IS_PRIORITY[priority] then
      read.priority, read.is_closed = priority, priority == "normal"
    elseif owner then
      read.owner = owner
    else
      return nil
    end
  end
  return read
end

--- The title in a line, and what ends the line.
local function split(text)
  local title, ending = text:match("^(.*)  (%S.-)%s*$")
  local read = ending and read_tail(ending)
  if read and title:find("%S") then return title, read end
  return text, { priority = "normal", owner = "", blocked_by = {} }, true
end

--- A task as a line. A title that ends like a line's end gets the end "!normal", so that the line is read as it was.
function M.line(task, depth)
  local title = M.safe(task.title)
  local ending = tail(task.priority or "normal", task.owner or "", task.blocked_by or {})
  local _, _, is_whole = split(title)
  if ending == "" and not is_whole then ending = "!normal" end
  return ("%s[%s] #%s %s%s"):format(("  "):rep(depth), M.BOX_OF[task.status] or "?", task.id, title, ending ~= "" and "  " .. ending or "")
end

local function has_word(title, word)
  return (" " .. title .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

--- Whether the title took up a member that the line lost.
local function took_member(task, was)
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

--- The part of a title that looks like a line's end and was not in the title before (`was`; nil for a new task).
--- @return string|nil, boolean the part, and whether it is a member of the task itself
function M.stray_end(task, was)
  local stray = task.title:match("  ([!@]%S.*)$") or task.title:match("  (<%-.*)$")
  local own = was and took_member(task, was)
  if own then return stray or own, true end
  local is_new = stray and not task.is_closed and not (was and was.title:find(stray, 1, true))
  return is_new and stray or nil, false
end

--- The id in a task's line; nil where the line shows none.
function M.id_of(line)
  return line:match("^ *%[[^%]]*%] #(%d+) ")
end

--- A line as a task: `depth`, `status`, `id` (nil for a new one), `title` and the end's members.
--- @return table|nil, string|nil the task, or nil and why it can't be read
function M.read(line)
  if not M.is_utf8(line) then return nil, "the line is not UTF-8" end
  local indent, box, rest = line:match("^( *)%[([^%]]+)%] (.+)$")
  if not box then return nil, "expected [ ] Title, with [/] [=] [x] or [✗] for another status" end
  if not STATUS_OF[box] then return nil, ("[%s] is no status: use [ ] [/] [=] [x] [✗]"):format(M.safe(box)) end
  local id, own = rest:match("^#(%d+) (.*)$")
  local title, read = split(own or rest)
  title = title:match("^(.*%S)")
  if not title then return nil, "the title is missing" end
  if M.safe(title) ~= title then return nil, "the title holds control characters" end
  read.depth, read.status, read.id, read.title = math.floor(#indent / 2), STATUS_OF[box], id, title
  return read
end

return M
