" Punchlist's lists: checkbox, number, title, and the groups of the virtual text.
if exists('b:current_syntax') | finish | endif
syntax match punchlistPending /^ *\[ \] #\d\+/
syntax match punchlistBlocked /^ *\[\.\] #\d\+/
syntax match punchlistAsks /^ *\[?\] #\d\+/
syntax match punchlistRunning /^ *\[\/\] #\d\+/
syntax match punchlistPaused /^ *\[=\] #\d\+/
syntax match punchlistFailed /^ *\[✗\] #\d\+/
syntax match punchlistDone /^ *\[x\].*/
syntax match punchlistPlace /[^ :]\+:\d\+/
highlight default link punchlistPending Identifier
highlight default link punchlistBlocked Comment
highlight default link punchlistAsks Question
highlight default link punchlistRunning Todo
highlight default link punchlistPaused WarningMsg
highlight default link punchlistFailed ErrorMsg
highlight default link punchlistDone Comment
highlight default link punchlistPriority Special
highlight default link punchlistOwner Type
highlight default link punchlistBlockers Comment
highlight default link punchlistLabel Constant
highlight default link punchlistPlace Underlined
let b:current_syntax = 'punchlist'
