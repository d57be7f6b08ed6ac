;;; punchlist.el --- Task lists that AI agents share, live  -*- lexical-binding: t; -*-

;; Author: the authors of punchlist
;; Version: 1.0.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, outlines
;; URL: https://github.com/punchlist/punchlist

;;; Commentary:

;; `M-x punchlist' shows the list of the current directory's project, and keeps
;; it up to date: the daemon tells every change, nothing is polled.  `?' shows
;; the keys.  `M-x punchlist-add-here' makes a task of a TODO or of the region.
;; `punchlist-mode-line-mode' counts the open tasks in the mode line.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'punchlist-model)
(require 'punchlist-pages)

(defconst punchlist--claim-ms (* 2 60 60 1000))
(defconst punchlist--slice 200 "How many lines are drawn at most before Emacs does something else.")

(defface punchlist-away '((t :inherit shadow)) "The last picture, while the daemon is away."
  :group 'punchlist)
(defface punchlist-running '((t :inherit success)) "A task in progress."
  :group 'punchlist)
(defface punchlist-failed '((t :inherit error)) "A failed task."
  :group 'punchlist)
(defface punchlist-finished '((t :inherit shadow)) "A completed or paused task."
  :group 'punchlist)

;;; What is shown

(defconst punchlist--looks
  '(("pending" " " nil) ("in_progress" "/" punchlist-running) ("paused" "=" punchlist-finished)
    ("completed" "x" punchlist-finished) ("failed" "✗" punchlist-failed))
  "Status, its box as in the Markdown files that punch writes, and its face.")

(defconst punchlist--place "[[:alnum:]~][[:alnum:]._/~+@-]\\{0,254\\}:[0-9]+"
  "PATH:LINE, as titles name places.
The length is limited, since a long word is searched from each of its letters.")

(defvar-local punchlist--list nil "The list that this buffer shows.")
(defvar-local punchlist--lines [] "What stands in each line: (ID . DEPTH); of a long list a part at first.")
(defvar-local punchlist--places nil "The line of each task, counted from 0.")
(defvar-local punchlist--is-dimmed nil "Whether the last picture is shown.")
(defvar punchlist-rendered 0 "How many lines were drawn; tests count with it.")

(defun punchlist--gate (row)
  "What ROW, which is done, waits for at its gate."
  (let ((by (or (plist-get (plist-get row :gate) :by) "")) (check (or (plist-get (plist-get row :gate) :check) "")))
    (cond ((not (equal (plist-get row :waits_for) "yes")) (concat "the check " (punchlist--safe check)))
          ((string-empty-p by) "your yes")
          (t (concat (punchlist--safe by) "'s yes")))))

(defun punchlist--line (row depth)
  "The line of ROW at DEPTH, with its newline."
  (cl-incf punchlist-rendered)
  (pcase-let* ((`(,_ ,sign ,face) (assoc (plist-get row :status) punchlist--looks))
               (priority (plist-get row :priority)) (owner (plist-get row :owner))
               (blockers (plist-get row :open_blockers)) (reason (plist-get row :fail_reason))
               (text (concat (make-string (* 2 depth) ?\s)
                             (format "[%s] #%s " (or sign "?") (plist-get row :id))
                             (punchlist--safe (plist-get row :title))
                             (and priority (not (equal priority "normal")) (concat "  !" priority))
                             (and owner (not (string-empty-p owner)) (concat "  @" (punchlist--safe owner)))
                             (and blockers (concat "  <- #" (string-join blockers ",#")))
                             (and (plist-get row :waits_for) (concat "  waits for " (punchlist--gate row)))
                             (and reason (not (string-empty-p reason))
                                  (concat "  " (punchlist--safe (truncate-string-to-width reason 200)))))))
    (concat (propertize text 'face face 'punchlist-id (plist-get row :id)) (propertize "\n" 'punchlist-id (plist-get row :id)))))

(defun punchlist--insert (row depth)
  "Insert the line of ROW at DEPTH; places in its title become buttons."
  (let ((from (point)))
    (insert (punchlist--line row depth))
    (when (string-match-p punchlist--place (plist-get row :title))
      (save-excursion
        (goto-char from)
        (while (re-search-forward punchlist--place (line-end-position) t)
          (make-text-button (match-beginning 0) (match-end 0) 'follow-link t 'help-echo "Go to this place"
                            'action (lambda (button) (punchlist--visit (button-label button)))))))))

(defun punchlist--update (list)
  "Bring the buffers of LIST up to date."
  (dolist (buffer (buffer-list))
    (when (eq (buffer-local-value 'punchlist--list buffer) list)
      (with-current-buffer buffer (punchlist--draw)))))
(add-hook 'punchlist--list-functions #'punchlist--update)

(defun punchlist--draw ()
  "Draw the lines that came, went or moved, and those of changed tasks.
Of many lines a slice is drawn at once, and the next one a moment later."
  (let* ((list punchlist--list) (inhibit-read-only t) (gc-cons-threshold punchlist--gc-threshold)
         (rows (punchlist--list-rows list)) (drawn (make-hash-table :test 'equal))
         (here (punchlist--spot (point)))
         (windows (mapcar (lambda (window) (cons window (punchlist--spot (window-point window))))
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
    (setq header-line-format (punchlist--header))
    (unless (eq punchlist--is-dimmed (not punchlist--connected))
      (setq punchlist--is-dimmed (not punchlist--connected))
      (if punchlist--is-dimmed (face-remap-set-base 'default '(:inherit punchlist-away)) (face-remap-reset-base 'default)))))

(defun punchlist--spot (position)
  "The task at POSITION, and how far in its line that is."
  (save-excursion
    (goto-char position)
    (cons (get-text-property (point) 'punchlist-id) (current-column))))

(defun punchlist--go-to-spot (spot)
  "Go to SPOT, wherever its task stands now; to the first line if it is gone."
  (punchlist--go-to-line (or (and punchlist--places (gethash (car spot) punchlist--places)) 0))
  (move-to-column (cdr spot)))

(defun punchlist--draw-slice (drawn)
  "Replace the lines between those that stay at both ends, and note in DRAWN whose.
What is more than a slice is left to the next drawing."
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
    (unless (eq punchlist--lines new) (run-at-time 0 nil #'punchlist--draw-on (current-buffer)))))

(defun punchlist--draw-on (buffer)
  "Draw the next slice of BUFFER."
  (when (buffer-live-p buffer) (with-current-buffer buffer (punchlist--draw))))

(defun punchlist--go-to-line (at)
  "Go to the line AT, counted from 0."
  (goto-char (point-min))
  (forward-line at))

(defun punchlist--header ()
  "What stands in the first line of the window."
  (let* ((list punchlist--list) (count (punchlist--open-count list)) (others (punchlist--others list)))
    (replace-regexp-in-string
     "%" "%%"
     (concat (format "%s  %d of %d open" (punchlist--list-name list) (car count) (cdr count))
             (unless (string-empty-p others) (concat "  also here: " others))
             (unless punchlist--connected
               (format "  away%s: %s" (if (punchlist--list-is-ready list) ", this is the last picture" "") punchlist--reason))
             (when (punchlist--list-trouble list) (concat "  " (punchlist--safe (punchlist--list-trouble list))))
             (when (punchlist--list-damaged list) "  the log is damaged: the list is not whole")))))

(defvar punchlist--last nil "The list that was opened last.")

(defun punchlist--mode-line ()
  "How many tasks of the list opened last are open."
  (if (not punchlist--last) ""
    (let ((count (punchlist--open-count punchlist--last)))
      (format " %s %d/%d%s" (punchlist--list-name punchlist--last) (car count) (cdr count)
              (if punchlist--connected "" " (away)")))))

;;;###autoload
(define-minor-mode punchlist-mode-line-mode
  "Show in the mode line how many tasks of the list are open."
  :global t :group 'punchlist
  (setq global-mode-string (delete '(:eval (punchlist--mode-line)) (or global-mode-string '(""))))
  (when punchlist-mode-line-mode
    (setq global-mode-string (append global-mode-string '((:eval (punchlist--mode-line)))))))

;;; What a person can do

(defun punchlist--row ()
  "The row at point."
  (let ((id (get-text-property (point) 'punchlist-id)))
    (or (and punchlist--list id (gethash id (punchlist--list-rows punchlist--list)))
        (user-error "No task here: go to the line of one"))))

(defun punchlist--ask (prompt &optional initial)
  "Ask PROMPT, with INITIAL to begin with; the answer, which is not blank."
  (let ((answer (read-string prompt initial)))
    (if (string-blank-p answer) (user-error "Nothing was changed") answer)))

(defun punchlist--do (method params &optional done)
  "Change the task at point by METHOD with PARAMS; DONE takes the result."
  (punchlist--change punchlist--list method `(:task ,(plist-get (punchlist--row) :id) ,@params) done))

(defun punchlist--set-status (status &rest members)
  "Take the task at point to STATUS, with further MEMBERS."
  (let* ((row (punchlist--row)) (is-ours (equal (plist-get row :owner) punchlist-owner)))
    (when (equal (plist-get row :waits_for) "yes")
      (user-error "#%s waits for %s: Y approves it, N rejects it with a reason" (plist-get row :id) (punchlist--gate row)))
    (punchlist--do "task.set_status"
                   `(:status ,status ,@members
                             ,@(and is-ours (plist-get row :fence) (list :fence (plist-get row :fence)))))))

(defun punchlist-start () "Start the task at point." (interactive) (punchlist--set-status "in_progress"))
(defun punchlist-pause () "Lay the task at point aside." (interactive) (punchlist--set-status "paused"))
(defun punchlist-reopen () "Make the task at point pending again." (interactive) (punchlist--set-status "pending"))
(defun punchlist-done (result)
  "Complete the task at point; with a prefix argument ask for its RESULT."
  (interactive (list (and current-prefix-arg (punchlist--ask "Result: "))))
  (apply #'punchlist--set-status "completed" (and result (list :result_summary result))))
(defun punchlist-fail (reason)
  "Give the task at point up, for a REASON."
  (interactive (progn (punchlist--row) (list (punchlist--ask "Why did it fail? "))))
  (punchlist--set-status "failed" :fail_reason reason))
(defun punchlist--answer (accept &rest members)
  "Answer the task at point, which waits for a yes: ACCEPT, with further MEMBERS."
  (let ((row (punchlist--row)))
    (unless (equal (plist-get row :waits_for) "yes") (user-error "#%s does not wait for a yes" (plist-get row :id)))
    (punchlist--do "task.approve" `(:accept ,accept :version ,(plist-get row :version) ,@members))))
(defun punchlist-approve () "Say yes to the task at point: it counts as done." (interactive) (punchlist--answer t))
(defun punchlist-reject (reason)
  "Say no to the task at point, for a REASON: it is open again."
  (interactive (progn (punchlist--row) (list (punchlist--ask "Why not? "))))
  (punchlist--answer :false :text reason))
(defun punchlist-claim ()
  "Claim the task at point for us."
  (interactive)
  (let ((id (plist-get (punchlist--row) :id)))
    (punchlist--do "task.claim" `(:owner ,punchlist-owner :lease_ms ,punchlist--claim-ms :keep t)
                   (lambda (result) (unless (plist-get result :task) (message "punchlist: #%s can't be claimed now" id))))))
(defun punchlist-release ()
  "Give the claim of the task at point back."
  (interactive)
  (punchlist--do "task.release" `(:owner ,punchlist-owner)))
(defun punchlist-add (title)
  "Add a task of TITLE behind the one at point."
  (interactive (list (punchlist--ask "New task: ")))
  (let ((id (get-text-property (point) 'punchlist-id)))
    (punchlist--change punchlist--list "task.add" `(:title ,title ,@(and id (list :after id))))))
(defun punchlist-edit (title)
  "Give the task at point another TITLE."
  (interactive (list (punchlist--ask "Title: " (punchlist--safe (plist-get (punchlist--row) :title)))))
  (unless (equal title (punchlist--safe (plist-get (punchlist--row) :title)))
    (punchlist--do "task.edit" (list :title title))))
(defun punchlist-note (text)
  "Write a note, TEXT, on the task at point."
  (interactive (progn (punchlist--row) (list (punchlist--ask "Note: "))))
  (punchlist--do "task.note" (list :text text)))
(defun punchlist-blockers (ids)
  "Let the task at point wait for the tasks of these IDS alone."
  (interactive (list (read-string "Waits for (#1 #2): " (string-join (plist-get (punchlist--row) :blocked_by) " "))))
  (let ((new (split-string ids "[^0-9]+" t)) (old (plist-get (punchlist--row) :blocked_by)))
    (punchlist--do "task.edit" `(:add_blocked_by ,(vconcat (seq-difference new old))
                                                 :remove_blocked_by ,(vconcat (seq-difference old new))))))
(defun punchlist-delete ()
  "Delete the task at point, after a question."
  (interactive)
  (let ((row (punchlist--row)))
    (when (yes-or-no-p (format "Delete #%s %s? " (plist-get row :id) (punchlist--safe (plist-get row :title))))
      (punchlist--do "task.delete" nil))))

(defun punchlist--move (step)
  "Move the task at point by STEP among its brothers and sisters."
  (let* ((row (punchlist--row)) (rows (punchlist--list-rows punchlist--list))
         (group (seq-filter (lambda (id) (equal (plist-get (gethash id rows) :parent) (plist-get row :parent)))
                            (punchlist--list-order punchlist--list)))
         (at (+ step (seq-position group (plist-get row :id)))))
    (when (and (>= at 0) (nth at group))
      (punchlist--do "task.move" (list (if (< step 0) :before :after) (nth at group))))))
(defun punchlist-up () "Move the task at point up." (interactive) (punchlist--move -1))
(defun punchlist-down () "Move the task at point down." (interactive) (punchlist--move 1))

(defun punchlist--reprioritize (step)
  "Change the priority of the task at point by STEP."
  (let* ((priorities ["low" "normal" "high" "urgent"])
         (at (+ step (seq-position priorities (plist-get (punchlist--row) :priority)))))
    (when (< -1 at 4) (punchlist--do "task.edit" (list :priority (aref priorities at))))))
(defun punchlist-raise () "Make the task at point more urgent." (interactive) (punchlist--reprioritize 1))
(defun punchlist-lower () "Make the task at point less urgent." (interactive) (punchlist--reprioritize -1))

(defun punchlist--read (method params done)
  "Ask METHOD with PARAMS about the list of this buffer.
DONE takes the result, an error is told."
  (punchlist--request method `(:conversation ,(punchlist--list-name punchlist--list) ,@params)
                      (lambda (err result)
                        (if err (message "punchlist: %s" (punchlist--safe (plist-get err :message)))
                          (funcall done result)))))

(defun punchlist--kind (reason)
  "Return the kind of REASON, with the owner that a task is reserved for."
  (let ((kind (plist-get reason :kind)))
    (if (equal kind "reserved") (concat "reserved for " (punchlist--safe (plist-get reason :owner))) kind)))

(defun punchlist-why ()
  "Say why the task at point can't start."
  (interactive)
  (let ((id (plist-get (punchlist--row) :id)))
    (punchlist--read "task.explain" (list :task id)
                     (lambda (result)
                       (let ((reasons (mapcar (lambda (one) (format "%s: #%s %s" (punchlist--kind one) (plist-get one :by)
                                                                    (punchlist--safe (plist-get one :title))))
                                              (plist-get result :reasons))))
                         (message "punchlist: %s" (if reasons (string-join reasons "; ") (format "nothing holds #%s" id))))))))

(defun punchlist--chat-actor (thread)
  "Return the actor of a chat, whose list is THREAD."
  (let ((name (if (string-match "chat-" thread) (substring thread (match-end 0)) thread)))
    (concat "chat/" (cond ((and (= (length name) 36) (eq (aref name 8) ?-)) (substring name 0 8))
                          (t (substring name 0 (min 123 (length name))))))))

(defun punchlist--mine (done)
  "Call DONE with parameters of `list.undo': our own work, here and in chats."
  (let ((name (punchlist--list-name punchlist--list)) (list punchlist--list))
    (punchlist--request
     "conversation.list" '(:kind "chat" :limit 200)
     (lambda (err result)
       (if err (message "punchlist: %s" (punchlist--safe (plist-get err :message)))
         (let ((chats (seq-filter (lambda (one) (and (equal (plist-get (plist-get one :metadata) :list) name)
                                                     (string-empty-p (or (plist-get one :user) ""))))
                                  (plist-get result :conversations))))
           (with-temp-buffer
             (setq punchlist--list list)
             (funcall done `(:of ,punchlist-actor :count 1
                                 :also ,(vconcat (mapcar (lambda (one) (punchlist--chat-actor (plist-get one :conversation)))
                                                         chats)))))))))))

(defun punchlist--take-back (which question nothing)
  "Ask QUESTION with a preview of undoing WHICH, then undo the call it named.
Other changes of the list don't matter.  After a refusal the question
comes again and says why.  Say NOTHING where there is no such change."
  (let ((list punchlist--list) (how '(:whole t :claims t)))
    (cl-labels
        ((ask (call lines)
           (run-at-time 0 nil (lambda ()
                                ;; Out of a timer Emacs would ask in a menu, where RET means yes.
                                (when (let ((use-dialog-box nil))
                                        (yes-or-no-p (concat question "\n  " (string-join lines "\n  ") "\n")))
                                  (punchlist--change
                                   list "list.undo" `(,@how :call ,call) nil
                                   (lambda (err)
                                     (ask call (append lines (list (punchlist--safe (plist-get err :message))))))))))))
      (punchlist--read
       "list.undo" `(,@how ,@which :preview t)
       (lambda (result)
         (let ((lines (mapcar #'punchlist--safe (plist-get result :undone))))
           (if lines (ask (car (plist-get result :calls)) lines) (message "punchlist: %s" nothing))))))))

(defun punchlist-undo (&optional version)
  "Undo our own last change, after a look at it.
With a numeric prefix undo the change that made this VERSION."
  (interactive "P")
  (if version
      (let ((number (prefix-numeric-value version)))
        (punchlist--take-back (list :call number) (format "Undo the change that made version %d?" number)
                              "there is nothing to undo in this change"))
    (punchlist--mine (lambda (which)
                       (punchlist--take-back which "Undo your last change?"
                                             "you have nothing to undo here; l shows the changes of others")))))

(defun punchlist-redo ()
  "Redo what we undid last, after a look at it."
  (interactive)
  (punchlist--mine (lambda (which)
                     (punchlist--take-back `(,@which :redo t) "Redo what you undid?" "you have nothing to redo here"))))

(defun punchlist--visit (&rest places)
  "Go to the first of these PLACES that is there: PATH, or PATH:LINE."
  (let* ((root (or (punchlist--list-root punchlist--list) default-directory))
         (found (seq-some (lambda (place)
                            (when (string-match "\\`\\(.*?\\)\\(?::\\([0-9]+\\)\\)?\\(?::[0-9]+\\)?\\'" place)
                              (let ((file (expand-file-name (match-string 1 place) root)) (line (match-string 2 place)))
                                (and (not (file-remote-p file)) (file-regular-p file) (cons file line)))))
                          places)))
    (unless found (user-error "No file is there of: %s" (punchlist--safe (string-join places ", "))))
    (find-file-other-window (car found))
    (when (cdr found) (punchlist--go-to-line (1- (string-to-number (cdr found)))))))

(defun punchlist-visit ()
  "Go to the code that the task at point names.
That is its link of kind path, or PATH:LINE in its title or description."
  (interactive)
  (let* ((row (punchlist--row)) (text (concat (plist-get row :title) " " (plist-get row :description))) (from 0) places)
    (dolist (link (plist-get row :links))
      (when (equal (plist-get link :kind) "path") (push (plist-get link :to) places)))
    (while (string-match punchlist--place text from)
      (push (match-string 0 text) places)
      (setq from (match-end 0)))
    (unless places (user-error "#%s names no place" (plist-get row :id)))
    (apply #'punchlist--visit (nreverse places))))

(defconst punchlist--keys
  '(("RET" . punchlist-visit) ("s" . punchlist-start) ("d" . punchlist-done) ("f" . punchlist-fail) ("p" . punchlist-pause)
    ("r" . punchlist-reopen) ("Y" . punchlist-approve) ("N" . punchlist-reject) ("c" . punchlist-claim) ("R" . punchlist-release) ("a" . punchlist-add) ("e" . punchlist-edit)
    ("E" . punchlist-describe) ("m" . punchlist-note) ("b" . punchlist-blockers) ("x" . punchlist-delete)
    ("J" . punchlist-down) ("K" . punchlist-up) ("+" . punchlist-raise) ("-" . punchlist-lower) ("w" . punchlist-why)
    ("u" . punchlist-undo) ("U" . punchlist-redo) ("l" . punchlist-log) ("o" . punchlist-open) ("?" . describe-mode))
  "Keys of a list: the letters of `punch ui'.")

(defvar punchlist-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command) punchlist--keys) (define-key map (kbd key) command))
    map)
  "Keys of a list.")

(define-derived-mode punchlist-mode special-mode "Punchlist"
  "A task list that is kept up to date.

\\{punchlist-mode-map}"
  (setq truncate-lines t bidi-display-reordering nil)
  (setq-local revert-buffer-function (lambda (&rest _) (punchlist--draw))))

;;; Ways in

(defun punchlist--show (name &optional root)
  "Show the list of this NAME; places in its tasks are relative to ROOT."
  (let ((list (punchlist--list-of name)))
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
  (punchlist--when-connected
   (lambda ()
     (punchlist--request
      "conversation.list" '(:limit 1000)
      (lambda (err result)
        (if err (message "punchlist: %s" (plist-get err :message))
          (run-at-time 0 nil #'punchlist--choose (plist-get result :conversations))))))))

(defun punchlist--choose (all)
  "Choose one of the lists ALL, and show it."
  (let* ((running (lambda (task) (format "#%s %s" (plist-get task :id) (or (plist-get task :owner) ""))))
         (said (mapcar (lambda (one) (cons (plist-get one :conversation)
                                           (concat "  " (mapconcat running (plist-get one :running) ", "))))
                       all))
         (completion-extra-properties
          (list :annotation-function (lambda (name) (punchlist--safe (cdr (assoc name said))))))
         (name (completing-read "List: " (mapcar #'car said))))
    (unless (string-empty-p name) (punchlist--show name))))

(defun punchlist--of-project (done)
  "Call DONE with name and root of the list of this directory, or with nil."
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
  "Show the list of this directory's project; where it means none, choose one."
  (interactive)
  (punchlist--of-project (lambda (name root) (if name (punchlist--show name root) (punchlist-open)))))

;;;###autoload
(defun punchlist-add-here (title)
  "Make a task of TITLE, with a link to this line, in the project's list.
The region or a TODO on the line gives the title to begin with."
  (interactive
   (list (punchlist--ask "New task: "
                         (if (use-region-p) (string-trim (car (split-string (buffer-substring (region-beginning) (region-end)) "\n" t)))
                           (save-excursion
                             (beginning-of-line)
                             (and (re-search-forward "TODO[ :]+\\(.+?\\)\\(?:\\*/\\)?$" (line-end-position) t) (match-string 1)))))))
  (let ((file (or buffer-file-name (user-error "This buffer has no file"))) (line (line-number-at-pos)))
    (punchlist--of-project
     (lambda (name root)
       (unless name (user-error "This directory means no list: punch init makes it one"))
       (let ((place (format "%s:%d" (if (and root (file-in-directory-p file root)) (file-relative-name file root) file) line)))
         (punchlist--change (punchlist--list-of name) "task.add"
                            `(:title ,title :links [(:kind "path" :to ,place)])
                            (lambda (result) (message "punchlist: #%s in %s" (plist-get (plist-get result :task) :id) name))))))))

;; Without a compiled file, what each row passes through is compiled here: drawing 1,000 then takes half the time.
(unless (byte-code-function-p (symbol-function 'punchlist--draw))
  (mapc #'byte-compile '(punchlist--received punchlist--fold punchlist--before punchlist--tree punchlist--safe
                         punchlist--line punchlist--insert punchlist--draw punchlist--draw-slice)))

(provide 'punchlist)
;;; punchlist.el ends here
