--- The description of a task as a Markdown buffer (`punchlist://NAME/3`).
local links = require("punchlist.links")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local descriptions = {} -- by buffer
local TRIES = 5
local banners = vim.api.nvim_create_namespace("punchlist_banner")

local function notify(message, level)
  vim.notify("punchlist: " .. message, level or vim.log.levels.WARN)
end

local function split_lines(text)
  return vim.split(text, "\n", { plain = true })
end

--- Show the description of a task in a buffer.
function M.open(buffer, model, id)
  local description = descriptions[buffer]
  if not description then
    description = setmetatable({ buffer = buffer, model = model, id = id }, M)
    descriptions[buffer], model.views[buffer] = description, description
    local options = vim.bo[buffer]
    options.buftype, options.swapfile, options.modeline, options.filetype = "acwrite", false, false, "markdown"
    vim.api.nvim_create_autocmd("BufWriteCmd", {
      buffer = buffer,
      callback = function() description:save(vim.v.cmdbang == 1, TRIES) end,
    })
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function() descriptions[buffer], model.views[buffer] = nil, nil end,
    })
    vim.keymap.set("n", "gf", function()
      local place = links.places(vim.fn.expand("<cWORD>"), model.root)[1]
      if place then links.jump(place) else notify("no existing file under the cursor") end
    end, { buffer = buffer, desc = "punchlist: go to the file" })
  end
  description.base = nil
  description:update()
end

function M:show(text)
  self.base, self.warned_about = text, nil
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, split_lines(text))
  vim.bo[self.buffer].modified = false
end

--- Show the task's current description, unless the buffer has unsaved edits.
function M:update()
  if not (self.model.ready and vim.api.nvim_buf_is_loaded(self.buffer)) or self.saving then return end
  local row = self.model.by_id[self.id]
  local theirs = row and row.description or ""
  if row and (not self.base or (theirs ~= self.base and not vim.bo[self.buffer].modified)) then
    self:show(theirs)
  elseif theirs ~= (self.warned_about or self.base) or (not row and self.warned_about ~= false) then
    self.warned_about = row and theirs or false
    self:warn(row and ("#%s was changed by someone else; :w shows both"):format(self.id)
      or ("#%s is no longer in %s; your text stays here, but can't be saved"):format(self.id, self.model.name))
  end
end

--- Show a warning. It also stays on the first line until the buffer is saved, because messages are easily missed while
--- typing.
function M:warn(message)
  notify(message)
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  local notice = { { "  " .. message, "WarningMsg" } }
  vim.api.nvim_buf_set_extmark(self.buffer, banners, 0, 0, { virt_text = notice, virt_text_pos = "right_align" })
end

--- Save, for `:w`. Without `force`, don't save if someone else has changed the description since it was shown.
--- @param tries number attempts left if the list changes in the meantime
function M:save(force, tries)
  if not transport.connected then return notify("no connection to the daemon; nothing was saved, and your text stays until :w") end
  if self.saving and tries == TRIES then return notify("the previous save is still in progress") end
  local list, task = self.model.name, self.id
  local tick = vim.api.nvim_buf_get_changedtick(self.buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false), "\n")
  self.saving = true
  local function refuse(err)
    self.saving = false
    notify((err.message or err.kind) .. " (nothing was saved, and your text stays)", vim.log.levels.ERROR)
  end
  -- Get the version before the description, so that the edit is rejected after any change in between.
  transport.request("conversation.get", { conversation = list }, function(err, list_result)
    if err then return refuse(err) end
    transport.request("task.get", { conversation = list, task = task }, function(gone, task_result)
      if gone then return refuse(gone) end
      local theirs = task_result.task.description or ""
      if theirs ~= self.base and theirs ~= text and not force then
        self.saving = false
        return self:compare(theirs)
      end
      local params = { conversation = list, task = task, description = text, expect_version = list_result.conversation.version }
      transport.change("task.edit", params, function(refused, result)
        if refused and refused.kind == "version_conflict" and tries > 1 then return self:save(force, tries - 1) end
        if refused then return refuse(refused) end
        self.saving, self.base, self.warned_about = false, text, nil
        self.model:record_own_change(result)
        if not vim.api.nvim_buf_is_loaded(self.buffer) then return end
        vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
        if tick == vim.api.nvim_buf_get_changedtick(self.buffer) then vim.bo[self.buffer].modified = false end
      end)
    end)
  end)
end

--- Show both descriptions as a diff. The user has then seen the other one, so the next `:w` saves.
function M:compare(theirs)
  self.base, self.warned_about = theirs, theirs
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  notify(("not saved: compare with the other description of #%s; :w again saves yours"):format(self.id))
  local window = vim.fn.win_findbuf(self.buffer)[1]
  if not window then return end
  vim.api.nvim_win_call(window, function()
    vim.cmd("diffthis")
    vim.cmd("rightbelow vertical new")
    vim.api.nvim_buf_set_lines(0, 0, -1, false, split_lines(theirs))
    local options = vim.bo
    options.buftype, options.bufhidden, options.swapfile, options.modeline, options.modifiable = "nofile", "wipe", false, false, false
    vim.wo.statusline = ("#%s: theirs"):format(self.id)
    vim.cmd("diffthis")
  end)
end

return M
