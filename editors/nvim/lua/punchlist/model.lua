--- The current state of a list, folded from the pushes of the view "rows". The cost of a push depends only on the
--- number of changed rows.
local news = require("punchlist.news")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local models = {} -- by the list's name
local AGAIN_MS = 1000

-- Lists are ordered by bytes. LuaJIT compares bytes, but plain Lua uses the locale.
local function is_less(a, b)
  if a == b or jit then return a < b end
  for at = 1, math.min(#a, #b) do
    if a:byte(at) ~= b:byte(at) then return a:byte(at) < b:byte(at) end
  end
  return #a < #b
end

local function precedes(a, b)
  if a.rank ~= b.rank then return is_less(a.rank, b.rank) end
  return is_less(a.id, b.id)
end

--- Return the list with this name, and start following it.
function M.of(name)
  local model = models[name]
  if not model then
    model = setmetatable({ name = name, by_id = {}, order = {}, counts = {}, version = 0, views = {}, own = {}, previous = {}, present = {} }, M)
    models[name] = model
    transport.open()
    if transport.connected then model:subscribe() end
  end
  return model
end

--- Return all followed lists, by name.
function M.all()
  return models
end

function M:subscribe()
  self.incoming = nil -- drop an incomplete list
  local params = { conversation = self.name, view = "rows", after = self.seq, epoch = self.seq and self.epoch }
  transport.request("event.subscribe", params, function(err, result)
    if err and err.kind == "connection" then return end
    if err and (err.kind == "wrong_epoch" or err.kind == "gap") then
      self.seq = nil
      return self:subscribe()
    end
    if err then
      self.problem = err.message
      return self:update_views()
    end
    self.subscription, self.epoch, self.problem = result.subscription, result.epoch, nil
    if self.presence_subscription then return end
    -- An older daemon rejects this view. Then no presence is shown.
    transport.request("event.subscribe", { conversation = self.name, view = "presence" }, function(refused, presence_subscription)
      self.presence_subscription = not refused and presence_subscription.subscription or nil
    end)
  end)
end

--- Return who else has the list open, as sorted actors. Our own actor is included if it has another connection.
function M:other_actors()
  local names, own = {}, require("punchlist").config.actor
  for _, peer in ipairs(self.present) do
    if peer.actor ~= own or peer.connections > 1 then names[#names + 1] = peer.actor end
  end
  table.sort(names)
  return names
end

--- Fold a push, and pass the ids of changed rows, and whether the order changed, to the views.
function M:fold(push)
  if push.reset then self.incoming = {} end
  local rows = self.incoming or self.by_id
  local changed, same_order = {}, not self.incoming
  for _, id in ipairs(push.gone or {}) do
    same_order = same_order and not rows[id]
    rows[id] = nil
  end
  for _, row in ipairs(push.rows) do
    local old = rows[row.id]
    if old and not self.incoming then self.previous[row.id] = self.previous[row.id] or old end
    same_order = same_order and old and old.rank == row.rank and old.parent == row.parent
    rows[row.id] = row
    changed[row.id] = true
  end
  self.moved = self.moved or not same_order
  self.changed = vim.tbl_extend("force", self.changed or {}, changed)
  if push.more then return end
  local is_whole = self.incoming ~= nil
  self.by_id, self.incoming = rows, nil
  if self.moved then
    self.order = vim.tbl_values(rows)
    table.sort(self.order, precedes)
    self.order = vim.tbl_map(function(row) return row.id end, self.order)
  end
  local previous, was_open = self.previous, self:open_count()
  self.previous, self.counts, self.version, self.seq = {}, push.counts, push.version, push.seq
  self.damaged = push.damaged
  self.ready = true
  local ids = self.changed
  local moved = self.moved
  self.changed, self.moved = nil, nil
  self:update_views(ids, moved)
  if not is_whole then news.notify_of_changes(self, previous, was_open) end
end

--- Record the result of our own change, which doesn't need a notification.
function M:record_own_change(result)
  for _, task in ipairs(result.tasks or { result.task }) do self.own[task.id] = task.version end
end

function M:update_views(ids, moved)
  for _, view in pairs(self.views) do view:update(ids or {}, moved) end
  vim.cmd("redrawstatus!")
end

--- Return the ids in the list with their `depth` and `parent` ("" for none), children below their parents.
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

--- Return the number of tasks that are neither completed nor failed, and the number of all tasks.
function M:open_count()
  local open = (self.counts.pending or 0) + (self.counts.in_progress or 0) + (self.counts.paused or 0)
  return open, open + (self.counts.completed or 0) + (self.counts.failed or 0)
end

local function find_by_subscription(params)
  for _, model in pairs(models) do
    if params.subscription == model.subscription or params.subscription == model.presence_subscription then return model end
  end
end

table.insert(transport.listeners, {
  on_connected = function()
    for _, model in pairs(models) do model:subscribe() end
    for _, model in pairs(models) do model:update_views() end
  end,
  on_away = function()
    for _, model in pairs(models) do
      model.subscription, model.presence_subscription, model.present = nil, nil, {}
      model:update_views()
    end
  end,
  on_push = function(method, params)
    local model = find_by_subscription(params)
    if not model then return end
    if method == "rows" then return model:fold(params) end
    if method == "presence" then
      model.present = params.present
      return model:update_views()
    end
    if method == "end" and params.subscription == model.presence_subscription then
      model.presence_subscription, model.present = nil, {}
      return model:update_views()
    end
    if method == "end" then
      model.subscription, model.seq, model.problem = nil, nil, params.error and params.error.message or "the subscription ended"
      model:update_views()
      vim.defer_fn(function() if transport.connected and not model.subscription then model:subscribe() end end, AGAIN_MS)
    end
  end,
})

return M
