--- The buffer of a list, which is drawn from the model and edited by a person.
local text = require("punchlist.text")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local views = {} -- by buffer
local signs = vim.api.nvim_create_namespace("punchlist")
local banners = vim.api.nvim_create_namespace("punchlist_banner")
local SIGN_OF = { failed = { "!", "ErrorMsg" }, in_progress = { "●", "Todo" }, asks = { "?", "WarningMsg" } }
local DEFAULT_UNDO = -123456 -- undolevels: use the global value

--- Return the view of a buffer (0: the current one), or nil.
function M.of(buffer)
  return views[buffer ~= 0 and buffer or vim.api.nvim_get_current_buf()]
end

--- Show a list in a buffer.
function M.open(buffer, model)
  local view = views[buffer]
  if not view then
    view = setmetatable({ buffer = buffer, model = model, redrawn = 0 }, M)
    views[buffer], model.views[buffer] = view, view
    local options = vim.bo[buffer]
    options.buftype, options.swapfile, options.bufhidden, options.filetype = "acwrite", false, "hide", "punchlist"
    options.expandtab, options.shiftwidth, options.modeline = true, 2, false
    vim.api.nvim_create_autocmd("BufWriteCmd", {
      buffer = buffer,
      callback = function() require("punchlist.save").save(view, vim.v.cmdbang == 1) end,
    })
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function() views[buffer], model.views[buffer] = nil, nil end,
    })
    require("punchlist.actions").map(buffer)
  end
  view.saving = nil
  view:attach()
  view:reset()
  view:draw({}, true)
  return view
end

--- Reset the state of the lines, so that the next draw writes all of them.
function M:reset()
  self.tree, self.lines, self.text, self.drawn, self.place, self.waiting = {}, {}, {}, {}, {}, 0
  self.blank = true
end

--- Draw the changed rows `ids`, or all rows if the order has changed (`moved`). Never overwrites unsaved edits.
function M:update(ids, moved)
  if not vim.api.nvim_buf_is_loaded(self.buffer) then return end
  if self.saving and self.saving.version and self.model.version >= self.saving.version then return self:finish_save() end
  if vim.bo[self.buffer].modified or self.saving then
    if moved or next(ids) then
      self.waiting, self.is_stale = self.waiting + 1, true
    end
    return self:draw_banner()
  end
  local was_stale = self.is_stale
  self.is_stale = nil
  self:draw(ids, moved or was_stale)
  if was_stale then self:mark(0, -1) end
end

--- Finish a save once the model has its version.
function M:finish_save()
  self.saving, self.is_stale = nil, nil
  vim.bo[self.buffer].modified = false
  vim.bo[self.buffer].modifiable = true
  self.lines = vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false)
  self.waiting = 0
  self:draw({}, true)
  self:mark(0, -1) -- Others may have changed members of tasks while the lines stayed the same.
end

--- Return the id of the task in a line, counted from 1, or nil.
function M:id_at(line)
  return text.parse_id(vim.api.nvim_buf_get_lines(self.buffer, line - 1, line, false)[1] or "")
end

function M:format_line(id, depth)
  local row = self.model.by_id[id]
  if self.drawn[id] ~= row or not self.text[id] or self.depth_of[id] ~= depth then
    self.text[id], self.drawn[id] = text.format_line(row, depth), row
    self.depth_of[id] = depth
  end
  return self.text[id]
end

--- Replace the lines from `first` to `last` (from 0, end-exclusive), without an entry in Neovim's undo history.
function M:write(first, last, lines)
  local options = vim.bo[self.buffer]
  local modifiable = options.modifiable
  options.modifiable, options.undolevels = true, -1
  vim.api.nvim_buf_set_lines(self.buffer, first, last, false, lines)
  options.undolevels, options.modified, options.modifiable = DEFAULT_UNDO, false, modifiable
  self.redrawn = self.redrawn + #lines
  self:mark_edited()
end

function M:draw(ids, moved)
  local model = self.model
  if model.ready then
    self.depth_of = self.depth_of or {}
    local was_blank = self.blank
    if moved or was_blank then self:draw_all() end
    for id in pairs(was_blank and {} or ids) do
      local at = self.place[id]
      if at and model.by_id[id] then
        local before = self.lines[at]
        self.lines[at] = self:format_line(id, self.tree[at].depth)
        if before ~= self.lines[at] then self:write(at - 1, at, { self.lines[at] }) else self:mark(at - 1, at) end
      end
    end
  end
  self:draw_banner()
end

function M:draw_all()
  local cursors = {}
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local cursor = vim.api.nvim_win_get_cursor(window)
    cursors[window] = { id = self:id_at(cursor[1]), column = cursor[2] }
  end
  local old, new = self.lines, {}
  self.tree, self.place = self.model:tree(), {}
  for at, item in ipairs(self.tree) do
    new[at], self.place[item.id] = self:format_line(item.id, item.depth), at
  end
  for id in pairs(self.text) do
    if not self.place[id] then self.text[id], self.drawn[id] = nil, nil end
  end
  local first, rest = 0, 0
  while first < #old and first < #new and old[first + 1] == new[first + 1] do first = first + 1 end
  while rest < #old - first and rest < #new - first and old[#old - rest] == new[#new - rest] do rest = rest + 1 end
  if self.blank or #new == 0 then
    self:write(0, -1, new)
    first, rest = 0, 0
  elseif first < #new - rest or first < #old - rest then
    self:write(first, #old - rest, vim.list_slice(new, first + 1, #new - rest))
  end
  self.blank, self.lines = #new == 0, new
  for window, cursor in pairs(cursors) do
    local at = cursor.id and self.place[cursor.id]
    if at then pcall(vim.api.nvim_win_set_cursor, window, { at, cursor.column }) end
  end
  if self.target then self:go_to(self.target) end
end

--- Draw the signs and the virtual text of lines from `first` to `last` (from 0, end-exclusive).
function M:mark(first, last)
  vim.api.nvim_buf_clear_namespace(self.buffer, signs, first, last)
  for offset, line in ipairs(vim.api.nvim_buf_get_lines(self.buffer, first, last, false)) do
    local row = self.model.by_id[text.parse_id(line) or ""]
    if row then M.mark_line(self.buffer, first + offset - 1, row) end
  end
end

--- Draw the sign of a task's line (from 0), and its members and state as virtual text.
function M.mark_line(buffer, at, row)
  local sign = SIGN_OF[row.waits_for == "yes" and "asks" or row.status] or {}
  local chunks = vim.list_extend(text.members(row), text.state(row))
  if not sign[1] and #chunks == 0 then return end
  vim.api.nvim_buf_set_extmark(buffer, signs, at, 0, {
    sign_text = sign[1], sign_hl_group = sign[2], virt_text = #chunks > 0 and chunks or nil,
  })
end

--- Keep the marks with their lines: after an edit, mark the edited lines again. Neovim would leave the mark of a deleted
--- line on the next one.
function M:attach()
  if self.is_attached then return end
  self.is_attached = vim.api.nvim_buf_attach(self.buffer, false, {
    on_lines = function(_, buffer, _, first, _, last)
      local is_scheduled = self.edited ~= nil
      local edited = self.edited or { head = first, tail = math.huge }
      edited.head = math.min(edited.head, first)
      edited.tail = math.min(edited.tail, vim.api.nvim_buf_line_count(buffer) - last)
      self.edited = edited
      -- Neovim moves the marks of an undone edit only after this callback.
      if not is_scheduled then vim.schedule(function() self:mark_edited() end) end
    end,
    on_detach = function() self.is_attached = false end,
  })
end

--- Mark the lines edited since the last call, and the next one, to which the marks of deleted lines have moved.
function M:mark_edited()
  local edited = self.edited
  self.edited = nil
  if not edited or not vim.api.nvim_buf_is_loaded(self.buffer) then return end
  local last = vim.api.nvim_buf_line_count(self.buffer) - edited.tail + 1
  self:mark(edited.head, edited.tail <= 1 and -1 or last)
end

--- Put the cursor on a task, as soon as its line is drawn.
function M:go_to(id)
  local at, window = self.place[id], vim.fn.bufwinid(self.buffer)
  self.target = not at and id or nil
  if at and window ~= -1 then vim.api.nvim_win_set_cursor(window, { at, 0 }) end
end

--- Return notices about the whole list, as short phrases.
function M:notices()
  local model, notices = self.model, {}
  if not transport.connected then
    notices[1] = (model.ready and "away, showing the last known list: " or "away: ") .. text.safe(transport.reason or "")
  end
  if model.problem then notices[#notices + 1] = text.safe(model.problem) end
  if model.damaged then notices[#notices + 1] = "the log is damaged and the list incomplete: punch doctor" end
  if self.saving then notices[#notices + 1] = "saving" end
  if self.waiting > 0 and not self.saving then
    notices[#notices + 1] = "others have changed the list; :w keeps both, :e! drops your edits"
  end
  if model.ready and #model.order == 0 then notices[#notices + 1] = "empty list: type [ ] Title, then :w" end
  return notices
end

function M:draw_banner()
  local notices = self:notices()
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  local other_actors = text.safe(table.concat(self.model:other_actors(), ", "))
  if #notices > 0 or other_actors ~= "" then
    local notice = { { "  " .. table.concat(notices, "; "), "WarningMsg" } }
    if other_actors ~= "" then notice[2] = { "  also here: " .. other_actors, "Comment" } end
    vim.api.nvim_buf_set_extmark(self.buffer, banners, 0, 0, { virt_text = notice, virt_text_pos = "right_align" })
  end
  vim.b[self.buffer].punchlist_notices = notices
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local plain = vim.wo[window].winhighlight:gsub(",?Normal:NonText", "")
    vim.wo[window].winhighlight = transport.connected and plain or plain .. (plain ~= "" and "," or "") .. "Normal:NonText"
  end
end

return M
