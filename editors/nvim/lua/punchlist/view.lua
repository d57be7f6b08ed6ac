--- The buffer of a list: drawn from the model, edited by a person.
local text = require("punchlist.text")
local transport = require("punchlist.transport")

local M = {}
M.__index = M
local views = {} -- by buffer
local signs = vim.api.nvim_create_namespace("punchlist")
local banners = vim.api.nvim_create_namespace("punchlist_banner")
local DEFAULT_UNDO = -123456 -- "as the global option says"

--- The view of a buffer, or nil.
function M.of(buffer)
  return views[buffer ~= 0 and buffer or vim.api.nvim_get_current_buf()]
end

--- Make a buffer show a list.
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
  view:forget()
  view:draw({}, true)
  return view
end

--- Forget what is shown: the next drawing writes all lines.
function M:forget()
  self.tree, self.lines, self.text, self.shown, self.place, self.waiting = {}, {}, {}, {}, {}, 0
  self.blank = true
end

--- The model changed: `ids` look different, with `moved` the order too. Typing is never overwritten.
function M:update(ids, moved)
  if not vim.api.nvim_buf_is_loaded(self.buffer) then return end
  if self.saving and self.saving.version and self.model.version >= self.saving.version then return self:saved() end
  if vim.bo[self.buffer].modified or self.saving then
    if moved or next(ids) then
      self.waiting, self.missed = self.waiting + 1, true
    end
    return self:banner()
  end
  moved, self.missed = moved or self.missed, nil
  self:draw(ids, moved)
end

--- What was saved has come back: show the list as it is.
function M:saved()
  self.saving, self.missed = nil, nil
  vim.bo[self.buffer].modified = false
  vim.bo[self.buffer].modifiable = true
  self.lines = vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false)
  self.waiting = 0
  self:draw({}, true)
  -- Typing has moved the marks.
  vim.api.nvim_buf_clear_namespace(self.buffer, signs, 0, -1)
  for at = 1, #self.tree do self:mark(at) end
end

--- The id of the task in a line, from 1; nil where the line shows none.
function M:id_at(line)
  return text.id_of(vim.api.nvim_buf_get_lines(self.buffer, line - 1, line, false)[1] or "")
end

function M:line_of(id, depth)
  local row = self.model.by_id[id]
  if self.shown[id] ~= row or not self.text[id] or self.depth_of[id] ~= depth then
    self.text[id], self.shown[id] = text.line(row, depth), row
    self.depth_of[id] = depth
  end
  return self.text[id]
end

--- Write lines from `first` on in place of those up to `last` (from 0, end-exclusive); no undo leads behind it.
function M:write(first, last, lines)
  local options = vim.bo[self.buffer]
  local modifiable = options.modifiable
  options.modifiable, options.undolevels = true, -1
  vim.api.nvim_buf_clear_namespace(self.buffer, signs, first, last) -- they would move to the line behind
  vim.api.nvim_buf_set_lines(self.buffer, first, last, false, lines)
  options.undolevels, options.modified, options.modifiable = DEFAULT_UNDO, false, modifiable
  self.redrawn = self.redrawn + #lines
end

function M:draw(ids, moved)
  local model = self.model
  if model.ready then
    self.depth_of = self.depth_of or {}
    if moved or self.blank then
      self:draw_all()
    else
      for id in pairs(ids) do
        local at = self.place[id]
        if at and model.by_id[id] then
          local before = self.lines[at]
          self.lines[at] = self:line_of(id, self.tree[at].depth)
          if before ~= self.lines[at] then self:write(at - 1, at, { self.lines[at] }) end
          self:mark(at)
        end
      end
    end
  end
  self:banner()
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
    new[at], self.place[item.id] = self:line_of(item.id, item.depth), at
  end
  for id in pairs(self.text) do
    if not self.place[id] then self.text[id], self.shown[id] = nil, nil end
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
  for at = first + 1, #new - rest do self:mark(at) end
  for window, cursor in pairs(cursors) do
    local at = cursor.id and self.place[cursor.id]
    if at then pcall(vim.api.nvim_win_set_cursor, window, { at, cursor.column }) end
  end
end

--- Signs and the notice of a claim beside a line.
function M:mark(at)
  vim.api.nvim_buf_clear_namespace(self.buffer, signs, at - 1, at)
  local row = self.model.by_id[self.tree[at].id]
  local said = {}
  if row.fence then
    local till = row.lease_expires_at and os.date(" until %H:%M", math.floor(row.lease_expires_at / 1000)) or ""
    local where = (row.machine or "") ~= "" and " on " .. text.safe(row.machine) or ""
    local left = row.left_at or row.silent_at
    local gone = left and "left at " .. os.date("%H:%M", math.floor(left / 1000)) or "claimed"
    said[1] = gone .. where .. till
  end
  if row.status == "failed" and (row.fail_reason or "") ~= "" then said[#said + 1] = text.safe(row.fail_reason):sub(1, 120) end
  if row.waits_for then said[#said + 1] = "waits for " .. text.gate(row) end
  local sign = row.status == "failed" and { "!", "ErrorMsg" } or row.status == "in_progress" and { "●", "Todo" }
  if not sign and #said == 0 then return end
  vim.api.nvim_buf_set_extmark(self.buffer, signs, at - 1, 0, {
    sign_text = sign and sign[1] or nil,
    sign_hl_group = sign and sign[2] or nil,
    virt_text = #said > 0 and { { "  " .. table.concat(said, "; "), "Comment" } } or nil,
  })
end

--- What a person should know about the whole list, as short sentences.
function M:notices()
  local model, said = self.model, {}
  if not transport.connected then
    said[1] = (model.ready and "away, this is the last picture: " or "away: ") .. text.safe(transport.reason or "")
  end
  if model.trouble then said[#said + 1] = text.safe(model.trouble) end
  if model.damaged then said[#said + 1] = "the log is damaged and the list not whole: punch doctor" end
  if self.saving then said[#said + 1] = "saving" end
  if self.waiting > 0 and not self.saving then
    said[#said + 1] = "others changed the list meanwhile; :w keeps both, :e! drops your edits"
  end
  if model.ready and #model.order == 0 then said[#said + 1] = "an empty list: write [ ] Title, then :w" end
  return said
end

function M:banner()
  local said = self:notices()
  vim.api.nvim_buf_clear_namespace(self.buffer, banners, 0, -1)
  local others = text.safe(table.concat(self.model:others(), ", "))
  if #said > 0 or others ~= "" then
    local notice = { { "  " .. table.concat(said, "; "), "WarningMsg" } }
    if others ~= "" then notice[2] = { "  also here: " .. others, "Comment" } end
    vim.api.nvim_buf_set_extmark(self.buffer, banners, 0, 0, { virt_text = notice, virt_text_pos = "right_align" })
  end
  vim.b[self.buffer].punchlist_notices = said
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local plain = vim.wo[window].winhighlight:gsub(",?Normal:NonText", "")
    vim.wo[window].winhighlight = transport.connected and plain or plain .. (plain ~= "" and "," or "") .. "Normal:NonText"
  end
end

return M
