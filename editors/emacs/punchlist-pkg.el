(define-package "punchlist" "1.0.0" "Task lists that AI agents share, live" '((emacs "28.1")))
