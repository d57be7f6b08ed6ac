;;; punchlist.el --- Task lists that AI agents share, live  -*- lexical-binding: t; -*-

;; Author: the authors of punchlist
;; Version: 1.0.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, outlines
;; URL: https://github.com/punchlist/punchlist

;;; Commentary:

;; `M-x punchlist' shows the list of the current directory's project.  The list
;; is kept up to date by the daemon's pushes, without polling.  `?' shows the keys.
;; `M-x punchlist-add-here' adds a task for a TODO or for the region.
;; `punchlist-mode-line-mode' counts the open tasks in the mode line.

;;; Code:

(require 'cl-lib)
(require 'format-spec)
(require 'seq)
(require 'subr-x)
(require 'punchlist-model)
(require 'punchlist-pages)

(defconst punchlist--claim-ms (* 2 60 60 1000))
(defconst punchlist--slice 200 "Maximum number of lines to draw before Emacs handles other events.")

(defface punchlist-away '((t :inherit shadow)) "The last known list while disconnected."
  :group 'punchlist)
(defface punchlist-running '((t :inherit success)) "A task in progress."
  :group 'punchlist)
(defface punchlist-failed '((t :inherit error)) "A failed task."
  :group 'punchlist)
(defface punchlist-finished '((t :inherit shadow)) "A completed or paused task."
  :group 'punchlist)

;;; Drawing

(defconst punchlist--looks
  '(("pending" " " nil) ("in_progress" "/" punchlist-running) ("paused" "=" punchlist-finished)
    ("completed" "x" punchlist-finished) ("failed" "✗" punchlist-failed))
  "Status, its checkbox as in the Markdown files that punch writes, and its face.")

(defconst punchlist--place "[[:alnum:]~][[:alnum:]._/~+@-]\\{0,254\\}:[0-9]+"
  "Matches a place in code, PATH:LINE.
The length is limited, because matching a long word takes quadratic time.")

(defvar-local punchlist--list nil "The list that this buffer shows.")
(defvar-local punchlist--lines [] "The task of each line, (ID . DEPTH); of a long list, at first only a part.")
(defvar-local punchlist--places nil "The line of each task, counted from 0.")
(defvar-local punchlist--is-dimmed nil "Whether the buffer is dimmed because there is no connection.")
(defvar punchlist-rendered 0 "Number of lines drawn so far.  Used by tests.")

(defun punchlist--describe-gate (row)
  "Describe what the completed task ROW waits for at its gate."
  (let ((by (or (plist-get (plist-get row :gate) :by) "")) (check (or (plist-get (plist-get row :gate) :check) "")))
    (cond ((not (equal (plist-get row :waits_for) "yes")) (concat "the check " (punchlist--safe check)))
          ((string-empty-p by) "your yes")
          (t (concat (punchlist--safe by) "'s yes")))))

(defun punchlist--look (row)
  "Return the checkbox of ROW and its face.
A pending task that can't start yet has another box than a ready one."
  (cond ((equal (plist-get row :waits_for) "yes") '("?" warning))
        ((and (equal (plist-get row :status) "pending") (or (plist-get row :open_blockers) (plist-get row :not_before)))
         '("." punchlist-finished))
        (t (or (cdr (assoc (plist-get row :status) punchlist--looks)) '("?" nil)))))

(defun punchlist--format-date (at day)
  "Return the time AT, in milliseconds, or DAY if it isn't nil, as a short text."
  (let* ((date (or day (format-time-string "%F" (/ at 1000))))
         (near (seq-find (lambda (one) (equal date (format-time-string "%F" (time-add nil (* 86400 (cdr one))))))
                         '(("yesterday" . -1) ("today" . 0) ("tomorrow" . 1)))))
    (concat (or (car near) date) (if day "" (format-time-string " %H:%M" (/ at 1000))))))

(defun punchlist--format-members (row)
  "Return the members of ROW that follow its title in its line."
  (let ((priority (plist-get row :priority)) (owner (or (plist-get row :owner) "")) (status (plist-get row :status))
        (blockers (plist-get row :open_blockers)) (due (plist-get row :due)) (due-day (plist-get row :due_day))
        (start (plist-get row :not_before)))
    (concat (and priority (not (equal priority "normal")) (concat "  !" priority))
            (and blockers (concat "  <- #" (string-join blockers " #")))
            (mapconcat (lambda (label) (concat "  +" (punchlist--safe label))) (plist-get row :labels) "")
            (and (not (string-empty-p owner)) (concat "  @" (punchlist--safe owner)))
            (and due (not (member status '("completed" "failed")))
                 (format "  %sdue %s"
                         (if (if due-day (string< due-day (format-time-string "%F")) (< (/ due 1000) (float-time))) "late: " "")
                         (punchlist--format-date due due-day)))
            (and start (concat "  put off until " (punchlist--format-date start (plist-get row :not_before_day))))
            (and (plist-get row :waits_for) (concat "  waits for " (punchlist--describe-gate row))))))

(defun punchlist--format-outcome (row)
  "Return the first line of the reason of ROW if it failed, else of its result."
  (let ((outcome (or (plist-get row (if (equal (plist-get row :status) "failed") :fail_reason :result_summary)) "")))
    (if (string-blank-p outcome) ""
      (concat "  " (punchlist--safe (truncate-string-to-width (car (split-string (string-trim outcome) "\n")) 120 nil nil "…"))))))

(defun punchlist--format-line (row depth)
  "Return the line of ROW at DEPTH, with its newline."
  (cl-incf punchlist-rendered)
  (pcase-let* ((`(,sign ,face) (punchlist--look row))
               (text (concat (make-string (* 2 depth) ?\s)
                             (format "[%s] #%s " sign (plist-get row :id))
                             (punchlist--safe (plist-get row :title))
                             (punchlist--format-members row)
                             (punchlist--format-outcome row))))
    (concat (propertize text 'face face 'punchlist-id (plist-get row :id)) (propertize "\n" 'punchlist-id (plist-get row :id)))))

(defun punchlist--insert (row depth)
  "Insert the line of ROW at DEPTH, with buttons for places in its title."
  (let ((from (point)))
    (insert (punchlist--format-line row depth))
    (when (string-match-p punchlist--place (plist-get row :title))
      (save-excursion
        (goto-char from)
        (while (re-search-forward punchlist--place (line-end-position) t)
          (make-text-button (match-beginning 0) (match-end 0) 'follow-link t 'help-echo "Go to this place"
                            'action (lambda (button) (punchlist--visit (button-label button)))))))))

(defun punchlist--update (list)
  "Draw the buffers of LIST."
  (dolist (buffer (buffer-list))
    (when (eq (buffer-local-value 'punchlist--list buffer) list)
      (with-current-buffer buffer (punchlist--draw)))))
(add-hook 'punchlist--list-functions #'punchlist--update)

(defun punchlist--draw ()
  "Draw added, removed, moved and changed lines.
If there are many, draw one slice now and the others from a timer."
  (let* ((list punchlist--list) (inhibit-read-only t) (gc-cons-threshold punchlist--gc-threshold)
         (rows (punchlist--list-rows list)) (drawn (make-hash-table :test 'equal))
         (here (punchlist--spot-at (point)))
         (windows (mapcar (lambda (window) (cons window (punchlist--spot-at (window-point window))))
                          (get-buffer-window-list nil nil t))))
    (unless (eq punchlist--lines (punchlist--list-tree list)) (punchlist--draw-slice drawn))
    (dolist (id (punchlist--list-changed list))
      (when-let ((at (and (not (gethash id drawn)) (gethash id punchlist--places))))
        (puthash id t drawn)
        (punchlist--go-to-line at)
        (delete-region (point) (progn (forward-line 1) (point)))
        (punchlist--insert (gethash id rows) (cdr (aref punchlist--lines at)))))
    (set-buffer-modified-p nil)
    (pcase-dolist (`(,window . ,spot) windows)
      (punchlist--go-to-spot spot)
      (set-window-point window (point)))
    (punchlist--go-to-spot here)
    (setq header-line-format (punchlist--format-header))
    (unless (eq punchlist--is-dimmed (not punchlist--connected))
      (setq punchlist--is-dimmed (not punchlist--connected))
      (if punchlist--is-dimmed (face-remap-set-base 'default '(:inherit punchlist-away)) (face-remap-reset-base 'default)))))

(defun punchlist--spot-at (position)
  "Return the task and the column at POSITION."
  (save-excursion
    (goto-char position)
    (cons (get-text-property (point) 'punchlist-id) (current-column))))

(defun punchlist--go-to-spot (spot)
  "Go to the task and column of SPOT, or to the first line if the task is gone."
  (punchlist--go-to-line (or (and punchlist--places (gethash (car spot) punchlist--places)) 0))
  (move-to-column (cdr spot)))

(defun punchlist--draw-slice (drawn)
  "Replace the lines between the common beginning and end.
Record the drawn ids in DRAWN, and leave lines beyond one slice to a timer."
  (let* ((rows (punchlist--list-rows punchlist--list)) (old punchlist--lines) (new (punchlist--list-tree punchlist--list))
         (most (min (length old) (length new))) (first 0) (last 0) middle)
    (while (and (< first most) (equal (aref old first) (aref new first))) (cl-incf first))
    (while (and (< last (- most first))
                (equal (aref old (- (length old) last 1)) (aref new (- (length new) last 1))))
      (cl-incf last))
    (setq middle (min (- (length new) last) (+ first punchlist--slice)))
    (punchlist--go-to-line first)
    (delete-region (point) (progn (forward-line (- (length old) first last)) (point)))
    (cl-loop for at from first below middle
             for (id . depth) = (aref new at)
             do (puthash id t drawn) (punchlist--insert (gethash id rows) depth))
    (setq punchlist--places (make-hash-table :test 'equal :size (length new))
          punchlist--lines (if (= (+ middle last) (length new)) new
                             (vconcat (seq-subseq new 0 middle) (seq-subseq new (- (length new) last)))))
    (cl-loop for at from 0 for line across punchlist--lines do (puthash (car line) at punchlist--places))
    (unless (eq punchlist--lines new) (run-at-time 0 nil #'punchlist--draw-next-slice (current-buffer)))))

(defun punchlist--draw-next-slice (buffer)
  "Draw the next slice of BUFFER, if it still exists."
  (when (buffer-live-p buffer) (with-current-buffer buffer (punchlist--draw))))

(defun punchlist--go-to-line (at)
  "Go to the line AT, counted from 0."
  (goto-char (point-min))
  (forward-line at))

(defun punchlist--format-header ()
  "Return the header line."
  (let* ((list punchlist--list) (count (punchlist--open-count list)) (others (punchlist--format-others list)))
    (replace-regexp-in-string
     "%" "%%"
     (concat (format "%s  %d of %d open" (punchlist--list-name list) (car count) (cdr count))
             (unless (string-empty-p others) (concat "  also here: " others))
             (unless punchlist--connected
               (format "  away%s: %s" (if (punchlist--list-is-ready list) ", showing the last known list" "") punchlist--reason))
             (when (punchlist--list-problem list) (concat "  " (punchlist--safe (punchlist--list-problem list))))
             (when (punchlist--list-damaged list) "  the log is damaged: the list is incomplete")))))

(defvar punchlist--last nil "The most recently opened list.")

(defun punchlist--format-mode-line ()
  "Return the number of open tasks in the most recently opened list."
  (if (not punchlist--last) ""
    (let ((count (punchlist--open-count punchlist--last)))
      (format " %s %d/%d%s" (punchlist--list-name punchlist--last) (car count) (cdr count)
              (if punchlist--connected "" " (away)")))))

;;;###autoload
(define-minor-mode punchlist-mode-line-mode
  "Show in the mode line how many tasks of the list are open."
  :global t :group 'punchlist
  (setq global-mode-string (delete '(:eval (punchlist--format-mode-line)) (or global-mode-string '(""))))
  (when punchlist-mode-line-mode
    (setq global-mode-string (append global-mode-string '((:eval (punchlist--format-mode-line)))))))

;;; Actions

(defun punchlist--row-at-point ()
  "Return the row at point."
  (let ((id (get-text-property (point) 'punchlist-id)))
    (or (and punchlist--list id (gethash id (punchlist--list-rows punchlist--list)))
        (user-error "No task at point"))))

(defun punchlist--ask (prompt &optional initial)
  "Read text with PROMPT and INITIAL; signal an error if it is blank."
  (let ((answer (read-string prompt initial)))
    (if (string-blank-p answer) (user-error "Nothing was changed") answer)))

(defun punchlist--change-task (method params &optional done)
  "Change the task at point with METHOD and PARAMS; call DONE with the result."
  (punchlist--change punchlist--list method `(:task ,(plist-get (punchlist--row-at-point) :id) ,@params) done))

(defun punchlist--set-status (status &rest members)
  "Set the task at point to STATUS, with additional MEMBERS."
  (let* ((row (punchlist--row-at-point)) (is-ours (equal (plist-get row :owner) punchlist-owner)))
    (when (equal (plist-get row :waits_for) "yes")
      (user-error "#%s waits for %s: y approves it, n rejects it with a reason" (plist-get row :id) (punchlist--describe-gate row)))
    (punchlist--change-task "task.set_status"
                   `(:status ,status ,@members
                             ,@(and is-ours (plist-get row :fence) (list :fence (plist-get row :fence)))))))

(defun punchlist-start ()
  "Start the task at point; ask first if it is completed."
  (interactive)
  (let ((row (punchlist--row-at-point)))
    (when (or (not (equal (plist-get row :status) "completed"))
              (yes-or-no-p (format "#%s %s is done; start it again? " (plist-get row :id) (punchlist--safe (plist-get row :title)))))
      (punchlist--set-status "in_progress"))))
(defun punchlist-pause () "Pause the task at point." (interactive) (punchlist--set-status "paused"))
(defun punchlist-reopen () "Make the task at point pending again." (interactive) (punchlist--set-status "pending"))
(defun punchlist-done (result)
  "Complete the task at point; with a prefix argument, ask for its RESULT."
  (interactive (list (and current-prefix-arg (punchlist--ask "Result: "))))
  (apply #'punchlist--set-status "completed" (and result (list :result_summary result))))
(defun punchlist-fail (reason)
  "Mark the task at point as failed, with a REASON."
  (interactive (progn (punchlist--row-at-point) (list (punchlist--ask "Why did it fail? "))))
  (punchlist--set-status "failed" :fail_reason reason))
(defun punchlist--answer (accept &rest members)
  "Approve the task at point if ACCEPT, else reject it; with additional MEMBERS."
  (let ((row (punchlist--row-at-point)))
    (unless (equal (plist-get row :waits_for) "yes") (user-error "#%s does not wait for a yes" (plist-get row :id)))
    (punchlist--change-task "task.approve" `(:accept ,accept :version ,(plist-get row :version) ,@members))))
(defun punchlist-approve () "Approve the task at point, which then counts as completed." (interactive) (punchlist--answer t))
(defun punchlist-reject (reason)
  "Reject the task at point with a REASON, so that it is pending again."
  (interactive (progn (punchlist--row-at-point) (list (punchlist--ask "Why not? "))))
  (punchlist--answer :false :text reason))
(defun punchlist-claim ()
  "Claim the task at point."
  (interactive)
  (let ((id (plist-get (punchlist--row-at-point) :id)))
    (punchlist--change-task "task.claim" `(:owner ,punchlist-owner :lease_ms ,punchlist--claim-ms :keep t)
                   (lambda (result) (unless (plist-get result :task) (message "punchlist: #%s can't be claimed now" id))))))
(defun punchlist-release ()
  "Release the claim of the task at point."
  (interactive)
  (punchlist--change-task "task.release" `(:owner ,punchlist-owner)))
(defun punchlist-add (title)
  "Add a task with TITLE after the one at point."
  (interactive (list (punchlist--ask "New task: ")))
  (let ((id (get-text-property (point) 'punchlist-id)))
    (punchlist--change punchlist--list "task.add" `(:title ,title ,@(and id (list :after id))))))
(defun punchlist-edit (title)
  "Change the TITLE of the task at point."
  (interactive (list (punchlist--ask "Title: " (punchlist--safe (plist-get (punchlist--row-at-point) :title)))))
  (unless (equal title (punchlist--safe (plist-get (punchlist--row-at-point) :title)))
    (punchlist--change-task "task.edit" (list :title title))))
(defun punchlist-note (text)
  "Add a note with TEXT to the task at point."
  (interactive (progn (punchlist--row-at-point) (list (punchlist--ask "Note: "))))
  (punchlist--change-task "task.note" (list :text text)))
(defun punchlist-blockers (ids)
  "Set the blockers of the task at point to IDS."
  (interactive (list (read-string "Waits for (#1 #2): " (string-join (plist-get (punchlist--row-at-point) :blocked_by) " "))))
  (let ((new (split-string ids "[^0-9]+" t)) (old (plist-get (punchlist--row-at-point) :blocked_by)))
    (punchlist--change-task "task.edit" `(:add_blocked_by ,(vconcat (seq-difference new old))
                                                 :remove_blocked_by ,(vconcat (seq-difference old new))))))
(defun punchlist-delete ()
  "Delete the task at point, after confirmation."
  (interactive)
  (let ((row (punchlist--row-at-point)))
    (when (yes-or-no-p (format "Delete #%s %s? " (plist-get row :id) (punchlist--safe (plist-get row :title))))
      (punchlist--change-task "task.delete" nil))))

(defun punchlist--move (step)
  "Move the task at point by STEP among its siblings."
  (let* ((row (punchlist--row-at-point)) (rows (punchlist--list-rows punchlist--list))
         (group (seq-filter (lambda (id) (equal (plist-get (gethash id rows) :parent) (plist-get row :parent)))
                            (punchlist--list-order punchlist--list)))
         (at (+ step (seq-position group (plist-get row :id)))))
    (when (and (>= at 0) (nth at group))
      (punchlist--change-task "task.move" (list (if (< step 0) :before :after) (nth at group))))))
(defun punchlist-up () "Move the task at point up." (interactive) (punchlist--move -1))
(defun punchlist-down () "Move the task at point down." (interactive) (punchlist--move 1))

(defun punchlist--reprioritize (step)
  "Change the priority of the task at point by STEP."
  (let* ((priorities ["low" "normal" "high" "urgent"])
         (at (+ step (seq-position priorities (plist-get (punchlist--row-at-point) :priority)))))
    (when (< -1 at 4) (punchlist--change-task "task.edit" (list :priority (aref priorities at))))))
(defun punchlist-raise () "Make the task at point more urgent." (interactive) (punchlist--reprioritize 1))
(defun punchlist-lower () "Make the task at point less urgent." (interactive) (punchlist--reprioritize -1))

(defun punchlist--read-list (method params done)
  "Call METHOD with PARAMS on the list of this buffer.
Call DONE with the result, or show the error."
  (punchlist--request method `(:conversation ,(punchlist--list-name punchlist--list) ,@params)
                      (lambda (err result)
                        (if err (message "punchlist: %s" (punchlist--safe (plist-get err :message)))
                          (funcall done result)))))

(defconst punchlist--reasons
  '(("stopped" . "the list stops at failures, and %b has failed")
    ("serial" . "the list runs one task at a time, and %b is in progress")
    ("blocker" . "waits for %b (%s)") ("parent" . "its parent %b is %s") ("child" . "has the open task %b")
    ("heading" . "is a heading: the tasks below it are the work") ("deferred" . "is put off")
    ("reserved" . "is reserved for %o") ("check" . "is done and waits for its check") ("yes" . "is done and waits for a yes"))
  "Kind of a reason, and its sentence; the sentence of other kinds is \"is %s\".")

(defun punchlist--format-reason (reason)
  "Return REASON, why a task can't start, as a sentence."
  (format-spec (alist-get (plist-get reason :kind) punchlist--reasons "is %s" nil #'equal)
               `((?b . ,(format "#%s %s" (plist-get reason :by) (punchlist--safe (plist-get reason :title))))
                 (?o . ,(punchlist--safe (or (plist-get reason :owner) "")))
                 (?s . ,(string-replace "_" " " (plist-get reason :status))))))

(defun punchlist-why ()
  "Show why the task at point can't start, one reason a line."
  (interactive)
  (let ((id (plist-get (punchlist--row-at-point) :id)))
    (punchlist--read-list
     "task.explain" (list :task id)
     (lambda (result)
       (let ((reasons (mapcar (lambda (reason)
                                (format "#%s %s" (or (plist-get reason :of) id) (punchlist--format-reason reason)))
                              (plist-get result :reasons))))
         (message "%s" (if reasons (string-join reasons "\n") (format "punchlist: nothing blocks #%s" id))))))))

(defun punchlist--chat-actor (thread)
  "Return the actor of the chat with the id THREAD."
  (let ((name (if (string-match "chat-" thread) (substring thread (match-end 0)) thread)))
    (concat "chat/" (cond ((and (= (length name) 36) (eq (aref name 8) ?-)) (substring name 0 8))
                          (t (substring name 0 (min 123 (length name))))))))

(defun punchlist--find-own-changes (done)
  "Call DONE with `list.undo' parameters that select this person's edits."
  (let ((name (punchlist--list-name punchlist--list)) (list punchlist--list))
    (punchlist--request
     "conversation.list" '(:kind "chat" :limit 200)
     (lambda (err result)
       (if err (message "punchlist: %s" (punchlist--safe (plist-get err :message)))
         (let ((chats (seq-filter (lambda (chat) (and (equal (plist-get (plist-get chat :metadata) :list) name)
                                                      (string-empty-p (or (plist-get chat :user) ""))))
                                  (plist-get result :conversations))))
           (with-temp-buffer
             (setq punchlist--list list)
             (funcall done `(:of ,punchlist-actor :count 1
                                 :also ,(vconcat (mapcar (lambda (chat) (punchlist--chat-actor (plist-get chat :conversation)))
                                                         chats)))))))))))

(defun punchlist--undo-call (which question nothing &optional opposite)
  "Undo or redo the call selected by WHICH, and say what was undone.
Ask QUESTION first, with a preview; without a question, ask only if the undo
loses a result or a claim, and name the key OPPOSITE afterwards.  Show NOTHING
if there is nothing to undo."
  (let ((list punchlist--list) (options '(:whole t :claims t)) (is-redo (equal opposite "u")))
    (cl-labels
        ((send (call lines)
           (punchlist--change
            list "list.undo" `(,@options :call ,call)
            (lambda (result)
              (message "%s: %s%s" (if is-redo "Redone" "Undone")
                       (truncate-string-to-width (mapconcat #'punchlist--safe (plist-get result :undone) "; ") 300 nil nil "…")
                       (if opposite (format " (%s: %s)" opposite (if is-redo "undo" "redo")) "")))
            (lambda (err)
              (let ((why (punchlist--safe (plist-get err :message))))
                (if question (ask call (append lines (list why))) (message "punchlist: nothing was changed: %s" why))))))
         (ask (call lines)
           (run-at-time 0 nil (lambda ()
                                ;; Called from a timer, Emacs would ask in a menu, in which RET means yes.
                                (when (let ((use-dialog-box nil))
                                        (yes-or-no-p (concat question "\n  " (string-join lines "\n  ") "\n")))
                                  (send call lines))))))
      (punchlist--read-list
       "list.undo" `(,@options ,@which :preview t)
       (lambda (result)
         (let* ((lines (mapcar #'punchlist--safe (plist-get result :undone))) (call (car (plist-get result :calls)))
                (is-loss (seq-some (lambda (line) (string-match-p "; lost: \\|: released by " line)) lines)))
           (when (and is-loss (not question))
             (setq question (if is-redo "Redo your last undo?" "Undo your last change?")))
           (cond ((not lines) (message "punchlist: %s" nothing))
                 (question (ask call lines))
                 (t (send call lines)))))))))

(defun punchlist-undo (&optional version by)
  "Undo your last change.
With a numeric prefix argument, undo the change that made this VERSION, after
a preview; BY says in the question who made it and when."
  (interactive "P")
  (if version
      (let ((number (prefix-numeric-value version)))
        (punchlist--undo-call (list :call number) (format "Undo the change that made version %d%s?" number (or by ""))
                              "this change has nothing to undo"))
    (punchlist--find-own-changes
     (lambda (which)
       (punchlist--undo-call which nil "you have nothing to undo here; for others' changes press l" "U")))))

(defun punchlist-redo ()
  "Redo your last undo."
  (interactive)
  (punchlist--find-own-changes
   (lambda (which) (punchlist--undo-call `(,@which :redo t) nil "you have nothing to redo here" "u"))))

(defun punchlist--visit (&rest places)
  "Go to the first of PLACES (PATH or PATH:LINE) that exists."
  (let* ((root (or (punchlist--list-root punchlist--list) default-directory))
         (target (seq-some (lambda (place)
                            (when (string-match "\\`\\(.*?\\)\\(?::\\([0-9]+\\)\\)?\\(?::[0-9]+\\)?\\'" place)
                              (let ((file (expand-file-name (match-string 1 place) root)) (line (match-string 2 place)))
                                (and (not (file-remote-p file)) (file-regular-p file) (cons file line)))))
                          places)))
    (unless target (user-error "No such file: %s" (punchlist--safe (string-join places ", "))))
    (find-file-other-window (car target))
    (when (cdr target) (punchlist--go-to-line (1- (string-to-number (cdr target)))))))

(defun punchlist-visit ()
  "Go to the place in code that the task at point names.
This is a link of kind path, or PATH:LINE in the title or description."
  (interactive)
  (let* ((row (punchlist--row-at-point)) (text (concat (plist-get row :title) " " (plist-get row :description))) (from 0) places)
    (dolist (link (plist-get row :links))
      (when (equal (plist-get link :kind) "path") (push (plist-get link :to) places)))
    (while (string-match punchlist--place text from)
      (push (match-string 0 text) places)
      (setq from (match-end 0)))
    (unless places (user-error "#%s names no place" (plist-get row :id)))
    (apply #'punchlist--visit (nreverse places))))

(defconst punchlist--keys
  '(("RET" . punchlist-details) ("v" . punchlist-visit) ("s" . punchlist-start) ("d" . punchlist-done) ("f" . punchlist-fail) ("p" . punchlist-pause)
    ("r" . punchlist-reopen) ("y" . punchlist-approve) ("n" . punchlist-reject) ("c" . punchlist-claim)
    ("R" . punchlist-release) ("a" . punchlist-add) ("e" . punchlist-edit)
    ("E" . punchlist-describe) ("m" . punchlist-note) ("b" . punchlist-blockers) ("x" . punchlist-delete)
    ("J" . punchlist-down) ("K" . punchlist-up) ("+" . punchlist-raise) ("-" . punchlist-lower) ("w" . punchlist-why)
    ("u" . punchlist-undo) ("U" . punchlist-redo) ("l" . punchlist-log) ("o" . punchlist-open) ("?" . punchlist-help))
  "Keys in a list, which are the letters of `punch ui'.")

(defun punchlist-help ()
  "Show the keys of a list."
  (interactive)
  (with-help-window "*punchlist keys*"
    (pcase-dolist (`(,key . ,command) punchlist--keys)
      (princ (format "%-4s %s\n" key (car (split-string (documentation command) "\n")))))
    (princ "\nAll keys of the buffer: C-h m\n")))

(defvar punchlist-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command) punchlist--keys) (define-key map (kbd key) command))
    map)
  "Keys in a list.")

(define-derived-mode punchlist-mode special-mode "Punchlist"
  "A task list that is kept up to date.

\\{punchlist-mode-map}"
  (setq truncate-lines t bidi-display-reordering nil)
  (setq-local revert-buffer-function (lambda (&rest _) (punchlist--draw))))

;;; Commands

(defun punchlist--show (name &optional root)
  "Show the list NAME, with places in its tasks relative to ROOT."
  (let ((list (punchlist--get-list name)))
    (when root (setf (punchlist--list-root list) root))
    (setq punchlist--last list)
    (with-current-buffer (get-buffer-create (format "*punchlist: %s*" name))
      (unless (eq punchlist--list list)
        (punchlist-mode)
        (let ((inhibit-read-only t)) (erase-buffer))
        (setq punchlist--list list punchlist--lines [])
        (punchlist--draw))
      (pop-to-buffer (current-buffer)))))

(defun punchlist-open ()
  "Choose one of all lists, and show it."
  (interactive)
  (punchlist--choose-list #'punchlist--show))

(defun punchlist--choose-list (done)
  "Let the user choose one of all lists, and call DONE with its name."
  (punchlist--when-connected
   (lambda ()
     (punchlist--request
      "conversation.list" '(:limit 1000)
      (lambda (err result)
        (if err (message "punchlist: %s" (plist-get err :message))
          (run-at-time 0 nil #'punchlist--choose (plist-get result :conversations) done)))))))

(defun punchlist--choose (all done)
  "Choose one of the lists ALL, and call DONE with its name."
  (let* ((running (lambda (task) (format "#%s %s" (plist-get task :id) (or (plist-get task :owner) ""))))
         (names (mapcar (lambda (card) (cons (plist-get card :conversation)
                                             (concat "  " (mapconcat running (plist-get card :running) ", "))))
                        all))
         (completion-extra-properties
          (list :annotation-function (lambda (name) (punchlist--safe (cdr (assoc name names))))))
         (name (completing-read "List: " (mapcar #'car names))))
    (unless (string-empty-p name) (funcall done name))))

(defun punchlist--resolve-project (done)
  "Call DONE with the name and root of this directory's list, or with nil."
  (let ((path (expand-file-name (directory-file-name default-directory))))
    (punchlist--when-connected
     (lambda ()
       (punchlist--request
        "conversation.resolve" (list :path path)
        (lambda (err result)
          (cond (err (message "punchlist: %s" (punchlist--safe (plist-get err :message))))
                ((and (plist-get result :conversation) (not (plist-get result :allowed)))
                 (message "punchlist: %s names the list %s, which was not made for this project; to allow it: punch init --trust"
                          (punchlist--safe (or (plist-get result :file) path)) (plist-get result :conversation)))
                (t (funcall done (plist-get result :conversation) (plist-get result :root))))))))))

;;;###autoload
(defun punchlist ()
  "Show the list of this directory's project, or choose one if it has none."
  (interactive)
  (punchlist--resolve-project (lambda (name root) (if name (punchlist--show name root) (punchlist-open)))))

;;;###autoload
(defun punchlist-add-here (title)
  "Add a task with TITLE and a link to this line to the project's list.
The default title is the region or the text of a TODO on the line."
  (interactive
   (list (punchlist--ask "New task: "
                         (if (use-region-p) (string-trim (car (split-string (buffer-substring (region-beginning) (region-end)) "\n" t)))
                           (save-excursion
                             (beginning-of-line)
                             (and (re-search-forward "TODO[ :]+\\(.+?\\)\\(?:\\*/\\)?$" (line-end-position) t) (match-string 1)))))))
  (let ((file (or buffer-file-name (user-error "This buffer has no file"))) (line (line-number-at-pos)))
    (punchlist--resolve-project
     (lambda (name root)
       (unless name (user-error "This directory has no list: create one with punch init"))
       (let ((place (format "%s:%d" (if (and root (file-in-directory-p file root)) (file-relative-name file root) file) line)))
         (punchlist--change (punchlist--get-list name) "task.add"
                            `(:title ,title :links [(:kind "path" :to ,place)])
                            (lambda (result) (message "punchlist: #%s in %s" (plist-get (plist-get result :task) :id) name))))))))

;; If the files aren't compiled, compile the functions called for each row.  This halves the time to draw 1,000 rows.
(unless (byte-code-function-p (symbol-function 'punchlist--draw))
  (mapc #'byte-compile '(punchlist--on-data punchlist--fold punchlist--precedes punchlist--build-tree punchlist--safe
                         punchlist--look punchlist--format-members punchlist--format-outcome
                         punchlist--format-line punchlist--insert punchlist--draw punchlist--draw-slice)))

(provide 'punchlist)
;;; punchlist.el ends here
