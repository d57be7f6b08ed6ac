--- `:w` of a list: the difference between the lines that were shown and those that stand there becomes one call.
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
      local known = text.id_of(line)
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

--- Refuse a line whose end became part of its title: its priority, owner and blockers would be lost.
local function refuse_stray_end(view, item)
  local was = item.id and text.read(view.text[item.id])
  local stray, is_own = text.stray_end(item.task, was)
  if not stray then return true end
  local shown = item.id and ("; the line was \"%s\""):format(vim.trim(view.text[item.id])) or ""
  local advice = is_own and "write the title in front of it, before two spaces"
    or "to keep it in the title, end the line with two spaces and !normal"
  return refuse(item.at, ("\"%s\" would be a part of the title \"%s\"%s; %s")
    :format(stray, item.task.title, shown, advice))
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

--- What takes a task to a status. A finished task can only be paused or fail once it is pending again.
local function steps(was, to)
  local by_way = (was == "completed" or was == "failed") and (to == "paused" or (to == "failed" and was ~= "failed"))
  return by_way and { "pending", to } or { to }
end

--- The changed statuses in an order in which no task changes before those below it and those that it waits for.
local function in_order(view, statuses)
  local sorted, seen, children = {}, {}, {}
  for _, item in ipairs(view.tree) do
    children[item.parent] = children[item.parent] or {}
    table.insert(children[item.parent], item.id)
  end
  local function take(id)
    if seen[id] then return end
    seen[id] = true
    for _, child in ipairs(children[id] or {}) do take(child) end
    if not statuses[id] then return end
    for _, blocker in ipairs(view.model.by_id[id].blocked_by or {}) do take(blocker) end
    sorted[#sorted + 1] = id
  end
  for _, id in ipairs(view.model.order) do take(id) end
  return sorted
end

--- The plan of a save: `changes`, as `list.apply` takes them, and the line `at` which each of them comes from.
--- What is loosened goes first and what is tied last, so that no step on the way closes a circle. What is deleted goes
--- before the statuses, since a task can be completed once nothing open is below it.
--- @return table|nil, string|nil
function M.plan(view, lines, force)
  local items, why, seen = read_all(view, lines)
  if not items then return nil, why end
  local plan = { changes = {}, at = {}, deleted = {} }
  local function change(at, method, params)
    params.method = method
    plan.changes[#plan.changes + 1], plan.at[#plan.at + 1] = params, at
    return params
  end
  local parents, statuses, ties, count = {}, {}, {}, 0
  for _, item in ipairs(view.tree) do parents[item.id] = item.parent end
  for _, item in ipairs(items) do
    local was = item.id and text.read(view.text[item.id])
    local is_new_title = not item.is_same and not (was and was.title == item.task.title)
    if is_new_title and vim.fn.strchars(item.task.title) > MAX_TITLE then
      return refuse(item.at, ("the title has more than %d characters"):format(MAX_TITLE))
    end
    if not item.is_same then
      local is_whole
      is_whole, why = refuse_stray_end(view, item)
      if not is_whole then return nil, why end
    end
    if not item.id then
      if item.task.owner ~= "" then return refuse(item.at, "a new task has no owner: claim it once it is there") end
      count = count + 1
      item.ref = "new-" .. count
    else
      local edits = {}
      if not item.is_same then
        edits, why = edits_of(view, item, force)
        if not edits then return nil, why end
      end
      local parent = item.above and (item.above.id or item.above.ref) or ""
      local is_adopted = parent ~= parents[item.id]
      local leaves = is_adopted and parents[item.id] ~= ""
      if edits.title or edits.priority or edits.less or leaves then
        change(item.at, "task.edit", {
          task = item.id, title = edits.title, priority = edits.priority, remove_blocked_by = edits.less,
          parent = leaves and vim.NIL or nil,
        })
      end
      if edits.more or (is_adopted and parent ~= "") then
        local joins = is_adopted and parent ~= "" and parent or nil
        ties[#ties + 1] = { item.at, { task = item.id, add_blocked_by = edits.more, parent = joins } }
      end
      if edits.status then statuses[item.id] = { item.at, edits.status } end
    end
  end
  local added
  for _, item in ipairs(items) do
    if item.ref then
      local task = item.task
      added = change(item.at, "task.add", {
        ref = item.ref, title = task.title, status = task.status, priority = task.priority,
        parent = item.above and (item.above.id or item.above.ref) or nil,
        blocked_by = #task.blocked_by > 0 and task.blocked_by or nil,
      })
    end
  end
  for _, item in ipairs(view.tree) do
    local id = item.id
    if not seen[id] and view.model.by_id[id] then
      local at = math.min(view.place[id] or 1, math.max(#lines, 1))
      if view.model.by_id[id] ~= view.shown[id] and not force then
        return refuse(at, ("#%s, which you deleted, was changed meanwhile (:w! deletes it)"):format(id))
      end
      plan.deleted[#plan.deleted + 1] = id
    end
  end
  if #plan.deleted > 0 then change(1, "task.delete", { tasks = plan.deleted }) end
  for _, id in ipairs(in_order(view, statuses)) do
    local now = view.model.by_id[id]
    local fence = now.fence and now.owner == require("punchlist").config.owner and now.fence or nil
    for _, status in ipairs(steps(now.status, statuses[id][2])) do
      change(statuses[id][1], "task.set_status", { task = id, status = status, fence = fence })
    end
  end
  for _, tie in ipairs(ties) do change(tie[1], "task.edit", tie[2]) end
  local moves = moves_of(view, items, parents)
  for _, move in ipairs(moves) do
    local after = move.after and (move.after.id or move.after.ref)
    local place = { after = after, before = not after and (move.before.id or move.before.ref) or nil }
    if #moves == 1 and count == 1 and move.item.ref then -- a new task alone: it is added where it belongs
      added.after, added.before = place.after, place.before
    else
      place.task = move.item.id or move.item.ref
      change(move.item.at, "task.move", place)
    end
  end
  return plan
end

local function say(message, level)
  vim.notify("punchlist: " .. message, level or vim.log.levels.ERROR)
end

--- Why the daemon refuses a save, with the line that the refused change comes from.
local function why_refused(plan, err)
  if err.kind == "version_conflict" then return "the list was changed in this moment; :w again (nothing was changed)" end
  local why = text.safe((err.message or err.kind):gsub("^changes%[%d+%] %(%S+%): ", ""):gsub(" Nothing was changed%.$", ""))
  local line = err.change and ("line %d: "):format(plan.at[err.change + 1]) or ""
  return ("%s%s (nothing was changed)"):format(line, why)
end

local function run(view, plan)
  local saving = {}
  view.saving = saving
  vim.bo[view.buffer].modifiable = false -- for the moment until the answer
  view:banner()
  local params = { conversation = view.model.name, expect_version = view.model.version, changes = plan.changes }
  transport.change("list.apply", params, function(err, result)
    if not vim.api.nvim_buf_is_loaded(view.buffer) or view.saving ~= saving then return end
    if not err then
      saving.version = result.version
      view.model:made(result)
      if view.model.version >= result.version then view:saved() end
      return
    end
    view.saving = nil
    vim.bo[view.buffer].modifiable = true
    vim.bo[view.buffer].modified = true
    say(why_refused(plan, err))
    view:banner()
  end)
end

--- Save a list's buffer. With `force` what you wrote wins over others' changes, and deleting asks nothing.
function M.save(view, force)
  if view.saving then return say("the save before this one is not answered yet; nothing more was sent") end
  if not transport.connected or not view.model.ready then
    return say("the daemon is away; nothing was changed, and your edits stay here until :w")
  end
  local plan, why = M.plan(view, vim.api.nvim_buf_get_lines(view.buffer, 0, -1, false), force)
  if not plan then return say(why) end
  if #plan.changes == 0 then
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
