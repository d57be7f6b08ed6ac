--- The history of a list (`punchlist://NAME/log`) and the list at a version (`punchlist://NAME/@12`). Both are read-only.
local Model = require("punchlist.model")
local text = require("punchlist.text")
local transport = require("punchlist.transport")

local M = {}
local MAX_LINES = 1000 -- number of events shown at first

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

local function format_member(name, value)
  local shown = type(value) == "string" and value:gsub("%s+", " ") or vim.json.encode(value)
  return ("%s %s"):format(name, #shown > 60 and vim.fn.strcharpart(shown, 0, 60) .. "…" or shown)
end

--- Return an event as a line with version, time, actor and change.
local function format_event(recorded)
  local event, words = recorded.event, {}
  local task = type(event.task) == "table" and event.task or nil
  local id = task and task.id or event.task
  if id then words[1] = "#" .. id end
  words[#words + 1] = event.type:gsub("(%l)(%u)", "%1 %2"):lower()
  if task then words[#words + 1] = task.title end
  if event.to then words[#words + 1] = ("%s → %s"):format(event.from, event.to) end
  local names = vim.tbl_filter(function(name)
    return not vim.tbl_contains({ "type", "task", "from", "to" }, name)
  end, vim.tbl_keys(event))
  table.sort(names)
  for _, name in ipairs(names) do words[#words + 1] = format_member(name, event[name]) end
  local when = os.date("%Y-%m-%d %H:%M:%S", math.floor(recorded.at / 1000))
  return ("%5d  %s  %-16s  %s"):format(recorded.version, when, text.safe(recorded.actor), text.safe(table.concat(words, "  ")))
end

--- Fill a buffer with the log of a list, newest event first, and keep it up to date.
function M.log(buffer, model)
  prepare(buffer, "punchlistlog")
  local log = { next = 0, lines = {} }
  local function read()
    if log.reading or not transport.connected then return end
    log.reading = true
    transport.request("event.read", { conversation = model.name, after = log.next }, function(err, result)
      log.reading = false
      if not vim.api.nvim_buf_is_loaded(buffer) then return end
      if err then return err.kind ~= "connection" and notify(err) end
      for _, recorded in ipairs(result.events) do table.insert(log.lines, format_event(recorded)) end
      log.next = result.next
      if #result.events > 0 then return read() end
      local from = math.max(1, #log.lines - MAX_LINES + 1)
      local newest = {}
      for at = #log.lines, from, -1 do newest[#newest + 1] = log.lines[at] end
      if #newest > 0 then write(buffer, 0, log.is_shown and 0 or -1, newest) end
      log.lines, log.is_shown = {}, true
    end)
  end
  log.update = read
  model.views[buffer] = log
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, callback = function() model.views[buffer] = nil end })
  vim.keymap.set("n", "<CR>", function()
    local version = vim.fn.getline("."):match("^%s*(%d+)")
    if version then vim.cmd(("edit punchlist://%s/@%s"):format(model.name, version)) end
  end, { buffer = buffer, desc = "punchlist: the list at this version" })
  vim.keymap.set("n", "<LocalLeader>u", function()
    local version = vim.fn.getline("."):match("^%s*(%d+)")
    if version then require("punchlist.actions").run("undo", model, nil, version) end
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
    local lines = vim.tbl_map(function(item) return text.format_line(past.by_id[item.id], item.depth) end, Model.tree(past))
    write(buffer, 0, -1, lines)
  end)
end

return M
