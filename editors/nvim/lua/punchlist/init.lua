--- punchlist in Neovim: lists as buffers that are updated by the daemon's pushes.
local M = {}

--- Return the same actor as on the command line, so that undo includes changes made there.
local function default_actor()
  local env = vim.env
  return env.PUNCHLIST_ACTOR or env.USER or env.LOGNAME or (vim.uv or vim.loop).os_get_passwd().username
end

--- Default options of `setup`.
M.config = {
  actor = default_actor(), -- name of your changes in the history
  owner = "nvim/" .. (vim.env.USER or "me"), -- owner of your claims
  autostart = true, -- whether to start a daemon if none is running
  notify = "mine", -- tasks to notify about when they fail or become ready: "mine", "all" or "off"
}

local last -- the most recently opened list

--- Change the configuration. Calling it is optional.
function M.setup(options)
  M.config = vim.tbl_extend("force", M.config, options or {})
end

local function notify(...)
  require("punchlist.actions").notify(...)
end

--- Open the buffer of a list. Places in tasks are relative to the directory `root`.
function M.open(name, root)
  local model = require("punchlist.model").of(name)
  model.root = root or model.root
  vim.cmd("edit " .. vim.fn.fnameescape("punchlist://" .. name))
  return model
end

--- Fill the buffer `punchlist://NAME`, or that of one of the list's other pages, for `:edit`.
function M.read(buffer, file)
  local name, page = file:match("^punchlist://([%w][%w%._:%-]*)/?(.*)$")
  local id, version = (page or ""):match("^%d+$"), (page or ""):match("^@(%d+)$")
  if not name or not (page == "" or page == "log" or id or version) then
    return notify("not a valid name of a list: " .. file, vim.log.levels.ERROR)
  end
  last = require("punchlist.model").of(name)
  if id then return require("punchlist.description").open(buffer, last, id) end
  if page == "log" then return require("punchlist.history").log(buffer, last) end
  if version then return require("punchlist.history").at(buffer, name, tonumber(version)) end
  require("punchlist.view").open(buffer, last)
end

--- Call `done` once connected. Warn after 5 seconds without a connection.
local function when_connected(done)
  local transport = require("punchlist.transport")
  require("punchlist.model")
  transport.open()
  if transport.connected then return done() end
  local listener, is_done = {}, false
  listener.on_connected = function()
    if is_done then return end
    is_done = true
    done()
  end
  table.insert(transport.listeners, listener)
  vim.defer_fn(function()
    if not is_done then notify("still not connected: " .. (transport.reason or ""), vim.log.levels.WARN) end
  end, 5000)
end

--- Let the user choose one of all lists.
function M.pick()
  when_connected(function()
    require("punchlist.transport").request("conversation.list", { limit = 1000 }, function(err, result)
      if err then return notify(err.message, vim.log.levels.ERROR) end
      local function format_list(list)
        local running = vim.tbl_map(function(task) return "#" .. task.id .. " " .. (task.owner or "") end, list.running or {})
        local open = list.counts.pending + list.counts.in_progress + list.counts.paused
        local line = ("%s  %d open  %s"):format(list.conversation, open, table.concat(running, ", "))
        return require("punchlist.text").safe(line)
      end
      vim.ui.select(result.conversations, { prompt = "List", format_item = format_list }, function(list)
        if list then M.open(list.conversation) end
      end)
    end)
  end)
end

local NEED_OF = { yes = "waits for %s", check = "waits for a check", failed = "failed" }

--- Let the user choose one of the tasks of all lists that need a person, and open its list there.
function M.now()
  local text = require("punchlist.text")
  when_connected(function()
    require("punchlist.transport").request("conversation.list", { limit = 1000 }, function(err, result)
      if err then return notify(err.message, vim.log.levels.ERROR) end
      local needs = {}
      for _, list in ipairs(result.conversations) do
        for _, need in ipairs(list.needs or {}) do
          local kind = NEED_OF[need.kind]:format((need.by or "") == "" and "your yes" or need.by .. "'s yes")
          local words = ("%s  #%s %s  %s%s"):format(list.conversation, need.id, need.title, kind, (need.text or "") ~= "" and ": " .. need.text or "")
          needs[#needs + 1] = { list = list.conversation, id = need.id, line = text.safe(words) }
        end
      end
      if #needs == 0 then return notify("nothing needs you") end
      vim.ui.select(needs, { prompt = "Needs you", format_item = function(need) return need.line end }, function(need)
        if not need then return end
        M.open(need.list)
        require("punchlist.view").of(0):go_to(need.id)
      end)
    end)
  end)
end

--- Call `done` with the name and the root of the list that the current file's directory maps to, or with nil.
local function resolve_project(done)
  local here = vim.bo.buftype == "" and vim.fn.expand("%:p:h") or ""
  local path = here:sub(1, 1) == "/" and here or vim.fn.getcwd()
  when_connected(function()
    require("punchlist.transport").request("conversation.resolve", { path = path }, function(err, result)
      if err then return notify(err.message, vim.log.levels.ERROR) end
      if result.conversation and not result.allowed then
        local why = "%s names the list %s, which was not made for this project; to allow it: punch init --trust"
        return notify(why:format(result.file or path, result.conversation), vim.log.levels.WARN)
      end
      done(result.conversation, result.root)
    end)
  end)
end

--- Open the list that the current file's directory maps to. If there is none, let the user choose one.
function M.project()
  resolve_project(function(name, root)
    if name then M.open(name, root) else M.pick() end
  end)
end

--- Add a task with a link to a line of the current file. The default title is the text of the line's TODO, or the line.
local function add_from_code(first, argument)
  local file, line = vim.fn.expand("%:p"), vim.fn.getline(first)
  if file == "" then return notify("this buffer has no file", vim.log.levels.ERROR) end
  local title = line:match("TODO[%s:%(%)%w]-[:%s]%s*(.+)$") or vim.trim(line)
  resolve_project(function(name, root)
    local model = name and require("punchlist.model").of(name) or last
    if not model then return notify("this directory has no list: create one with punch init, or open another with :Punch open NAME", vim.log.levels.ERROR) end
    model.root = model.root or root
    if root and file:sub(1, #root + 1) == root .. "/" then file = file:sub(#root + 2) end
    require("punchlist.actions").run("add", model, nil, argument, { to = ("%s:%d"):format(file, first), title = title })
  end)
end

--- Return the counts of open and all tasks of the most recently opened list, as in "website 2/5", with "(away)" while
--- disconnected.
function M.statusline()
  if not last then return "" end
  local open, all = last:open_count()
  local away = require("punchlist.transport").connected and "" or " (away)"
  -- List names can't contain %, which is special in a statusline.
  return ("%s %d/%d%s"):format(last.name, open, all, away)
end

--- Return who else has the most recently opened list open, as in "claude-code, emacs", for a winbar or a statusline.
function M.presence()
  if not last then return "" end
  return (require("punchlist.text").safe(table.concat(last:other_actors(), ", ")):gsub("%%", "%%%%"))
end

--- Run `:Punch`, which opens the project's list or another one, or runs an action.
function M.command(options)
  local words = options.fargs
  local name = words[1]
  if not name then return M.project() end
  if name == "now" then return M.now() end
  if name == "open" then return words[2] and M.open(words[2]) or M.pick() end
  local actions = require("punchlist.actions")
  if not actions.actions[name] then return notify(("unknown command :Punch %s; see :help punchlist"):format(name), vim.log.levels.ERROR) end
  local view = require("punchlist.view").of(0)
  if options.range > 0 and name == "add" and not view then
    return add_from_code(options.line1, table.concat(vim.list_slice(words, 2), " "))
  end
  local id = actions.actions[name][3] and (words[2] or ""):match("^#?(%d+)$") or nil
  actions.run(name, view and view.model or last, id, table.concat(vim.list_slice(words, id and 3 or 2), " "))
end

--- Complete `:Punch` with subcommands, then with task numbers or list names.
function M.complete(lead, line)
  local names = vim.tbl_keys(require("punchlist.actions").actions)
  local second = line:match("^%S+%s+(%S+)%s")
  if not second then
    vim.list_extend(names, { "now", "open" })
  elseif second == "open" then
    names = vim.tbl_keys(require("punchlist.model").all())
  else
    names = last and vim.deepcopy(last.order) or {}
  end
  table.sort(names)
  return vim.tbl_filter(function(name) return name:sub(1, #lead) == lead end, names)
end

return M
