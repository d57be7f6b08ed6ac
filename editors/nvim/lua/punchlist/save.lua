--- Saves a list on `:w`: sends the difference between the lines drawn and the lines in the buffer as one call.
local text = require("punchlist.text")
local transport = require("punchlist.transport")

local M = {}
local MAX_TITLE = 500 -- characters, the daemon's limit
local WORD_OF = { pending = "reopened", in_progress = "started", paused = "paused", completed = "done", failed = "failed" }
local WORDS = { "added", "reworded", "reopened", "started", "paused", "done", "failed", "moved", "deleted" }
local EDITED = { "title", "status" }

--- Return the set of indexes of a longest increasing subsequence of numbers.
local function longest_increasing(sequence)
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

--- Return the keys of an action, as typed.
local function key(action)
  return (vim.g.maplocalleader or "\\") .. require("punchlist.actions").actions[action][1]
end

local function reject(line, why)
  return nil, ("line %d: %s; nothing was changed"):format(line, why)
end

--- Parse the lines into items with `at` (line), `id`, `task` (the parsed line) and `above` (the parent's item).
local function parse_lines(view, lines)
  local items, seen, above = {}, {}, {}
  for at, line in ipairs(lines) do
    if line:find("%S") then
      local old_id = text.parse_id(line)
      local task, why = text.parse_line(line)
      if not task then return reject(at, why) end
      if task.id and not view.text[task.id] then return reject(at, ("no task #%s in this list"):format(task.id)) end
      if task.id and seen[task.id] then
        return reject(at, ("#%s is already on line %d"):format(task.id, seen[task.id]))
      end
      local item = { at = at, id = task.id, task = task, is_same = old_id and view.text[old_id] == line }
      if task.id then seen[task.id] = at end
      for depth = #above, task.depth + 1, -1 do above[depth] = nil end
      item.above = above[#above]
      above[#above + 1] = item
      -- A line that is indented by several levels is a child of the nearest line above it.
      for depth = #above, task.depth do above[depth + 1] = item end
      items[#items + 1] = item
    end
  end
  return items, nil, seen
end

local function has_escape(title)
  return title:find("\\x%x%x") or title:find("\\u%x%x%x%x") or title:find("\\U%x%x%x%x%x%x%x%x")
end

--- Return the edited members of an existing task's line, or nil and an error.
local function find_edits(view, item, force)
  local drawn, now = view.drawn[item.id], view.model.by_id[item.id]
  local was, mine = text.parse_line(view.text[item.id]), item.task
  if mine.status ~= was.status and (mine.status == "asks" or was.status == "asks") then
    local why = was.status == "asks" and "#%s waits for a yes: %s approves it, %s rejects it"
      or "#%s does not wait for a yes, which only [?] stands for"
    return reject(item.at, why:format(item.id, key("approve"), key("reject")))
  end
  local theirs = now and text.parse_line(text.format_line(now, 0))
  local edits = {}
  for _, member in ipairs(EDITED) do
    if mine[member] ~= was[member] then
      local is_conflict = not theirs or (theirs[member] ~= was[member] and theirs[member] ~= mine[member])
      if is_conflict and not (force and theirs) then
        local what = theirs and ("was changed by someone else to: " .. text.format_line(now, 0)) or "was deleted by someone else"
        return reject(item.at, ("#%s %s (:w! keeps yours)"):format(item.id, what))
      end
      if theirs[member] ~= mine[member] then edits[member] = mine[member] end
    end
  end
  if edits.title and text.safe(drawn.title) ~= drawn.title and has_escape(edits.title) then
    return reject(item.at, "the title has characters shown as escapes: enter a new one without them")
  end
  return edits
end

--- Return the moves that put siblings in the order of the lines.
local function plan_moves(view, items, parents)
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
    local kept = is_moved and longest_increasing(sequence)
    local first -- the first item that stays in place, which is the anchor for items moved before it
    for at, item in ipairs(group) do first = first or (kept and kept[at] and item) end
    for at, item in ipairs(group) do
      if kept and not kept[at] then moves[#moves + 1] = { item = item, after = group[at - 1], before = first } end
    end
  end
  return moves
end

--- Return the transitions to a status. A finished task must become pending before it can be paused or marked as failed.
local function status_steps(was, to)
  local via_pending = (was == "completed" or was == "failed") and (to == "paused" or (to == "failed" and was ~= "failed"))
  return via_pending and { "pending", to } or { to }
end

--- Return the ids of tasks with changed statuses, children and blockers first.
local function sort_statuses(view, statuses)
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

--- Reject a new line in the place of a deleted task that would lose members: the line has lost its number.
local function reject_lost_number(view, items, seen)
  local following, before = {}, ""
  for _, item in ipairs(view.tree) do
    following[before] = item.id
    before = item.id
  end
  before = ""
  for _, item in ipairs(items) do
    local id = item.id or following[before]
    local row = not item.id and id and not seen[id] and view.model.by_id[id]
    local members = row and vim.trim(text.join(text.members(row))) or ""
    if members ~= "" then
      return reject(item.at, ("the line has no number, and #%s would lose %s: put #%s before the title (:w! deletes the task)")
        :format(id, members, id))
    end
    before = id or before
  end
  return true
end

--- Plan a save. Return the `changes` for `list.apply`, the line `at` of each change, the ids of the `deleted` tasks, and
--- for the message after the save, the number of changes by word (`counts`) and `hints`.
--- Parents are removed first and added last, so that no intermediate step forms a cycle. Deletions come before status
--- changes, because open children prevent the completion of a parent.
--- @return table|nil, string|nil
function M.plan(view, lines, force)
  local items, why, seen = parse_lines(view, lines)
  if not items then return nil, why end
  local plan = { changes = {}, at = {}, deleted = {}, counts = {}, hints = {} }
  local function change(at, method, params, word)
    params.method = method
    plan.changes[#plan.changes + 1], plan.at[#plan.at + 1] = params, at
    if word then plan.counts[word] = (plan.counts[word] or 0) + 1 end
    return params
  end
  local parents, statuses, ties, count = {}, {}, {}, 0
  for _, item in ipairs(view.tree) do parents[item.id] = item.parent end
  for _, item in ipairs(items) do
    local was = item.id and text.parse_line(view.text[item.id])
    local is_new_title = not item.is_same and not (was and was.title == item.task.title)
    if is_new_title and vim.fn.strchars(item.task.title) > MAX_TITLE then
      return reject(item.at, ("the title has more than %d characters"):format(MAX_TITLE))
    end
    if not item.id then
      local task = item.task
      local stray = text.find_stray_end(task)
      if stray then
        return reject(item.at, ("\"%s\" would be a part of the title \"%s\"; to keep it there, end the line with two spaces and !normal")
          :format(stray, task.title))
      end
      if task.status == "asks" then return reject(item.at, "a new task can't wait for a yes: use [ ]") end
      if task.owner ~= "" then return reject(item.at, "a new task can't have an owner: save it, then claim it") end
      count = count + 1
      item.ref = "new-" .. count
    else
      local edits = {}
      if not item.is_same then
        edits, why = find_edits(view, item, force)
        if not edits then return nil, why end
      end
      local words, action = text.find_member(edits.title or "")
      if words and words ~= text.find_member(was.title) then
        plan.hints[#plan.hints + 1] = ("%s is only text in the title of #%s: %s sets it"):format(words, item.id, key(action))
      end
      local parent = item.above and (item.above.id or item.above.ref) or ""
      local is_adopted = parent ~= parents[item.id]
      local leaves = is_adopted and parents[item.id] ~= ""
      if edits.title or leaves then
        change(item.at, "task.edit", { task = item.id, title = edits.title, parent = leaves and vim.NIL or nil },
          edits.title and "reworded")
      end
      item.is_adopted = is_adopted
      if is_adopted then plan.counts.moved = (plan.counts.moved or 0) + 1 end
      if is_adopted and parent ~= "" then ties[#ties + 1] = { item.at, { task = item.id, parent = parent } } end
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
      }, "added")
    end
  end
  for _, item in ipairs(view.tree) do
    local id = item.id
    if not seen[id] and view.model.by_id[id] then
      local at = math.min(view.place[id] or 1, math.max(#lines, 1))
      if view.model.by_id[id] ~= view.drawn[id] and not force then
        return reject(at, ("#%s, which you deleted, was changed by someone else (:w! deletes it)"):format(id))
      end
      plan.deleted[#plan.deleted + 1] = id
    end
  end
  if #plan.deleted > 0 then
    local is_numbered = force
    if not force then is_numbered, why = reject_lost_number(view, items, seen) end
    if not is_numbered then return nil, why end
    change(1, "task.delete", { tasks = plan.deleted })
    plan.counts.deleted = #plan.deleted
  end
  for _, id in ipairs(sort_statuses(view, statuses)) do
    local now = view.model.by_id[id]
    local fence = now.fence and now.owner == require("punchlist").config.owner and now.fence or nil
    local steps = status_steps(now.status, statuses[id][2])
    for at, status in ipairs(steps) do
      change(statuses[id][1], "task.set_status", { task = id, status = status, fence = fence }, at == #steps and WORD_OF[status])
    end
  end
  for _, tie in ipairs(ties) do change(tie[1], "task.edit", tie[2]) end
  local moves = plan_moves(view, items, parents)
  for _, move in ipairs(moves) do
    local after = move.after and (move.after.id or move.after.ref)
    local place = { after = after, before = not after and (move.before.id or move.before.ref) or nil }
    if #moves == 1 and count == 1 and move.item.ref then -- A single new task is added in place.
      added.after, added.before = place.after, place.before
    else
      place.task = move.item.id or move.item.ref
      change(move.item.at, "task.move", place, move.item.id and not move.item.is_adopted and "moved")
    end
  end
  return plan
end

-- As an error, Neovim would show a message from `BufWriteCmd` with the name of the autocommand.
local function notify(message, level)
  vim.notify("punchlist: " .. message, level or vim.log.levels.WARN)
end

--- Say what was saved, as `:w` does for a file.
local function report(plan)
  local words = {}
  for _, word in ipairs(WORDS) do
    if plan.counts[word] then words[#words + 1] = ("%d %s"):format(plan.counts[word], word) end
  end
  local said = ("saved: %s (%s: undo)"):format(table.concat(words, ", "), key("undo"))
  vim.api.nvim_echo({ { text.safe(table.concat({ said, unpack(plan.hints) }, "; ")) } }, true, {})
end

--- Format the daemon's error for a save, with the line number of the rejected change.
local function format_error(plan, err)
  if err.kind == "version_conflict" then return "the list has just changed; :w again (nothing was changed)" end
  local why = text.safe((err.message or err.kind):gsub("^changes%[%d+%] %(%S+%): ", ""):gsub(" Nothing was changed%.$", ""))
  local line = err.change and ("line %d: "):format(plan.at[err.change + 1]) or ""
  return ("%s%s (nothing was changed)"):format(line, why)
end

local function send(view, plan)
  local saving = {}
  view.saving = saving
  vim.bo[view.buffer].modifiable = false -- until the response
  view:draw_banner()
  local params = { conversation = view.model.name, expect_version = view.model.version, changes = plan.changes }
  transport.change("list.apply", params, function(err, result)
    if not vim.api.nvim_buf_is_loaded(view.buffer) or view.saving ~= saving then return end
    if not err then
      saving.version = result.version
      view.model:record_own_change(result)
      report(plan)
      if view.model.version >= result.version then view:finish_save() end
      return
    end
    view.saving = nil
    vim.bo[view.buffer].modifiable = true
    vim.bo[view.buffer].modified = true
    notify(format_error(plan, err))
    view:draw_banner()
  end)
end

--- Save a list's buffer. With `force`, overwrite changes by others and delete tasks without asking.
function M.save(view, force)
  if view.saving then return notify("the previous save is still in progress; nothing more was sent") end
  if not transport.connected or not view.model.ready then
    return notify("no connection to the daemon; nothing was changed, and your edits stay here until :w")
  end
  local plan, why = M.plan(view, vim.api.nvim_buf_get_lines(view.buffer, 0, -1, false), force)
  if not plan then return notify(why) end
  if #plan.changes == 0 then
    view.lines = vim.api.nvim_buf_get_lines(view.buffer, 0, -1, false)
    return view:finish_save()
  end
  if #plan.deleted == 0 or force then return send(view, plan) end
  local question = ("Delete #%s?"):format(table.concat(plan.deleted, ", #"))
  local tick = vim.api.nvim_buf_get_changedtick(view.buffer)
  local version = view.model.version
  vim.ui.select({ "Delete", "Cancel" }, { prompt = question }, function(answer)
    if answer ~= "Delete" then return notify("nothing was changed", vim.log.levels.INFO) end
    if tick ~= vim.api.nvim_buf_get_changedtick(view.buffer) or version ~= view.model.version then
      return notify("the list or the buffer has changed since the question; nothing was changed: :w again")
    end
    send(view, plan)
  end)
end

return M
