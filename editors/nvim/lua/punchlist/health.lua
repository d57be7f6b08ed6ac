--- `:checkhealth punchlist`.
local M = {}

function M.check()
  local health = vim.health or require("health")
  local start = health.start or health.report_start
  local ok, warn, bad = health.ok or health.report_ok, health.warn or health.report_warn, health.error or health.report_error
  local transport = require("punchlist.transport")
  start("punchlist")
  if vim.fn.has("nvim-0.7") == 1 then ok("Neovim is 0.7 or newer") else bad("Neovim is older than 0.7: install a newer one") end
  if vim.fn.executable("punch") == 1 then
    ok("punch is on the PATH: a daemon can be started")
  else
    warn("punch is not on the PATH: the plugin can't start a daemon")
  end
  local path = transport.socket_path()
  local stat = (vim.uv or vim.loop).fs_stat(path)
  if not stat then
    warn("no daemon listens on " .. path .. ": start one with :Punch or any punch command")
  elseif stat.uid ~= (vim.uv or vim.loop).getuid() and stat.uid ~= 0 then
    bad(("%s belongs to another user (uid %d)"):format(path, stat.uid))
  else
    ok("the socket is " .. path)
  end
  transport.open()
  -- This is the plugin's only blocking wait, since a health report can't be completed from a callback.
  vim.wait(500, function() return transport.connected end, 5)
  if transport.connected then
    local hello = transport.hello
    ok(("connected to %s %s, protocol %s"):format(hello.name or "a daemon", hello.version or "", tostring(hello.protocol)))
    if hello.protocol ~= 1 then warn("this plugin speaks protocol 1: install the matching one with punch setup neovim") end
  else
    bad("not connected: " .. (transport.reason or "") .. "; for details: punch doctor")
  end
  for name, model in pairs(require("punchlist.model").all()) do
    local open, all = model:open_count()
    ok(("%s: version %d, %d of %d tasks open"):format(name, model.version, open, all))
    if model.damaged then bad(name .. " is damaged: punch doctor") end
  end
end

return M
