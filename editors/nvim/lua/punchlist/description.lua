--- The description of a task as a Markdown buffer, `punchlist://NAME/3`.
local links = require("punchlist.links")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local descriptions = {} -- by buffer
local TRIES = 5
local banners = vim.api.nvim_create_namespace("punchlist_banner")

local function say(message, level)
  vim.notify("punchlist: " .. message, level or vim.log.levels.WARN)
end

local function lines_of(text)
  return vim.split(text, "\n", { plain = true })
end

--- Make a buffer hold the description of a task.
function M.open(buffer, model, id)
  local one = descriptions[buffer]
  if not one then
    one = setmetatable({ buffer = buffer, model = model, id = id }, M)
    descriptions[buffer], model.views[buffer] = one, one
    local options = vim.bo[buffer]
    options.buftype, options.swapfile, options.modeline, options.filetype = "acwrite", false, false, "markdown"
    vim.api.nvim_create_autocmd("BufWriteCmd", {
      buffer = buffer,
      callback = function() one:save(vim.v.cmdbang == 1, TRIES) end,
    })
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function() descriptions[buffer], model.views[buffer] = nil, nil end,
    })
    vim.keymap.set("n", "gf", function()
      local place = links.places(vim.fn.expand("<cWORD>"), model.root)[1]
      if place then links.jump(place) else say("no file that is there stands under the cursor") end
    end, { buffer = buffer, desc = "punchlist: go to the file" })
  end
  one.base = nil
  one:update()
end

function M:show(text)
  self.base, self.told = text, nil
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, lines_of(text))
  vim.bo[self.buffer].modified = false
end

--- The list changed. What a person types is never overwritten.
function M:update()
  if not (self.model.ready and vim.api.nvim_buf_is_loaded(self.buffer)) or self.saving then return end
  local row = self.model.by_id[self.id]
  local theirs = row and row.description or ""
  if row and (not self.base or (theirs ~= self.base and not vim.bo[self.buffer].modified)) then
    self:show(theirs)
  elseif theirs ~= (self.told or self.base) or (not row and self.told ~= false) then
    self.told = row and theirs or false
    self:warn(row and ("#%s was changed meanwhile; :w shows both"):format(self.id)
      or ("#%s is not in %s; what you write here stays, and can't be saved"):format(self.id, self.model.name))
  end
end

--- Tell, and keep it on the first line until the buffer is saved: who types may not see a message.
function M:warn(message)
  say(message)
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  local notice = { { "  " .. message, "WarningMsg" } }
  vim.api.nvim_buf_set_extmark(self.buffer, banners, 0, 0, { virt_text = notice, virt_text_pos = "right_align" })
end

--- `:w`: save, unless somebody else changed the description since it was shown; with `force` in any case.
--- @param tries number how often to begin again because the list changed in that moment
function M:save(force, tries)
  if not transport.connected then return say("the daemon is away; nothing was saved, and your text stays until :w") end
  if self.saving and tries == TRIES then return say("the save before this one is not answered yet") end
  local list, task = self.model.name, self.id
  local tick = vim.api.nvim_buf_get_changedtick(self.buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false), "\n")
  self.saving = true
  local function refuse(err)
    self.saving = false
    say((err.message or err.kind) .. " (nothing was saved, and your text stays)", vim.log.levels.ERROR)
  end
  -- The version is asked first: whatever comes between it and the change refuses the change.
  transport.request("conversation.get", { conversation = list }, function(err, found)
    if err then return refuse(err) end
    transport.request("task.get", { conversation = list, task = task }, function(gone, got)
      if gone then return refuse(gone) end
      local theirs = got.task.description or ""
      if theirs ~= self.base and theirs ~= text and not force then
        self.saving = false
        return self:compare(theirs)
      end
      local params = { conversation = list, task = task, description = text, expect_version = found.conversation.version }
      transport.change("task.edit", params, function(refused, result)
        if refused and refused.kind == "version_conflict" and tries > 1 then return self:save(force, tries - 1) end
        if refused then return refuse(refused) end
        self.saving, self.base, self.told = false, text, nil
        self.model:made(result)
        if not vim.api.nvim_buf_is_loaded(self.buffer) then return end
        vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
        if tick == vim.api.nvim_buf_get_changedtick(self.buffer) then vim.bo[self.buffer].modified = false end
      end)
    end)
  end)
end

--- Show theirs beside ours, as a diff. From here on the person knows it, so the next `:w` saves what stands here.
function M:compare(theirs)
  self.base, self.told = theirs, theirs
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  say(("not saved: theirs of #%s is beside yours; :w again saves yours"):format(self.id))
  local window = vim.fn.win_findbuf(self.buffer)[1]
  if not window then return end
  vim.api.nvim_win_call(window, function()
    vim.cmd("diffthis")
    vim.cmd("rightbelow vertical new")
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines_of(theirs))
    local options = vim.bo
    options.buftype, options.bufhidden, options.swapfile, options.modeline, options.modifiable = "nofile", "wipe", false, false, false
    vim.wo.statusline = ("#%s: theirs"):format(self.id)
    vim.cmd("diffthis")
  end)
end

return M
