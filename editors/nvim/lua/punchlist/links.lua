--- Places in code that tasks name: `path:line` in a title, a description or a link.
local M = {}

-- The frontier lets a path begin nowhere inside a word: a long word would be read again from each of its letters.
local PLACE = "%f[%w%._%-/~+@]([%w%._%-/~+@]+):(%d+)"

local function file_of(path, root)
  local full = vim.fn.expand("~") .. path:sub(2)
  if path:sub(1, 1) ~= "~" then full = path:sub(1, 1) == "/" and path or (root or vim.fn.getcwd()) .. "/" .. path end
  local found = (vim.uv or vim.loop).fs_stat(full)
  return found and found.type == "file" and full or nil
end

--- The places that a text names and where a file is: `{ path, line }`.
function M.places(said, root)
  local places = {}
  for path, line in said:gmatch(PLACE) do
    local full = file_of(path, root)
    if full then places[#places + 1] = { path = full, line = tonumber(line) } end
  end
  return places
end

--- The places of a task, those of its links first.
function M.of_task(row, root)
  local said = {}
  for _, link in ipairs(row.links or {}) do
    if link.kind == "path" then said[#said + 1] = link.to:find(":%d+$") and link.to or link.to .. ":1" end
  end
  said[#said + 1] = row.title
  said[#said + 1] = row.description or ""
  return M.places(table.concat(said, "\n"), root)
end

--- Go to a place.
function M.jump(place)
  vim.cmd("edit " .. vim.fn.fnameescape(place.path))
  local last = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { math.max(1, math.min(place.line, last)), 0 })
end

return M
