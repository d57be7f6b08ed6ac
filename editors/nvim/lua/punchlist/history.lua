--- The history of a list (`punchlist://NAME/log`) and the list at a version (`punchlist://NAME/@12`). Both are read-only.
local Model = require("punchlist.model")
local text = require("punchlist.text")
local transport = require("punchlist.transport")
local View = require("punchlist.view")

local M = {}
local MAX_LINES = 1000 -- number of events shown at first
local MAX_VALUE = 60 -- characters of a text in an event

local function notify(err)
  vim.notify("punchlist: " .. text.safe(err.message or err.kind), vim.log.levels.ERROR)
end

local function prepare(buffer, filetype)
  local options = vim.bo[buffer]
  options.buftype, options.swapfile, options.modeline, options.modifiable = "nofile", false, false, false
  if options.filetype ~= filetype then options.filetype = filetype end
end

local function write(buffer, first, last, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, first, last, false, lines)
  vim.bo[buffer].modifiable, vim.bo[buffer].modified = false, false
end

local function shorten(value)
  local shown = type(value) == "string" and value:gsub("%s+", " ") or vim.json.encode(value)
  return vim.fn.strchars(shown) > MAX_VALUE and vim.fn.strcharpart(shown, 0, MAX_VALUE) .. "…" or shown
end

local function format_members(event)
  local names = vim.tbl_filter(function(name) return name ~= "type" and name ~= "task" end, vim.tbl_keys(event))
  table.sort(names)
  local words = vim.tbl_map(function(name)
    if event[name] == vim.NIL then return "no " .. name:gsub("_", " ") end
    return ("%s %s"):format(name:gsub("_ms$", ""):gsub("_", " "), shorten(event[name]))
  end, names)
  return table.concat(words, ", ")
end

local STATUS = { pending = "ready again", in_progress = "started", paused = "paused", completed = "done", failed = "failed" }

local SENTENCES = {
  ConversationOpened = function() return "began the list" end,
  ConversationConfigured = function(event) return "set " .. format_members(event) end,
  TaskAdded = function(event) return "added: " .. event.task.title end,
  TaskEdited = function(event)
    if event.active_form and vim.tbl_count(event) == 3 then return "now: " .. shorten(event.active_form) end
    if event.title and vim.tbl_count(event) == 3 then return "reworded: " .. event.title end
    return "edited: " .. format_members(event)
  end,
  NoteAdded = function(event) return "noted: " .. shorten(event.text) end,
  NoteRemoved = function() return "removed a note" end,
  TaskWoken = function() return "is no longer put off" end,
  TaskMoved = function(event) return event.before and "moved before #" .. event.before or "moved to the end" end,
  StatusChanged = function(event)
    local because = event.fail_reason or event.result_summary or ""
    local waits = event.waits_for and ("done, and waits for a %s"):format(event.waits_for) or STATUS[event.to]
    return waits .. (because ~= "" and ": " .. shorten(because) or "")
  end,
  Deleted = function() return "deleted" end,
  DependencyAdded = function(event) return "waits for #" .. event.blocker end,
  DependencyRemoved = function(event) return "no longer waits for #" .. event.blocker end,
  Claimed = function(event) return "claimed by " .. event.owner end,
  Released = function(event) return ("released by %s (%s)"):format(event.owner, event.reason) end,
  ListCleared = function() return "cleared the list" end,
  MessageAppended = function(event) return "wrote: " .. shorten(event.content) end,
  EventLost = function() return "lost to damage" end,
}

--- Return an event as a line with version, time, actor and sentence.
local function format_event(recorded)
  local event = recorded.event
  local id = type(event.task) == "table" and event.task.id or event.task
  local sentence = (SENTENCES[event.type] or function() return event.type .. " " .. format_members(event) end)(event)
  local line = ("%5d  %s  %-16s  %s%s"):format(recorded.version, os.date("%H:%M:%S", math.floor(recorded.at / 1000)),
    text.safe(recorded.actor), id and ("#%s "):format(id) or "", text.safe(sentence))
  return { line = line, day = os.date("%A %d %B %Y", math.floor(recorded.at / 1000)) }
end

--- Return entries, newest first, as lines with a heading above each day. `day` is the day of the line that follows.
local function format_days(entries, day)
  local lines = {}
  for at, entry in ipairs(entries) do
    if entry.day ~= (at == 1 and "" or entries[at - 1].day) then lines[#lines + 1] = entry.day end
    lines[#lines + 1] = entry.line
  end
  return lines, day == (entries[#entries] or {}).day
end

--- Fill a buffer with the log of a list, newest event first, and keep it up to date.
function M.log(buffer, model)
  prepare(buffer, "punchlistlog")
  local log = { next = 0, lines = {}, by = {} }
  local function read()
    if log.reading or not transport.connected then return end
    log.reading = true
    transport.request("event.read", { conversation = model.name, after = log.next }, function(err, result)
      log.reading = false
      if not vim.api.nvim_buf_is_loaded(buffer) then return end
      if err then return err.kind ~= "connection" and notify(err) end
      for _, recorded in ipairs(result.events) do
        table.insert(log.lines, format_event(recorded))
        log.by[tostring(recorded.version)] = (", by %s on %s"):format(text.safe(recorded.actor), os.date("%A %d %B at %H:%M", math.floor(recorded.at / 1000)))
      end
      log.next = result.next
      if #result.events > 0 then return read() end
      local from = math.max(1, #log.lines - MAX_LINES + 1)
      local newest = {}
      for at = #log.lines, from, -1 do newest[#newest + 1] = log.lines[at] end
      if #newest > 0 then
        local lines, is_same_day = format_days(newest, log.day)
        -- The newest day's heading is above its events, so that the new lines replace it.
        write(buffer, 0, log.day and (is_same_day and 1 or 0) or -1, lines)
        log.day = newest[1].day
      end
      log.lines = {}
    end)
  end
  log.update = read
  model.views[buffer] = log
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, callback = function() model.views[buffer] = nil end })
  vim.keymap.set("n", "<CR>", function()
    local version = vim.fn.getline("."):match("^%s*(%d+)")
    if version then vim.cmd(("edit punchlist://%s/@%s"):format(model.name, version)) end
  end, { buffer = buffer, desc = "punchlist: the list at this version" })
  vim.keymap.set("n", "x", function()
    local version = vim.fn.getline("."):match("^%s*(%d+)")
    if version then require("punchlist.actions").run("undo", model, nil, version, { by = log.by[version] }) end
  end, { buffer = buffer, desc = "punchlist: undo this change" })
  read()
end

--- Fill a buffer with a list at a version.
function M.at(buffer, name, version)
  prepare(buffer, "punchlist")
  transport.request("task.list", { conversation = name, at_version = version }, function(err, result)
    if not vim.api.nvim_buf_is_loaded(buffer) then return end
    if err then return notify(err) end
    local past = { by_id = {}, order = {} }
    for at, task in ipairs(result.tasks) do past.by_id[task.id], past.order[at] = task, task.id end
    local tree = Model.tree(past)
    local lines = vim.tbl_map(function(item) return text.format_line(past.by_id[item.id], item.depth) end, tree)
    write(buffer, 0, -1, lines)
    for at, item in ipairs(tree) do View.mark_line(buffer, at - 1, past.by_id[item.id]) end
  end)
end

return M
