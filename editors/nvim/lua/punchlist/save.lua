--- `:w` of a list: the difference between the lines that were shown and those that stand there becomes calls.
local text = require("punchlist.text")
local transport = require("punchlist.transport")

local M = {}
local MAX_TITLE = 500 -- characters, as the daemon says
local EDITED = { "title", "status", "priority" }

--- What `sequence` (numbers) keeps in place: the set of the places of a longest rising run.
local function rising(sequence)
  local tails, back = {}, {}
  for at, value in ipairs(sequence) do
    local low, high = 1, #tails + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if sequence[tails[middle]] < value then low = middle + 1 else high = middle end
    end
    back[at], tails[low] = tails[low - 1], at
  end
  local kept, at = {}, tails[#tails]
  while at do
    kept[at] = true
    at = back[at]
  end
  return kept
end

local function refuse(line, why)
  return nil, ("line %d: %s; nothing was changed"):format(line, why)
end

--- The lines as items: `at`, `id`, `task` (what is read of it), `above` (the item that is its parent).
local function read_all(view, lines)
  local items, seen, above = {}, {}, {}
  for at, line in ipairs(lines) do
    if line:find("%S") then
      local known = line:match("^ *%[.%] #(%d+) ")
      local task, why = text.read(line)
      if not task then return refuse(at, why) end
      if task.id and not view.text[task.id] then return refuse(at, ("there is no task #%s here"):format(task.id)) end
      if task.id and seen[task.id] then
        return refuse(at, ("#%s stands here and on line %d"):format(task.id, seen[task.id]))
      end
      local item = { at = at, id = task.id, task = task, is_same = known and view.text[known] == line }
      if task.id then seen[task.id] = at end
      for depth = #above, task.depth + 1, -1 do above[depth] = nil end
      item.above = above[#above]
      above[#above + 1] = item
      -- A line that is indented by more than one level has the nearest one as parent.
      for depth = #above, task.depth do above[depth + 1] = item end
      items[#items + 1] = item
    end
  end
  return items, nil, seen
end

local function has_escape(title)
  return title:find("\\x%x%x") or title:find("\\u%x%x%x%x") or title:find("\\U%x%x%x%x%x%x%x%x")
end

local function minus(list, other)
  return vim.tbl_filter(function(one) return not vim.tbl_contains(other, one) end, list)
end

--- What a person did to the line of a task that was there: members to set, or why not.
local function edits_of(view, item, force)
  local shown, now = view.shown[item.id], view.model.by_id[item.id]
  local was, mine = text.read(view.text[item.id]), item.task
  if mine.owner ~= was.owner then
    return refuse(item.at, "who works on a task changes by claiming it and giving it back, not by its line")
  end
  local theirs = now and text.read(text.line(now, 0))
  local edits = {}
  for _, member in ipairs(EDITED) do
    if mine[member] ~= was[member] then
      local is_conflict = not theirs or (theirs[member] ~= was[member] and theirs[member] ~= mine[member])
      if is_conflict and not (force and theirs) then
        local what = theirs and ("somebody else made it: " .. text.line(now, 0)) or "somebody else deleted it"
        return refuse(item.at, ("#%s was changed meanwhile, %s (:w! keeps yours)"):format(item.id, what))
      end
      if theirs[member] ~= mine[member] then edits[member] = mine[member] end
    end
  end
  if edits.title and text.safe(shown.title) ~= shown.title and has_escape(edits.title) then
    return refuse(item.at, "the title has characters shown as escapes: write it anew without them")
  end
  local blockers = now and now.blocked_by or {}
  local more = minus(minus(mine.blocked_by, was.blocked_by), blockers)
  local less = minus(was.blocked_by, minus(was.blocked_by, blockers))
  less = minus(less, mine.blocked_by)
  if #more > 0 then edits.more = more end
  if #less > 0 then edits.less = less end
  return edits
end

--- The moves that bring brothers and sisters into the order of the lines.
local function moves_of(view, items, parents)
  local groups, place, moves = {}, {}, {}
  for at, id in ipairs(view.model.order) do place[id] = at end
  local shown_at, last = {}, #view.model.order
  for at, item in ipairs(view.tree) do shown_at[item.id] = at end
  for _, item in ipairs(items) do
    local above = item.above or 0
    groups[above] = groups[above] or {}
    table.insert(groups[above], item)
  end
  for _, group in pairs(groups) do
    local sequence, is_new, is_moved, highest = {}, false, false, 0
    for at, item in ipairs(group) do
      if not item.id then last = last + 1 end
      sequence[at] = item.id and place[item.id] or last
      local before = item.id and shown_at[item.id]
      local is_adopted = item.id and parents[item.id] ~= (item.above and (item.above.id or item.above.ref) or "")
      is_moved = is_moved or is_adopted or (before and (is_new or before < highest))
      is_new, highest = is_new or not before, before or highest
    end
    local kept = is_moved and rising(sequence)
    local first -- the first that stays where it is: what goes in front has no other hold
    for at, item in ipairs(group) do first = first or (kept and kept[at] and item) end
    for at, item in ipairs(group) do
      if kept and not kept[at] then moves[#moves + 1] = { item = item, after = group[at - 1], before = first } end
    end
  end
  return moves
end

--- The plan of a save: `calls`, each a function of what is known so far that returns method and params.
--- @return table|nil, string|nil
function M.plan(view, lines, force)
  local items, why, seen = read_all(view, lines)
  if not items then return nil, why end
  local plan = { calls = {}, new = {}, deleted = {}, items = items }
  local many, later = {}, {}
  local parents = {}
  for at, item in ipairs(view.tree) do
    local above
    for index = at - 1, 1, -1 do
      if view.tree[index].depth < item.depth then above = view.tree[index].id break end
    end
    parents[item.id] = above or ""
  end
  for _, item in ipairs(items) do
    local above = item.above
    local parent = above and (above.id or above.ref) or nil
    if not item.is_same and vim.fn.strchars(item.task.title) > MAX_TITLE and (not item.id or item.task.title ~= text.read(view.text[item.id]).title) then
      return refuse(item.at, ("the title has more than %d characters"):format(MAX_TITLE))
    end
    if not item.id then
      item.ref = "new-" .. #plan.new + 1
      plan.new[#plan.new + 1] = item
      local task = item.task
      if task.owner ~= "" then return refuse(item.at, "a new task has no owner: claim it once it is there") end
      many[#many + 1] = {
        ref = item.ref, title = task.title, status = task.status, priority = task.priority, parent = parent,
        blocked_by = #task.blocked_by > 0 and task.blocked_by or nil,
      }
    else
      local edits = {}
      if not item.is_same then
        edits, why = edits_of(view, item, force)
        if not edits then return nil, why end
      end
      if (parent or "") ~= (parents[item.id] or "") then edits.parent = parent or vim.NIL end
      local now = view.model.by_id[item.id]
      if edits.status and now.fence then
        -- task.add_many leaves the status of a claimed task to whoever holds it; this call says so instead.
        local fence = now.owner == require("punchlist").config.owner and now.fence or nil
        local params = { task = item.id, status = edits.status, fence = fence }
        table.insert(plan.calls, function() return "task.set_status", params end)
        edits.status = nil
      end
      local up = {
        task = item.id, title = edits.title or (now and now.title), blocked_by = edits.more,
        status = edits.status ~= "pending" and edits.status or nil,
        priority = edits.priority ~= "normal" and edits.priority or nil,
        parent = edits.parent ~= vim.NIL and edits.parent or nil,
      }
      if edits.title or up.status or up.priority or up.parent or up.blocked_by then many[#many + 1] = up end
      -- What task.add_many can't say, since there a default means "as it is".
      local rest = { task = item.id, remove_blocked_by = edits.less }
      if edits.priority == "normal" then rest.priority = "normal" end
      if edits.parent == vim.NIL then rest.parent = vim.NIL end
      if rest.remove_blocked_by or rest.priority or rest.parent then later[#later + 1] = { "task.edit", rest } end
      if edits.status == "pending" then later[#later + 1] = { "task.set_status", { task = item.id, status = "pending" } } end
    end
  end
  for _, item in ipairs(view.tree) do
    local id = item.id
    if not seen[id] and view.model.by_id[id] then
      if view.model.by_id[id] ~= view.shown[id] and not force then
        local at = math.min(view.place[id] or 1, math.max(#lines, 1))
        return refuse(at, ("#%s, which you deleted, was changed meanwhile (:w! deletes it)"):format(id))
      end
      plan.deleted[#plan.deleted + 1] = id
    end
  end
  local moves = moves_of(view, items, parents)
  local only = #many == 1 and many[1].ref and #later + #plan.calls + #plan.deleted == 0 and many[1]
  if only and #moves <= 1 and (not moves[1] or not moves[1].item.id) then
    only.ref = nil -- one new task: one call says also where
    if moves[1] then
      only.after = moves[1].after and moves[1].after.id
      only.before = not only.after and moves[1].before and moves[1].before.id or nil
    end
    plan.calls, many, moves = { function() return "task.add", only end }, {}, {}
  end
  if #many > 0 then table.insert(plan.calls, function() return "task.add_many", { tasks = many } end) end
  for _, call in ipairs(later) do table.insert(plan.calls, function() return call[1], call[2] end) end
  for _, move in ipairs(moves) do
    table.insert(plan.calls, function()
      local after = move.after and move.after.id
      return "task.move", { task = move.item.id, after = after, before = not after and move.before.id or nil }
    end)
  end
  if #plan.deleted > 0 then table.insert(plan.calls, function() return "task.delete", { tasks = plan.deleted } end) end
  return plan
end

--- New tasks have their ids: their lines say so, so that a second save does not add them again.
local function adopt(view, plan, result)
  local by_ref = {}
  if result.task and #plan.new == 1 then by_ref[plan.new[1].ref] = result.task end
  local known = {}
  for _, item in ipairs(plan.items) do known[item.id or ""] = true end
  local fresh = vim.tbl_filter(function(task) return not known[task.id] end, result.tasks or {})
  for at, item in ipairs(plan.new) do by_ref[item.ref] = by_ref[item.ref] or fresh[at] end
  for _, item in ipairs(plan.new) do
    local task = by_ref[item.ref]
    if task and not item.id then
      item.id = task.id
      local line = text.line(task, item.task.depth)
      view.text[task.id], view.shown[task.id] = line, task
      vim.bo[view.buffer].modifiable = true
      vim.api.nvim_buf_set_lines(view.buffer, item.at - 1, item.at, false, { line })
      vim.bo[view.buffer].modifiable = false
    end
  end
end

local function say(message, level)
  vim.notify("punchlist: " .. message, level or vim.log.levels.ERROR)
end

local function run(view, plan)
  local saving = {}
  view.saving = saving
  vim.bo[view.buffer].modifiable = false -- for the moment until the answer
  view:banner()
  local version, at = view.model.version, 0
  local function give_up(err)
    view.saving = nil
    vim.bo[view.buffer].modifiable = true
    vim.bo[view.buffer].modified = true
    local made = at == 1 and "nothing was changed" or ("%d of %d calls are made, the rest is still in the buffer"):format(at - 1, #plan.calls)
    local why = err.kind == "version_conflict" and "the list was changed in this moment; :w again" or err.message
    say(("%s (%s)"):format(text.safe(why or err.kind), made))
    view:banner()
  end
  local function next_call()
    at = at + 1
    if view.saving ~= saving then return end
    if at > #plan.calls then
      saving.version = version
      if view.model.version >= version then view:saved() end
      return
    end
    local method, params = plan.calls[at]()
    params.conversation, params.expect_version = view.model.name, version
    transport.change(method, params, function(err, result)
      if not vim.api.nvim_buf_is_loaded(view.buffer) then return end
      if err then return give_up(err) end
      version = result.version
      if method == "task.add" or method == "task.add_many" then adopt(view, plan, result) end
      next_call()
    end)
  end
  next_call()
end

--- Save a list's buffer. With `force` what you wrote wins over others' changes, and deleting asks nothing.
function M.save(view, force)
  if view.saving then return say("the save before this one is not answered yet; nothing more was sent") end
  if not transport.connected or not view.model.ready then
    return say("the daemon is away; nothing was changed, and your edits stay here until :w")
  end
  local plan, why = M.plan(view, vim.api.nvim_buf_get_lines(view.buffer, 0, -1, false), force)
  if not plan then return say(why) end
  if #plan.calls == 0 then
    view.lines = vim.api.nvim_buf_get_lines(view.buffer, 0, -1, false)
    return view:saved()
  end
  if #plan.deleted == 0 or force then return run(view, plan) end
  local question = ("Delete #%s?"):format(table.concat(plan.deleted, ", #"))
  local tick = vim.api.nvim_buf_get_changedtick(view.buffer)
  local version = view.model.version
  vim.ui.select({ "Delete", "Cancel" }, { prompt = question }, function(answer)
    if answer ~= "Delete" then return say("nothing was changed", vim.log.levels.INFO) end
    if tick ~= vim.api.nvim_buf_get_changedtick(view.buffer) or version ~= view.model.version then
      return say("the list or the buffer changed while the question stood; nothing was changed: :w again")
    end
    run(view, plan)
  end)
end

return M
