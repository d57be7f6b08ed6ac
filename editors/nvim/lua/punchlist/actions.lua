--- What a person can do with a task or a list: one table for keys and for `:Punch`.
local links = require("punchlist.links")
local text = require("punchlist.text")
local transport = require("punchlist.transport")
local View = require("punchlist.view")

local M = {}
local CLAIM_MS = 2 * 60 * 60 * 1000

local function say(message, level)
  vim.notify("punchlist: " .. text.safe(message), level or vim.log.levels.INFO)
end
M.say = say

local function complain(err)
  say(err.message or err.kind or "it failed", vim.log.levels.ERROR)
end

--- Change the list, and say so if that fails.
local function change(model, method, params, done)
  if not transport.connected then return say("the daemon is away; nothing was changed", vim.log.levels.ERROR) end
  params.conversation = model.name
  transport.change(method, params, function(err, result)
    if err then return complain(err) end
    model:made(result)
    if done then done(result) end
  end)
end

local function owner()
  return require("punchlist").config.owner
end

--- Ask for a text, unless a command brought it.
local function ask(prompt, given, default, done)
  if given and given ~= "" then return done(given) end
  vim.ui.input({ prompt = prompt, default = default }, function(answer)
    if answer and answer:find("%S") then done(answer) end
  end)
end

local function set_status(status, member, prompt)
  return function(model, row, given)
    if row.waits_for == "yes" then
      return say(("#%s waits for %s: :Punch approve %s, or :Punch reject %s WHY"):format(row.id, text.gate(row), row.id, row.id))
    end
    local function go(said)
      -- Our own claim is named by its number; whose it is otherwise, the daemon decides.
      local fence = row.owner == owner() and row.fence or nil
      change(model, "task.set_status", { task = row.id, status = status, fence = fence, [member or "result_summary"] = said })
    end
    if prompt then return ask(prompt, given, nil, go) end
    go(given ~= "" and member and given or nil)
  end
end

--- Answer a task that waits for a yes, as it was when the person looked at it.
local function answer(accept)
  return function(model, row, given)
    if row.waits_for ~= "yes" then return say(("#%s does not wait for a yes"):format(row.id)) end
    local version = row.version
    local function go(why)
      change(model, "task.approve", { task = row.id, accept = accept, version = version, text = why })
    end
    if accept then return go(given) end
    ask("Why not? ", given, nil, go)
  end
end

local function move(step)
  return function(model, row)
    local group = vim.tbl_filter(function(id) return model.by_id[id].parent == row.parent end, model.order)
    for at, id in ipairs(group) do
      local other = group[at + step]
      if id == row.id and other then
        return change(model, "task.move", { task = id, [step < 0 and "before" or "after"] = other })
      end
    end
  end
end

local function reprioritize(step)
  return function(model, row)
    for at, priority in ipairs(text.PRIORITIES) do
      local other = text.PRIORITIES[at + step]
      if priority == row.priority and other then change(model, "task.edit", { task = row.id, priority = other }) end
    end
  end
end

local function add(model, row, given, place)
  ask("New task: ", given, place and place.title, function(title)
    local link = place and { { kind = "path", to = place.to } } or nil
    change(model, "task.add", { title = title, after = not place and row and row.id or nil, links = link })
  end)
end

local function edit(model, row, given)
  if text.safe(row.title) ~= row.title and (given or "") == "" then
    return say(("#%s has characters that are shown as escapes; write it anew: :Punch edit %s TITLE"):format(row.id, row.id))
  end
  local version = row.version
  ask("Title: ", given, row.title, function(title)
    local now = model.by_id[row.id]
    if now and now.version ~= version and now.title ~= row.title then
      return say(("#%s was changed meanwhile, and is left alone: %s"):format(row.id, now.title), vim.log.levels.WARN)
    end
    change(model, "task.edit", { task = row.id, title = title })
  end)
end

--- The actor of a chat's changes, by the list that holds its thread; as `punchlist/actors.py` has it.
local function chat_actor(thread)
  local name = thread:match("^.-chat%-(.+)$") or thread
  return "chat/" .. name:sub(1, #name == 36 and name:sub(9, 9) == "-" and 8 or 123)
end

--- Whose changes are ours, as parameters of `list.undo`: this person's, here and in chats about the list.
local function mine(model, done)
  transport.request("conversation.list", { kind = "chat", limit = 200 }, function(err, result)
    if err then return complain(err) end
    local also = {}
    for _, one in ipairs(result.conversations) do
      local about = one.metadata and one.metadata.list
      if about == model.name and (one.user or "") == "" then also[#also + 1] = chat_actor(one.conversation) end
    end
    done({ of = require("punchlist").config.actor, count = 1, also = #also > 0 and also or nil })
  end)
end

--- Ask with a preview, then undo the call that it named: other changes of the list don't matter.
local function take_back(model, which, question, nothing)
  local how = { conversation = model.name, whole = true, claims = true }
  local function ask_first(call, lines, refusal)
    local shown = refusal and vim.list_extend(vim.list_extend({}, lines), { text.safe(refusal) }) or lines
    vim.ui.select({ "Yes", "Cancel" }, { prompt = question .. "\n  " .. table.concat(shown, "\n  ") .. "\n" }, function(answer)
      if answer ~= "Yes" then return end
      transport.change("list.undo", vim.tbl_extend("error", how, { call = call }), function(err, result)
        if err then return ask_first(call, lines, err.message or err.kind) end
        model:made(result)
      end)
    end)
  end
  transport.request("list.undo", vim.tbl_extend("error", how, which, { preview = true }), function(err, preview)
    if err then return complain(err) end
    if #preview.undone == 0 then return say(nothing) end
    ask_first(preview.calls[1], vim.tbl_map(text.safe, preview.undone))
  end)
end

--- Undo our own last change, or whoever's change made the version that is given.
local function undo(model, _, given)
  if given and given ~= "" then
    if not given:find("^%d+$") then return say("a version is a number; :Punch log shows them", vim.log.levels.ERROR) end
    local question = ("Undo the change that made version %s?"):format(given)
    return take_back(model, { call = tonumber(given) }, question, "there is nothing to undo in this change")
  end
  mine(model, function(which)
    take_back(model, which, "Undo your last change?", "you have nothing to undo here; :Punch log shows the changes of others")
  end)
end

local function redo(model)
  mine(model, function(which)
    take_back(model, vim.tbl_extend("error", which, { redo = true }), "Redo what you undid?", "you have nothing to redo here")
  end)
end

--- The unfinished tasks as a quickfix list: at the places that they name, else in the list itself.
local function quickfix(model)
  local view, items = nil, {}
  for _, one in pairs(model.views) do view = one.place and one or view end
  for _, id in ipairs(model.order) do
    local row = model.by_id[id]
    if row.status ~= "completed" then
      local said = ("#%s %s"):format(id, text.safe(row.title))
      local kind = row.status == "failed" and "E" or "I"
      local places = links.of_task(row, model.root)
      for _, place in ipairs(places) do
        items[#items + 1] = { filename = place.path, lnum = place.line, text = said, type = kind }
      end
      if #places == 0 and view then
        items[#items + 1] = { bufnr = view.buffer, lnum = view.place[id] or 1, text = said, type = kind }
      end
    end
  end
  vim.fn.setqflist({}, " ", { title = "punchlist " .. model.name, items = items })
  vim.cmd("copen")
end

local function go(model, row)
  local under = View.of(0) and links.places(vim.fn.expand("<cWORD>"), model.root) or {}
  local place = under[1] or links.of_task(row, model.root)[1]
  if not place then return say(("#%s names no file that is there"):format(row.id)) end
  links.jump(place)
end

--- Let a task wait for the tasks of these numbers alone.
local function block(model, row, given)
  local was = row.blocked_by or {}
  vim.ui.input({ prompt = "Waits for (#1 #2): ", default = given ~= "" and given or table.concat(was, " ") }, function(answer)
    if not answer then return end
    local now = {}
    for id in answer:gmatch("%d+") do now[#now + 1] = id end
    local function without(list, other)
      return vim.tbl_filter(function(id) return not vim.tbl_contains(other, id) end, list)
    end
    local more, less = without(now, was), without(was, now)
    if #more + #less > 0 then
      change(model, "task.edit", {
        task = row.id, add_blocked_by = #more > 0 and more or nil, remove_blocked_by = #less > 0 and less or nil,
      })
    end
  end)
end

local function visit(model, rest)
  vim.cmd("edit " .. vim.fn.fnameescape(("punchlist://%s/%s"):format(model.name, rest)))
end

local function at(model, _, given)
  ask("Version: ", given, tostring(model.version), function(version)
    if not version:find("^%d+$") then return say("a version is a number; :Punch log shows them", vim.log.levels.ERROR) end
    visit(model, "@" .. version)
  end)
end

local function why(model, row)
  transport.request("task.explain", { conversation = model.name, task = row.id }, function(err, result)
    if err then return complain(err) end
    local lines = vim.tbl_map(function(reason)
      local kind = reason.kind == "reserved" and "reserved for " .. reason.owner or reason.kind
      return ("%s: #%s %s"):format(kind, reason.by, reason.title)
    end, result.reasons or {})
    say(#lines == 0 and ("nothing holds #%s"):format(row.id) or table.concat(vim.tbl_map(text.safe, lines), "; "))
  end)
end

--- Name → key behind <LocalLeader>, what it does, whether it needs a task, and the function of list, task and words.
M.actions = {
  start = { "s", "start", true, set_status("in_progress") },
  done = { "d", "done, with a result", true, set_status("completed", "result_summary") },
  fail = { "f", "failed, with a reason", true, set_status("failed", "fail_reason", "Why did it fail? ") },
  pause = { "p", "pause", true, set_status("paused") },
  reopen = { "r", "reopen", true, set_status("pending") },
  approve = { "Y", "say yes: it counts as done", true, answer(true) },
  reject = { "N", "say no, with a reason", true, answer(false) },
  claim = { "c", "claim", true, function(model, row)
    change(model, "task.claim", { task = row.id, owner = owner(), lease_ms = CLAIM_MS, keep = true }, function(result)
      if not result.task then say(("#%s can't be claimed now; :Punch why %s"):format(row.id, row.id)) end
    end)
  end },
  release = { "R", "give a claim back", true, function(model, row)
    change(model, "task.release", { task = row.id, owner = owner(), fence = row.fence })
  end },
  add = { "a", "add a task behind this one", false, add },
  edit = { "e", "edit the title", true, edit },
  describe = { "E", "edit the description", true, function(model, row) visit(model, row.id) end },
  block = { "b", "what it waits for", true, block },
  note = { "m", "write a note", true, function(model, row, given)
    ask("Note: ", given, nil, function(said) change(model, "task.note", { task = row.id, text = said }) end)
  end },
  delete = { "x", "delete, after a question", true, function(model, row)
    vim.ui.select({ "Delete", "Cancel" }, { prompt = ("Delete #%s %s?"):format(row.id, text.safe(row.title)) }, function(answer)
      if answer == "Delete" then change(model, "task.delete", { task = row.id }) end
    end)
  end },
  down = { "J", "move down", true, move(1) },
  up = { "K", "move up", true, move(-1) },
  raise = { "+", "more urgent", true, reprioritize(1) },
  lower = { "-", "less urgent", true, reprioritize(-1) },
  why = { "w", "why it can't start", true, why },
  undo = { "u", "undo your last change, or the one of a version", false, undo },
  redo = { "U", "redo, after a look at it", false, redo },
  log = { "l", "what happened", false, function(model) visit(model, "log") end },
  at = { "@", "the list as it was at a version", false, at },
  quickfix = { "q", "unfinished tasks as a quickfix list", false, quickfix },
  go = { "g", "go to the file that the task names", true, go },
}

--- Do an action to the task of this id (nil: the one under the cursor) of a list.
function M.run(name, model, id, given, place)
  local action, view = M.actions[name], View.of(0)
  if view then
    model = model or view.model
    id = id or view:id_at(vim.api.nvim_win_get_cursor(0)[1])
  end
  if not model then return say("open a list first: :Punch", vim.log.levels.ERROR) end
  local row = id and model.by_id[id]
  if id and not row then return say(("%s has no task #%s"):format(model.name, id), vim.log.levels.ERROR) end
  if action[3] and not row then return say("which task? Put the cursor on one, or name its number", vim.log.levels.ERROR) end
  action[4](model, row, given, place)
end

--- The keys of a list's buffer.
function M.map(buffer)
  for name, action in pairs(M.actions) do
    local run = function() M.run(name) end
    vim.keymap.set("n", "<LocalLeader>" .. action[1], run, { buffer = buffer, desc = "punchlist: " .. action[2] })
  end
  vim.keymap.set("n", "gf", function() M.run("go") end, { buffer = buffer, desc = "punchlist: go to the file" })
end

return M
