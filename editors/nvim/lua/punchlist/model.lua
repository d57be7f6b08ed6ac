--- A list as it is, kept by folding the pushes of view "rows"; each costs what changed.
local news = require("punchlist.news")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local models = {} -- by the list's name
local AGAIN_MS = 1000

-- LuaJIT compares bytes; Lua itself asks the locale, which the order of a list must not.
local function less(a, b)
  if a == b or jit then return a < b end
  for at = 1, math.min(#a, #b) do
    if a:byte(at) ~= b:byte(at) then return a:byte(at) < b:byte(at) end
  end
  return #a < #b
end

local function before(a, b)
  if a.rank ~= b.rank then return less(a.rank, b.rank) end
  return less(a.id, b.id)
end

--- The list of this name, followed from now on.
function M.of(name)
  local model = models[name]
  if not model then
    model = setmetatable({ name = name, by_id = {}, order = {}, counts = {}, version = 0, views = {}, own = {}, before = {}, present = {} }, M)
    models[name] = model
    transport.open()
    if transport.connected then model:subscribe() end
  end
  return model
end

--- All lists that are followed.
function M.all()
  return models
end

function M:subscribe()
  self.coming = nil -- what came of a whole list that was cut is forgotten
  local params = { conversation = self.name, view = "rows", after = self.seq, epoch = self.seq and self.epoch }
  transport.request("event.subscribe", params, function(err, result)
    if err and err.kind == "connection" then return end
    if err and (err.kind == "wrong_epoch" or err.kind == "gap") then
      self.seq = nil
      return self:subscribe()
    end
    if err then
      self.trouble = err.message
      return self:tell()
    end
    self.subscription, self.epoch, self.trouble = result.subscription, result.epoch, nil
    if self.watching then return end
    -- An older daemon refuses this view; then nobody is shown.
    transport.request("event.subscribe", { conversation = self.name, view = "presence" }, function(refused, watching)
      self.watching = not refused and watching.subscription or nil
    end)
  end)
end

--- Who else has the list open: names of programs, sorted, and ours if another one has it.
function M:others()
  local names, own = {}, require("punchlist").config.actor
  for _, one in ipairs(self.present) do
    if one.actor ~= own or one.connections > 1 then names[#names + 1] = one.actor end
  end
  table.sort(names)
  return names
end

--- Take a push. Views are told which ids look different, or nil if tasks came, went or moved.
function M:fold(push)
  if push.reset then self.coming = {} end
  local rows = self.coming or self.by_id
  local changed, same_order = {}, not self.coming
  for _, id in ipairs(push.gone or {}) do
    same_order = same_order and not rows[id]
    rows[id] = nil
  end
  for _, row in ipairs(push.rows) do
    local known = rows[row.id]
    if known and not self.coming then self.before[row.id] = self.before[row.id] or known end
    same_order = same_order and known and known.rank == row.rank and known.parent == row.parent
    rows[row.id] = row
    changed[row.id] = true
  end
  self.moved = self.moved or not same_order
  self.changed = vim.tbl_extend("force", self.changed or {}, changed)
  if push.more then return end
  local is_whole = self.coming ~= nil
  self.by_id, self.coming = rows, nil
  if self.moved then
    self.order = vim.tbl_values(rows)
    table.sort(self.order, before)
    self.order = vim.tbl_map(function(row) return row.id end, self.order)
  end
  local was, was_open = self.before, self:open_count()
  self.before, self.counts, self.version, self.seq = {}, push.counts, push.version, push.seq
  self.damaged = push.damaged
  self.ready = true
  local ids = self.changed
  local moved = self.moved
  self.changed, self.moved = nil, nil
  self:tell(ids, moved)
  if not is_whole then news.tell(self, was, was_open) end
end

--- Note the result of a change of ours: what it did is no news.
function M:made(result)
  for _, task in ipairs(result.tasks or { result.task }) do self.own[task.id] = task.version end
end

function M:tell(ids, moved)
  for _, view in pairs(self.views) do view:update(ids or {}, moved) end
  vim.cmd("redrawstatus!")
end

--- The lines of the list: ids with their depth and their parent ("" for none), children below it.
function M:tree()
  local children, lines = {}, {}
  for _, id in ipairs(self.order) do
    local parent = self.by_id[id].parent
    local above = parent and self.by_id[parent] and parent or ""
    children[above] = children[above] or {}
    table.insert(children[above], id)
  end
  local function walk(above, depth)
    for _, id in ipairs(children[above] or {}) do
      lines[#lines + 1] = { id = id, depth = depth, parent = above }
      walk(id, depth + 1)
    end
  end
  walk("", 0)
  return lines
end

--- How many tasks are neither completed nor failed, and how many there are.
function M:open_count()
  local open = (self.counts.pending or 0) + (self.counts.in_progress or 0) + (self.counts.paused or 0)
  return open, open + (self.counts.completed or 0) + (self.counts.failed or 0)
end

local function of_subscription(params)
  for _, model in pairs(models) do
    if params.subscription == model.subscription or params.subscription == model.watching then return model end
  end
end

table.insert(transport.listeners, {
  connected = function()
    for _, model in pairs(models) do model:subscribe() end
    for _, model in pairs(models) do model:tell() end
  end,
  away = function()
    for _, model in pairs(models) do
      model.subscription, model.watching, model.present = nil, nil, {}
      model:tell()
    end
  end,
  pushed = function(method, params)
    local model = of_subscription(params)
    if not model then return end
    if method == "rows" then return model:fold(params) end
    if method == "presence" then
      model.present = params.present
      return model:tell()
    end
    if method == "end" and params.subscription == model.watching then
      model.watching, model.present = nil, {}
      return model:tell()
    end
    if method == "end" then
      model.subscription, model.seq, model.trouble = nil, nil, params.error and params.error.message or "it ended"
      model:tell()
      vim.defer_fn(function() if transport.connected and not model.subscription then model:subscribe() end end, AGAIN_MS)
    end
  end,
})

return M
