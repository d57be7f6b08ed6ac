--- The connection to the daemon: one Unix socket, one JSON text per line, requests with callbacks, and reconnects.
--- It never blocks. Callbacks receive the responses on Neovim's main loop.
local M = { connected = false, reason = "not connected yet", listeners = {}, hello = nil }

local uv = vim.uv or vim.loop
local FIRST_PAUSE_MS, LONGEST_PAUSE_MS, START_EVERY_MS = 50, 2000, 10000
--- Maximum length of a Unix socket address, without the final null byte. libuv truncates longer ones silently.
local MAX_ADDRESS_BYTES = 107
local pipe, is_open, timer, started_at
local next_id, pause_ms = 0, FIRST_PAUSE_MS
local pending, order = {}, {}
local connect

--- Return the path of the daemon's socket, by the rules in docs/protocol.md.
function M.socket_path()
  local env = vim.env
  if (env.PUNCHLIST_SOCKET or "") ~= "" then return env.PUNCHLIST_SOCKET end
  if (env.XDG_RUNTIME_DIR or ""):sub(1, 1) == "/" then return env.XDG_RUNTIME_DIR .. "/punchlist/daemon.sock" end
  local run = "/run/user/" .. uv.getuid()
  local stat = uv.fs_stat(run)
  if stat and stat.uid == uv.getuid() then return run .. "/punchlist/daemon.sock" end
  local data = env.XDG_DATA_HOME or ""
  if data:sub(1, 1) ~= "/" then data = (env.HOME or "") .. "/.local/share" end
  local own = env.PUNCHLIST_DATA_DIR or ""
  return (own ~= "" and own or data .. "/punchlist") .. "/run/daemon.sock"
end

--- Return whether this plugin may start a daemon if none is running.
function M.may_start_daemon()
  return vim.env.PUNCHLIST_AUTOSTART ~= "0" and require("punchlist").config.autostart and vim.fn.executable("punch") == 1
end

local function emit(event, ...)
  for _, listener in ipairs(M.listeners) do
    if listener[event] then listener[event](...) end
  end
end

local function write(request)
  pipe:write(request.text)
end

local function connection_error(reason)
  return { kind = "connection", message = reason }
end

--- Handle the loss of the connection. Reads fail, and changes with a key are sent again over the next connection.
local function on_disconnect(reason)
  local is_news = M.connected or M.reason ~= reason
  if pipe and not pipe:is_closing() then pipe:close() end
  pipe, M.connected, M.reason = nil, false, reason
  local kept = {}
  for _, id in ipairs(order) do
    local request = pending[id]
    if request and request.key then
      kept[#kept + 1] = id
    elseif request then
      pending[id] = nil
      request.done(connection_error(reason))
    end
  end
  order = kept
  if is_news then emit("on_away", reason) end
  if not is_open then return end
  timer = timer or uv.new_timer()
  timer:start(pause_ms, 0, vim.schedule_wrap(connect))
  pause_ms = math.min(pause_ms * 2, LONGEST_PAUSE_MS)
end

local function start_daemon()
  local now = uv.now()
  if not M.may_start_daemon() or (started_at and now - started_at < START_EVERY_MS) then return end
  started_at = now
  local handle
  handle = uv.spawn("punch", { args = { "daemon", "status" }, stdio = {}, detached = true }, function() handle:close() end)
end

local function on_message(message)
  if message.method then return emit("on_push", message.method, message.params) end
  local request = pending[message.id]
  if not request then return end
  pending[message.id] = nil
  for at, id in ipairs(order) do
    if id == message.id then table.remove(order, at) break end
  end
  local err = message.error
  if err then
    local facts = err.data or {}
    facts.message = err.message
    return request.done(facts)
  end
  request.done(nil, message.result)
end

local function make_reader(own)
  local parts = {}
  return function(err, data)
    if err or not data then
      return vim.schedule(function() if pipe == own then on_disconnect(err or "the daemon closed the connection") end end)
    end
    local messages, from = {}, 1
    while true do
      local stop = data:find("\n", from, true)
      if not stop then break end
      parts[#parts + 1] = data:sub(from, stop - 1)
      local line = table.concat(parts)
      parts, from = {}, stop + 1
      local ok, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
      if ok and type(message) == "table" then messages[#messages + 1] = message end
    end
    parts[#parts + 1] = data:sub(from)
    if #messages == 0 then return end
    vim.schedule(function()
      for _, message in ipairs(messages) do
        if pipe ~= own then return end
        on_message(message)
      end
    end)
  end
end

--- Return a path that fits into a Unix address. A long path goes through its directory's file descriptor, which is
--- returned too.
local function short_path(path)
  if #path <= MAX_ADDRESS_BYTES then return path end
  local folder = uv.fs_open(vim.fn.fnamemodify(path, ":h"), "r", 0)
  return folder and ("/proc/self/fd/%d/%s"):format(folder, vim.fn.fnamemodify(path, ":t")) or path, folder
end

local function send_hello()
  M.request("daemon.hello", { client = { name = require("punchlist").config.actor, version = "1" } }, function(err, result)
    if not pipe then return end
    if err and err.kind == "connection" then return end
    M.hello, M.connected, M.reason, pause_ms = result or {}, true, nil, FIRST_PAUSE_MS
    emit("on_connected")
    for _, id in ipairs(vim.deepcopy(order)) do
      if pending[id] and pending[id].key then write(pending[id]) end
    end
  end, true)
end

function connect()
  if pipe or not is_open then return end
  local path = M.socket_path()
  uv.fs_stat(path, vim.schedule_wrap(function(missing, stat)
    if pipe or not is_open then return end
    if stat and stat.uid ~= uv.getuid() and stat.uid ~= 0 then
      return on_disconnect(("%s belongs to another user (uid %d); punchlist does not use it"):format(path, stat.uid))
    end
    if missing then
      start_daemon()
      return on_disconnect("no daemon listens on " .. path)
    end
    local own = uv.new_pipe(false)
    local where, folder = short_path(path)
    pipe = own
    own:connect(where, vim.schedule_wrap(function(err)
      if folder then uv.fs_close(folder) end
      if pipe ~= own then return end
      if err then
        start_daemon()
        return on_disconnect(("no daemon listens on %s (%s)"):format(path, err))
      end
      own:read_start(make_reader(own))
      send_hello()
    end))
  end))
end

--- Connect, and reconnect until `close`.
function M.open()
  is_open = true
  connect()
end

--- Disconnect permanently.
function M.close()
  is_open = false
  if timer then timer:stop() end
  on_disconnect("closed")
end

--- Call a method. `done(err, result)` is called exactly once, asynchronously. `err` has `kind` and `message`.
--- If the connection breaks before the response, a change with a `key` is sent again.
function M.request(method, params, done, first)
  if not pipe or not (M.connected or first) then return vim.schedule(function() done(connection_error(M.reason)) end) end
  next_id = next_id + 1
  local text = vim.json.encode({ jsonrpc = "2.0", id = next_id, method = method, params = params }) .. "\n"
  pending[next_id] = { text = text, key = params.key, done = done }
  order[#order + 1] = next_id
  write(pending[next_id])
end

--- Call a method that changes something, with a new key.
function M.change(method, params, done)
  params.key = ("nvim-%d-%x-%x"):format(uv.os_getpid(), uv.hrtime(), math.random(0, 2 ^ 30))
  M.request(method, params, done)
end

return M
