--- punchlist in Neovim: lists as buffers, kept up to date by the daemon's pushes.
local M = {}

--- The name at the command line, so that undo counts what was done there as well.
local function person()
  local env = vim.env
  return env.PUNCHLIST_ACTOR or env.USER or env.LOGNAME or (vim.uv or vim.loop).os_get_passwd().username
end

--- What `setup` can change.
M.config = {
  actor = person(), -- who the history says made a change
  owner = "nvim/" .. (vim.env.USER or "me"), -- whose claims are ours
  autostart = true, -- whether a daemon is started where none runs
  notify = "mine", -- of whose tasks you are told that they failed or can start: "mine", "all" or "off"
}

local last -- the list that was opened last

--- Change the configuration; nobody has to call this.
function M.setup(options)
  M.config = vim.tbl_extend("force", M.config, options or {})
end

local function say(...)
  require("punchlist.actions").say(...)
end

--- Open the buffer of a list. `root` is the directory that places in tasks are relative to.
function M.open(name, root)
  local model = require("punchlist.model").of(name)
  model.root = root or model.root
  vim.cmd("edit " .. vim.fn.fnameescape("punchlist://" .. name))
  return model
end

--- Fill a buffer `punchlist://NAME`, or one of a list's further pages: what `:edit` calls.
function M.read(buffer, file)
  local name, page = file:match("^punchlist://([%w][%w%._:%-]*)/?(.*)$")
  local id, version = (page or ""):match("^%d+$"), (page or ""):match("^@(%d+)$")
  if not name or not (page == "" or page == "log" or id or version) then
    return say("no list can have this name: " .. file, vim.log.levels.ERROR)
  end
  last = require("punchlist.model").of(name)
  if id then return require("punchlist.description").open(buffer, last, id) end
  if page == "log" then return require("punchlist.history").log(buffer, last) end
  if version then return require("punchlist.history").at(buffer, name, tonumber(version)) end
  require("punchlist.view").open(buffer, last)
end

--- Call `done` once the daemon answers; say so where it does not within 5 seconds.
local function when_connected(done)
  local transport = require("punchlist.transport")
  require("punchlist.model")
  transport.open()
  if transport.connected then return done() end
  local listener, is_done = {}, false
  listener.connected = function()
    if is_done then return end
    is_done = true
    done()
  end
  table.insert(transport.listeners, listener)
  vim.defer_fn(function()
    if not is_done then say("still away: " .. (transport.reason or ""), vim.log.levels.WARN) end
  end, 5000)
end

--- Choose one of all lists.
function M.pick()
  when_connected(function()
    require("punchlist.transport").request("conversation.list", { limit = 1000 }, function(err, result)
      if err then return say(err.message, vim.log.levels.ERROR) end
      local function shown(one)
        local running = vim.tbl_map(function(task) return "#" .. task.id .. " " .. (task.owner or "") end, one.running or {})
        local open = one.counts.pending + one.counts.in_progress + one.counts.paused
        local said = ("%s  %d open  %s"):format(one.conversation, open, table.concat(running, ", "))
        return require("punchlist.text").safe(said)
      end
      vim.ui.select(result.conversations, { prompt = "List", format_item = shown }, function(one)
        if one then M.open(one.conversation) end
      end)
    end)
  end)
end

--- Call `done` with the name and the root of the list that the current file's directory means; with nil if it means none.
local function of_project(done)
  local here = vim.bo.buftype == "" and vim.fn.expand("%:p:h") or ""
  local path = here:sub(1, 1) == "/" and here or vim.fn.getcwd()
  when_connected(function()
    require("punchlist.transport").request("conversation.resolve", { path = path }, function(err, result)
      if err then return say(err.message, vim.log.levels.ERROR) end
      if result.conversation and not result.allowed then
        local why = "%s names the list %s, which was not made for this project; to allow it: punch init --trust"
        return say(why:format(result.file or path, result.conversation), vim.log.levels.WARN)
      end
      done(result.conversation, result.root)
    end)
  end)
end

--- Open the list of the directory of the current file; where it means none, choose one.
function M.project()
  of_project(function(name, root)
    if name then M.open(name, root) else M.pick() end
  end)
end

--- Make a task of lines of the current file, with a link to the first one: of a TODO, or of the text itself.
local function add_from_code(first, given)
  local file, line = vim.fn.expand("%:p"), vim.fn.getline(first)
  if file == "" then return say("this buffer has no file", vim.log.levels.ERROR) end
  local title = line:match("TODO[%s:%(%)%w]-[:%s]%s*(.+)$") or vim.trim(line)
  of_project(function(name, root)
    local model = name and require("punchlist.model").of(name) or last
    if not model then return say("this directory means no list: punch init makes it one, :Punch open NAME takes another", vim.log.levels.ERROR) end
    model.root = model.root or root
    if root and file:sub(1, #root + 1) == root .. "/" then file = file:sub(#root + 2) end
    require("punchlist.actions").run("add", model, nil, given, { to = ("%s:%d"):format(file, first), title = title })
  end)
end

--- "website 2/5": how many tasks of the list opened last are open; with "(away)" while the daemon is.
function M.statusline()
  if not last then return "" end
  local open, all = last:open_count()
  local away = require("punchlist.transport").connected and "" or " (away)"
  return ("%s %d/%d%s"):format(last.name, open, all, away) -- a list's name has no % that a statusline would read
end

--- "claude-code, emacs": who else has the list open that was opened last, for a winbar or a statusline.
function M.presence()
  if not last then return "" end
  return (require("punchlist.text").safe(table.concat(last:others(), ", ")):gsub("%%", "%%%%"))
end

--- `:Punch`: open the project's list, another one, or do something to a task.
function M.command(options)
  local words = options.fargs
  local name = words[1]
  if not name then return M.project() end
  if name == "open" then return words[2] and M.open(words[2]) or M.pick() end
  local actions = require("punchlist.actions")
  if not actions.actions[name] then return say(("there is no :Punch %s; see :help punchlist"):format(name), vim.log.levels.ERROR) end
  local view = require("punchlist.view").of(0)
  if options.range > 0 and name == "add" and not view then
    return add_from_code(options.line1, table.concat(vim.list_slice(words, 2), " "))
  end
  local id = actions.actions[name][3] and (words[2] or ""):match("^#?(%d+)$") or nil
  actions.run(name, view and view.model or last, id, table.concat(vim.list_slice(words, id and 3 or 2), " "))
end

--- What completes `:Punch`: its subcommands, then numbers of tasks or names of lists.
function M.complete(lead, line)
  local names = vim.tbl_keys(require("punchlist.actions").actions)
  local second = line:match("^%S+%s+(%S+)%s")
  if not second then
    names[#names + 1] = "open"
  elseif second == "open" then
    names = vim.tbl_keys(require("punchlist.model").all())
  else
    names = last and vim.deepcopy(last.order) or {}
  end
  table.sort(names)
  return vim.tbl_filter(function(name) return name:sub(1, #lead) == lead end, names)
end

return M
