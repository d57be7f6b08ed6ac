--- What a push is worth telling a person who looks elsewhere.
local text = require("punchlist.text")

local M = {}

--- Tell of tasks that failed or can start now, and that all is finished, as `config.notify` says.
--- @param before table the rows of the changed tasks as they were, by id
--- @param was_open number how many tasks were open before
function M.tell(model, before, was_open)
  local config = require("punchlist").config
  if config.notify == "off" then return end
  local said, is_own = {}, false
  for id, was in pairs(before) do
    local row = model.by_id[id]
    local ours = row and model.own[id] == row.version
    is_own = is_own or ours
    if row and not ours and (config.notify == "all" or row.owner == config.owner) then
      local name = ("#%s %s"):format(id, text.safe(row.title))
      if row.status == "failed" and was.status ~= "failed" then
        local reason = (row.fail_reason or "") ~= "" and ": " .. text.safe(row.fail_reason) or ""
        said[#said + 1] = { name .. " failed" .. reason, vim.log.levels.WARN }
      elseif row.status == "pending" and #(was.open_blockers or {}) > 0 and #(row.open_blockers or {}) == 0 then
        said[#said + 1] = { name .. " can start now", vim.log.levels.INFO }
      end
    end
  end
  if was_open > 0 and model:open_count() == 0 and next(model.by_id) and not is_own then
    said[#said + 1] = { ("all tasks of %s are finished"):format(model.name), vim.log.levels.INFO }
  end
  table.sort(said, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(said) do vim.notify("punchlist: " .. one[1], one[2]) end
end

return M
