;;; punchlist-autoloads.el --- Autoloads of punchlist  -*- lexical-binding: t; -*-
(add-to-list 'load-path (directory-file-name (or (file-name-directory #$) (car load-path))))
(autoload 'punchlist "punchlist" "Show the list of this directory's project." t)
(autoload 'punchlist-add-here "punchlist" "Add a task about this line to the project's list." t)
(autoload 'punchlist-mode-line-mode "punchlist" "Show in the mode line how many tasks are open." t)
;;; punchlist-autoloads.el ends here
