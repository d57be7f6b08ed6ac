--- Actions on tasks and lists, in one table for the keys and for `:Punch`.
local links = require("punchlist.links")
local text = require("punchlist.text")
local transport = require("punchlist.transport")
local View = require("punchlist.view")

local M = {}
local CLAIM_MS = 2 * 60 * 60 * 1000

local function notify(message, level)
  vim.notify("punchlist: " .. text.safe(message), level or vim.log.levels.INFO)
end
M.notify = notify

local function notify_error(err)
  notify(err.message or err.kind or "it failed", vim.log.levels.ERROR)
end

--- Change the list, and notify the user of an error.
local function change(model, method, params, done)
  if not transport.connected then return notify("no connection to the daemon; nothing was changed", vim.log.levels.ERROR) end
  params.conversation = model.name
  transport.change(method, params, function(err, result)
    if err then return notify_error(err) end
    model:record_own_change(result)
    if done then done(result) end
  end)
end

local function owner()
  return require("punchlist").config.owner
end

--- Ask for text, unless a command passes it as `argument`.
local function ask(prompt, argument, default, done)
  if argument and argument ~= "" then return done(argument) end
  vim.ui.input({ prompt = prompt, default = default }, function(answer)
    if answer and answer:find("%S") then done(answer) end
  end)
end

local function set_status(status, member, prompt)
  return function(model, row, argument)
    if row.waits_for == "yes" then
      return notify(("#%s waits for %s: :Punch approve %s, or :Punch reject %s WHY"):format(row.id, text.describe_gate(row), row.id, row.id))
    end
    local function send(reason)
      -- With another owner's fence, the call would finish that owner's task.
      local fence = row.owner == owner() and row.fence or nil
      change(model, "task.set_status", { task = row.id, status = status, fence = fence, [member or "result_summary"] = reason })
    end
    if prompt then return ask(prompt, argument, nil, send) end
    send(argument ~= "" and member and argument or nil)
  end
end

--- Approve or reject a task that waits for a yes. The daemon rejects the call if the task has changed since then.
local function answer(accept)
  return function(model, row, argument)
    if row.waits_for ~= "yes" then return notify(("#%s does not wait for a yes"):format(row.id)) end
    local version = row.version
    local function send(reason)
      change(model, "task.approve", { task = row.id, accept = accept, version = version, text = reason })
    end
    if accept then return send(argument) end
    ask("Why not? ", argument, nil, send)
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

local function add(model, row, argument, place)
  ask("New task: ", argument, place and place.title, function(title)
    local link = place and { { kind = "path", to = place.to } } or nil
    change(model, "task.add", { title = title, after = not place and row and row.id or nil, links = link })
  end)
end

local function edit(model, row, argument)
  if text.safe(row.title) ~= row.title and (argument or "") == "" then
    return notify(("#%s has characters that are shown as escapes; enter a new title: :Punch edit %s TITLE"):format(row.id, row.id))
  end
  local version = row.version
  ask("Title: ", argument, row.title, function(title)
    local now = model.by_id[row.id]
    if now and now.version ~= version and now.title ~= row.title then
      return notify(("nothing was changed: #%s now has another title: %s"):format(row.id, now.title), vim.log.levels.WARN)
    end
    change(model, "task.edit", { task = row.id, title = title })
  end)
end

--- Return the actor of a chat's changes from the id of its thread, as in `punchlist/base/actors.py`.
local function chat_actor(thread)
  local name = thread:match("^.-chat%-(.+)$") or thread
  return "chat/" .. name:sub(1, #name == 36 and name:sub(9, 9) == "-" and 8 or 123)
end

--- Call `done` with `list.undo` parameters for this person's changes, including those of chats about the list.
local function find_own_changes(model, done)
  transport.request("conversation.list", { kind = "chat", limit = 200 }, function(err, result)
    if err then return notify_error(err) end
    local also = {}
    for _, thread in ipairs(result.conversations) do
      local about = thread.metadata and thread.metadata.list
      if about == model.name and (thread.user or "") == "" then also[#also + 1] = chat_actor(thread.conversation) end
    end
    done({ of = require("punchlist").config.actor, count = 1, also = #also > 0 and also or nil })
  end)
end

--- Undo or redo the call that `which` selects. Ask first, with a preview, if there is a `question`, or if the undo loses
--- work or a claim. Without a question, name the key of the `opposite` action afterwards.
local function undo_call(model, which, question, nothing, opposite)
  local options = { conversation = model.name, whole = true, claims = true }
  local function send(call, lines)
    transport.change("list.undo", vim.tbl_extend("error", options, { call = call }), function(err, result)
      if err and not question then return notify("nothing was changed: " .. (err.message or err.kind), vim.log.levels.WARN) end
      if err then return M.ask_to_undo(question, vim.list_extend(lines, { err.message or err.kind }), function() send(call, lines) end) end
      model:record_own_change(result)
      local done = (opposite == "undo" and "Redone: " or "Undone: ") .. table.concat(result.undone, "; ")
      local key = opposite and (" (%s: %s)"):format((vim.g.maplocalleader or "\\") .. M.actions[opposite][1], opposite) or ""
      vim.api.nvim_echo({ { text.safe(vim.fn.strcharpart(done, 0, 300)) .. key } }, true, {})
    end)
  end
  transport.request("list.undo", vim.tbl_extend("error", options, which, { preview = true }), function(err, preview)
    if err then return notify_error(err) end
    local lines = preview.undone
    if #lines == 0 then return notify(nothing) end
    local call = preview.calls[1]
    local is_loss = table.concat(lines, "\n"):find("; lost: ") or table.concat(lines, "\n"):find(": released by ")
    if is_loss and not question then question = opposite == "undo" and "Redo your last undo?" or "Undo your last change?" end
    if not question then return send(call, lines) end
    M.ask_to_undo(question, lines, function() send(call, lines) end)
  end)
end

function M.ask_to_undo(question, lines, done)
  local preview = table.concat(vim.tbl_map(text.safe, lines), "\n  ")
  vim.ui.select({ "Yes", "Cancel" }, { prompt = question .. "\n  " .. preview .. "\n" }, function(answer)
    if answer == "Yes" then done() end
  end)
end

--- Undo the user's own last change, or any actor's change by its version.
local function undo(model, _, argument, place)
  if argument and argument ~= "" then
    if not argument:find("^%d+$") then return notify("a version is a number; see :Punch log", vim.log.levels.ERROR) end
    local question = ("Undo the change that made version %s%s?"):format(argument, place and place.by or "")
    return undo_call(model, { call = tonumber(argument) }, question, "this change has nothing to undo")
  end
  find_own_changes(model, function(which)
    undo_call(model, which, nil, "you have nothing to undo here; for others' changes see :Punch log", "redo")
  end)
end

local function redo(model)
  find_own_changes(model, function(which)
    undo_call(model, vim.tbl_extend("error", which, { redo = true }), nil, "you have nothing to redo here", "undo")
  end)
end

--- Load the unfinished tasks into the quickfix list, at their places in code, or else at their lines in the list.
local function quickfix(model)
  local view, items = nil, {}
  for _, page in pairs(model.views) do view = page.place and page or view end
  for _, id in ipairs(model.order) do
    local row = model.by_id[id]
    if row.status ~= "completed" then
      local label = ("#%s %s"):format(id, text.safe(row.title))
      local kind = row.status == "failed" and "E" or "I"
      local places = links.places_of_task(row, model.root)
      for _, place in ipairs(places) do
        items[#items + 1] = { filename = place.path, lnum = place.line, text = label, type = kind }
      end
      if #places == 0 and view then
        items[#items + 1] = { bufnr = view.buffer, lnum = view.place[id] or 1, text = label, type = kind }
      end
    end
  end
  vim.fn.setqflist({}, " ", { title = "punchlist " .. model.name, items = items })
  vim.cmd("copen")
end

local function go(model, row)
  local under = View.of(0) and links.places(vim.fn.expand("<cWORD>"), model.root) or {}
  local place = under[1] or links.places_of_task(row, model.root)[1]
  if not place then return notify(("#%s names no existing file"):format(row.id)) end
  links.jump(place)
end

--- Set the blockers of a task.
local function block(model, row, argument)
  local was = row.blocked_by or {}
  vim.ui.input({ prompt = "Waits for (#1 #2): ", default = argument ~= "" and argument or table.concat(was, " ") }, function(answer)
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

local function open_page(model, rest)
  vim.cmd("edit " .. vim.fn.fnameescape(("punchlist://%s/%s"):format(model.name, rest)))
end

local function at(model, _, argument)
  ask("Version: ", argument, tostring(model.version), function(version)
    if not version:find("^%d+$") then return notify("a version is a number; see :Punch log", vim.log.levels.ERROR) end
    open_page(model, "@" .. version)
  end)
end

local REASONS = {
  stopped = "the list stops at failures, and {by} has failed",
  serial = "the list runs one task at a time, and {by} is in progress",
  blocker = "waits for {by} ({status})",
  parent = "its parent {by} is {status}",
  child = "has the open task {by}",
  heading = "is a heading: the tasks below it are the work",
  deferred = "is put off",
  reserved = "is reserved for {owner}",
  check = "is done and waits for its check",
  yes = "is done and waits for a yes",
}

--- Show why a task can't start, one reason a line, in a window below.
local function why(model, row)
  transport.request("task.explain", { conversation = model.name, task = row.id }, function(err, result)
    if err then return notify_error(err) end
    local lines = vim.tbl_map(function(reason)
      local task = { by = ("#%s %s"):format(reason.by, reason.title), owner = reason.owner or "", status = reason.status:gsub("_", " ") }
      local sentence = (REASONS[reason.kind] or "is {status}"):gsub("{(%l+)}", task)
      return ("%s#%s %s"):format(("  "):rep((reason.depth or 0) + 1), reason.of or row.id, text.safe(sentence))
    end, result.reasons or {})
    if #lines == 0 then return notify(("nothing blocks #%s"):format(row.id)) end
    table.insert(lines, 1, ("#%s %s"):format(row.id, text.safe(row.title)))
    vim.cmd(("botright %dnew"):format(math.min(#lines, 12)))
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    local options = vim.bo
    options.buftype, options.bufhidden, options.swapfile, options.modeline, options.modifiable = "nofile", "wipe", false, false, false
    vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = 0, desc = "punchlist: close" })
  end)
end

--- Show a task in full, as Markdown in a floating window.
local function show(_, row)
  local lines = { ("# #%s %s"):format(row.id, text.safe(row.title)), "" }
  local function add(heading, body)
    if (body or "") == "" then return end
    if heading then vim.list_extend(lines, { "## " .. heading, "" }) end
    for line in (body .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = text.safe(line) end
    lines[#lines + 1] = ""
  end
  add(nil, vim.trim(text.join(text.members(row))))
  if row.waits_for then add(nil, "Waits for " .. text.describe_gate(row) .. ".") end
  add(nil, row.description)
  add("Result", row.result_summary)
  add("Reason", row.fail_reason)
  for _, note in ipairs(row.notes or {}) do
    add(("Note by %s, %s"):format(text.safe(note.actor), os.date("%Y-%m-%d %H:%M", math.floor(note.at / 1000))), note.text)
  end
  add("Links", table.concat(vim.tbl_map(function(link) return ("- %s: %s"):format(link.kind, link.to) end, row.links or {}), "\n"))
  vim.lsp.util.open_floating_preview(lines, "markdown", { border = "rounded", max_width = 90, focus_id = "punchlist" })
end

--- Name → key after <LocalLeader>, description, whether it needs a task, and a function of (model, row, argument, place).
M.actions = {
  start = { "s", "start", true, function(model, row)
    local start = set_status("in_progress")
    if row.status ~= "completed" then return start(model, row) end
    vim.ui.select({ "Start", "Cancel" }, { prompt = ("Start #%s %s again? It is done."):format(row.id, text.safe(row.title)) }, function(answer)
      if answer == "Start" then start(model, row) end
    end)
  end },
  done = { "d", "done, with a result", true, set_status("completed", "result_summary") },
  fail = { "f", "failed, with a reason", true, set_status("failed", "fail_reason", "Why did it fail? ") },
  pause = { "p", "pause", true, set_status("paused") },
  reopen = { "r", "reopen", true, set_status("pending") },
  approve = { "y", "approve", true, answer(true) },
  reject = { "n", "reject, with a reason", true, answer(false) },
  claim = { "c", "claim", true, function(model, row)
    change(model, "task.claim", { task = row.id, owner = owner(), lease_ms = CLAIM_MS, keep = true }, function(result)
      if not result.task then notify(("#%s can't be claimed now; :Punch why %s"):format(row.id, row.id)) end
    end)
  end },
  release = { "R", "release a claim", true, function(model, row)
    change(model, "task.release", { task = row.id, owner = owner(), fence = row.fence })
  end },
  add = { "a", "add a task after this one", false, add },
  edit = { "e", "edit the title", true, edit },
  describe = { "E", "edit the description", true, function(model, row) open_page(model, row.id) end },
  block = { "b", "set its blockers", true, block },
  note = { "m", "write a note", true, function(model, row, argument)
    ask("Note: ", argument, nil, function(note) change(model, "task.note", { task = row.id, text = note }) end)
  end },
  delete = { "x", "delete, after confirmation", true, function(model, row)
    vim.ui.select({ "Delete", "Cancel" }, { prompt = ("Delete #%s %s?"):format(row.id, text.safe(row.title)) }, function(answer)
      if answer == "Delete" then change(model, "task.delete", { task = row.id }) end
    end)
  end },
  down = { "J", "move down", true, move(1) },
  up = { "K", "move up", true, move(-1) },
  raise = { "+", "more urgent", true, reprioritize(1) },
  lower = { "-", "less urgent", true, reprioritize(-1) },
  why = { "w", "why it can't start", true, why },
  show = { [2] = "show it in full", [3] = true, [4] = show }, -- its key is K
  undo = { "u", "undo your last change, or that of a version", false, undo },
  redo = { "U", "redo your last undo", false, redo },
  log = { "l", "history", false, function(model) open_page(model, "log") end },
  at = { "@", "the list at a version", false, at },
  quickfix = { "q", "unfinished tasks as a quickfix list", false, quickfix },
  go = { "g", "go to the file that the task names", true, go },
}

--- Run an action on a list's task with this id (nil: the one under the cursor).
function M.run(name, model, id, argument, place)
  local action, view = M.actions[name], View.of(0)
  if view then
    model = model or view.model
    id = id or view:id_at(vim.api.nvim_win_get_cursor(0)[1])
  end
  if not model then return notify("open a list first: :Punch", vim.log.levels.ERROR) end
  local row = id and model.by_id[id]
  if id and not row then return notify(("%s has no task #%s"):format(model.name, id), vim.log.levels.ERROR) end
  if action[3] and not row then return notify("no task: put the cursor on one, or give its number", vim.log.levels.ERROR) end
  action[4](model, row, argument, place)
end

--- Map the keys of a list's buffer.
function M.map(buffer)
  for name, action in pairs(M.actions) do
    local run = function() M.run(name) end
    vim.keymap.set("n", action[1] and "<LocalLeader>" .. action[1] or "K", run, { buffer = buffer, desc = "punchlist: " .. action[2] })
  end
  vim.keymap.set("n", "gf", function() M.run("go") end, { buffer = buffer, desc = "punchlist: go to the file" })
end

return M
