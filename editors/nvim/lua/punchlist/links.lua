--- Places in code (`path:line`) in titles, descriptions and links of tasks.
local M = {}

-- The frontier prevents matches inside a word. Without it, matching a long word takes quadratic time.
local PLACE = "%f[%w%._%-/~+@]([%w%._%-/~+@]+):(%d+)"

local function find_file(path, root)
  local full = vim.fn.expand("~") .. path:sub(2)
  if path:sub(1, 1) ~= "~" then full = path:sub(1, 1) == "/" and path or (root or vim.fn.getcwd()) .. "/" .. path end
  local stat = (vim.uv or vim.loop).fs_stat(full)
  return stat and stat.type == "file" and full or nil
end

--- Return the places in a text whose files exist, as `{ path, line }`.
function M.places(text, root)
  local places = {}
  for path, line in text:gmatch(PLACE) do
    local full = find_file(path, root)
    if full then places[#places + 1] = { path = full, line = tonumber(line) } end
  end
  return places
end

--- Return the places of a task, with those from its links first.
function M.places_of_task(row, root)
  local texts = {}
  for _, link in ipairs(row.links or {}) do
    if link.kind == "path" then texts[#texts + 1] = link.to:find(":%d+$") and link.to or link.to .. ":1" end
  end
  texts[#texts + 1] = row.title
  texts[#texts + 1] = row.description or ""
  return M.places(table.concat(texts, "\n"), root)
end

function M.jump(place)
  vim.cmd("edit " .. vim.fn.fnameescape(place.path))
  local last = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { math.max(1, math.min(place.line, last)), 0 })
end

return M
