--- Notifications about changes by others.
local text = require("punchlist.text")

local M = {}

--- Notify the user of tasks that failed or became ready, and of a finished list, depending on the option `notify`.
--- @param before table the previous rows of the changed tasks, by id
--- @param was_open number the previous number of open tasks
function M.notify_of_changes(model, before, was_open)
  local config = require("punchlist").config
  if config.notify == "off" then return end
  local notifications, is_own = {}, false
  for id, was in pairs(before) do
    local row = model.by_id[id]
    local is_ours = row and model.own[id] == row.version
    is_own = is_own or is_ours
    if row and not is_ours and (config.notify == "all" or row.owner == config.owner) then
      local name = ("#%s %s"):format(id, text.safe(row.title))
      if row.status == "failed" and was.status ~= "failed" then
        local reason = (row.fail_reason or "") ~= "" and ": " .. text.safe(row.fail_reason) or ""
        notifications[#notifications + 1] = { name .. " failed" .. reason, vim.log.levels.WARN }
      elseif row.status == "pending" and #(was.open_blockers or {}) > 0 and #(row.open_blockers or {}) == 0 then
        notifications[#notifications + 1] = { name .. " can start now", vim.log.levels.INFO }
      end
    end
  end
  if was_open > 0 and model:open_count() == 0 and next(model.by_id) and not is_own then
    notifications[#notifications + 1] = { ("all tasks of %s are finished"):format(model.name), vim.log.levels.INFO }
  end
  table.sort(notifications, function(a, b) return a[1] < b[1] end)
  for _, notification in ipairs(notifications) do vim.notify("punchlist: " .. notification[1], notification[2]) end
end

return M
