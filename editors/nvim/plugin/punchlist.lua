if vim.g.loaded_punchlist or vim.fn.has("nvim-0.7") == 0 then return end
vim.g.loaded_punchlist = true

vim.api.nvim_create_user_command("Punch", function(options) require("punchlist").command(options) end, {
  nargs = "*",
  range = true,
  desc = "Open the project's punchlist, or run an action on a task",
  complete = function(...) return require("punchlist").complete(...) end,
})

vim.api.nvim_create_autocmd("BufReadCmd", {
  pattern = "punchlist://*",
  callback = function(event) require("punchlist").read(event.buf, event.match) end,
})
