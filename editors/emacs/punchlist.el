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
(require 'json)
(require 'seq)
(require 'subr-x)

(defgroup punchlist nil "Task lists that AI agents share." :group 'tools)

(defcustom punchlist-actor "emacs" "Who the history says made a change." :type 'string)
(defcustom punchlist-owner (concat "emacs/" (user-login-name)) "Whose claims are ours." :type 'string)
(defcustom punchlist-autostart t "Whether a daemon is started where none runs." :type 'boolean)
(defcustom punchlist-notify 'mine
  "What is told of what happens elsewhere: failed tasks and the end of a list.
With `mine' of our tasks alone, with `all' of everybody's."
  :type '(choice (const mine) (const all) (const :tag "nothing" nil)))

(defface punchlist-away '((t :inherit shadow)) "The last picture, while the daemon is away.")
(defface punchlist-running '((t :inherit success)) "A task in progress.")
(defface punchlist-failed '((t :inherit error)) "A failed task.")
(defface punchlist-finished '((t :inherit shadow)) "A completed or paused task.")

;;; The connection

(cl-defstruct (punchlist--list (:constructor punchlist--new-list (name)))
  name subscription epoch seq version counts root trouble damaged is-ready changed is-moved coming
  (rows (make-hash-table :test 'equal)) order)

(defconst punchlist--first-pause 0.05)
(defconst punchlist--longest-pause 2.0)
(defconst punchlist--claim-ms (* 2 60 60 1000))

(defvar punchlist--process nil "The connection, or nil.")
(defvar punchlist--connected nil "Whether the daemon has answered on this connection.")
(defvar punchlist--reason "not connected yet" "Why there is no connection.")
(defvar punchlist--wanted nil "Whether to connect again.")
(defvar punchlist--timer nil)
(defvar punchlist--pause punchlist--first-pause)
(defvar punchlist--started-at 0 "When a daemon was started last, in seconds.")
(defvar punchlist--unread nil "The pieces of a message that is not whole, the newest first.")
(defvar punchlist--next-id 0)
(defvar punchlist--pending nil "Requests without an answer, the newest first: (ID TEXT KEYED DONE).")
(defvar punchlist--when-connected nil "What to call once the daemon answers.")
(defvar punchlist--lists (make-hash-table :test 'equal) "The lists that are followed, by name.")

(defun punchlist--socket ()
  "Where the daemon listens, by the rules of docs/protocol.md."
  (let ((own (getenv "PUNCHLIST_SOCKET")) (runtime (getenv "XDG_RUNTIME_DIR"))
        (run (format "/run/user/%d" (user-uid))) (data (getenv "PUNCHLIST_DATA_DIR"))
        (xdg (getenv "XDG_DATA_HOME")))
    (cond ((and own (not (string-empty-p own))) own)
          ((and runtime (string-prefix-p "/" runtime)) (concat runtime "/punchlist/daemon.sock"))
          ((eql (file-attribute-user-id (or (file-attributes run) '(nil nil nil))) (user-uid))
           (concat run "/punchlist/daemon.sock"))
          ((and data (not (string-empty-p data))) (concat data "/run/daemon.sock"))
          ((and xdg (string-prefix-p "/" xdg)) (concat xdg "/punchlist/run/daemon.sock"))
          (t (expand-file-name "~/.local/share/punchlist/run/daemon.sock")))))

(defun punchlist--start-daemon ()
  "Start a daemon, unless that is forbidden or was tried a moment ago."
  (when (and punchlist-autostart (not (equal (getenv "PUNCHLIST_AUTOSTART") "0")) (executable-find "punch")
             (> (- (float-time) punchlist--started-at) 10))
    (setq punchlist--started-at (float-time))
    (make-process :name "punch" :command '("punch" "daemon" "status") :noquery t :connection-type 'pipe)))

(defun punchlist--connect ()
  "Connect, unless there is a connection; try again later where that fails."
  (when (and punchlist--wanted (not punchlist--process))
    (let* ((path (punchlist--socket)) (found (file-attributes path)))
      (cond ((not found)
             (punchlist--start-daemon)
             (punchlist--lost (format "no daemon listens on %s" path)))
            ((not (memql (file-attribute-user-id found) (list (user-uid) 0)))
             (punchlist--lost (format "%s belongs to another user" path)))
            (t (condition-case err
                   (progn
                     (setq punchlist--unread nil
                           punchlist--process
                           (make-network-process
                            :name "punchlist" :family 'local :service path :coding 'no-conversion :noquery t
                            :filter #'punchlist--received :sentinel #'punchlist--ended))
                     (punchlist--greet))
                 (file-error
                  (punchlist--start-daemon)
                  (punchlist--lost (format "no daemon listens on %s (%s)" path (error-message-string err))))))))))

(defun punchlist--greet ()
  "Say who we are; then follow the lists and repeat what was not answered."
  (punchlist--send
   "daemon.hello" `(:client (:name ,punchlist-actor :version "1"))
   (lambda (err _)
     (unless (equal (plist-get err :kind) "connection")
       (setq punchlist--connected t punchlist--reason nil punchlist--pause punchlist--first-pause)
       (dolist (request (reverse punchlist--pending))
         (when (nth 2 request) (process-send-string punchlist--process (nth 1 request))))
       (maphash (lambda (_ list) (punchlist--subscribe list)) punchlist--lists)
       (let ((waiting (nreverse punchlist--when-connected)))
         (setq punchlist--when-connected nil)
         (mapc #'funcall waiting))))))

(defun punchlist--ended (process _event)
  "The connection PROCESS is over."
  (when (eq process punchlist--process) (punchlist--lost "the daemon closed the connection")))

(defun punchlist--lost (reason)
  "Note that there is no connection, for REASON.
Reads fail, keyed changes wait for the next one."
  (let ((process punchlist--process) (pending punchlist--pending))
    (setq punchlist--process nil punchlist--connected nil punchlist--reason reason
          punchlist--pending (seq-filter (lambda (request) (nth 2 request)) pending))
    (when process (delete-process process))
    (dolist (request (reverse pending))
      (unless (nth 2 request) (funcall (nth 3 request) (list :kind "connection" :message reason) nil)))
    (maphash (lambda (_ list) (setf (punchlist--list-subscription list) nil) (punchlist--tell list)) punchlist--lists)
    (when punchlist--timer (cancel-timer punchlist--timer))
    (setq punchlist--timer (and punchlist--wanted (run-at-time punchlist--pause nil #'punchlist--connect))
          punchlist--pause (min punchlist--longest-pause (* 2 punchlist--pause)))))

(defun punchlist--open ()
  "Connect, and stay connected from now on."
  (setq punchlist--wanted t)
  (punchlist--connect))

(defun punchlist-close ()
  "Hang up, and forget all lists."
  (interactive)
  (setq punchlist--wanted nil punchlist--pending nil)
  (clrhash punchlist--lists)
  (punchlist--lost "closed"))

(defun punchlist--received (process bytes)
  "Take what PROCESS has sent: BYTES, in which messages end with a newline."
  (let ((from 0) stop messages)
    (while (setq stop (string-search "\n" bytes from))
      (push (substring bytes from stop) punchlist--unread)
      (push (apply #'concat (nreverse punchlist--unread)) messages)
      (setq punchlist--unread nil from (1+ stop)))
    (push (substring bytes from) punchlist--unread)
    (dolist (text (nreverse messages))
      (when (eq process punchlist--process)
        (punchlist--take (punchlist--parse (decode-coding-string text 'utf-8)))))))

(defun punchlist--parse (text)
  "The value of the JSON TEXT."
  (condition-case nil
      (json-parse-string text :object-type 'plist :array-type 'list :null-object nil :false-object nil)
    (json-parse-error ; the quick parser of Emacs 28 takes no NUL, which a title may hold
     (let ((json-object-type 'plist) (json-array-type 'list) (json-null nil) (json-false nil))
       (json-read-from-string text)))))

(defun punchlist--take (message)
  "Take a MESSAGE of the daemon: an answer, or a push."
  (if-let ((method (plist-get message :method)))
      (punchlist--pushed method (plist-get message :params))
    (when-let ((request (assq (plist-get message :id) punchlist--pending)))
      (setq punchlist--pending (delq request punchlist--pending))
      (if-let ((err (plist-get message :error)))
          (funcall (nth 3 request) (append (plist-get err :data) (list :message (plist-get err :message))) nil)
        (funcall (nth 3 request) nil (plist-get message :result))))))

(defun punchlist--send (method params done)
  "Send a request for METHOD with PARAMS now; DONE takes the error and the result."
  (let* ((id (cl-incf punchlist--next-id))
         (message `(:jsonrpc "2.0" :id ,id :method ,method :params ,params))
         (text (concat (encode-coding-string (json-serialize message) 'utf-8) "\n")))
    (push (list id text (plist-get params :key) done) punchlist--pending)
    (process-send-string punchlist--process text)))

(defun punchlist--request (method params done)
  "Call METHOD with PARAMS; DONE takes the error and the result, later."
  (if punchlist--connected
      (punchlist--send method params done)
    (run-at-time 0 nil done (list :kind "connection" :message punchlist--reason) nil)))

(defun punchlist--change (list method params &optional done)
  "Change LIST by METHOD with PARAMS; DONE takes the result, and an error is told."
  (if (not punchlist--connected)
      (message "punchlist: the daemon is away; nothing was changed")
    (let ((key (format "emacs-%d-%x-%x" (emacs-pid) (truncate (* 1e6 (float-time))) (random (expt 2 30)))))
      (punchlist--request
       method `(:conversation ,(punchlist--list-name list) :key ,key ,@params)
       (lambda (err result)
         (if err
             (message "punchlist: %s" (punchlist--safe (or (plist-get err :message) (plist-get err :kind))))
           (when done (funcall done result))))))))

;;; A list, kept by the daemon's pushes

(defun punchlist--list-of (name)
  "The list of this NAME, followed from now on."
  (or (gethash name punchlist--lists)
      (let ((list (puthash name (punchlist--new-list name) punchlist--lists)))
        (punchlist--open)
        (when punchlist--connected (punchlist--subscribe list))
        list)))

(defun punchlist--subscribe (list)
  "Follow LIST from where we are."
  (setf (punchlist--list-coming list) nil)
  (let ((seq (punchlist--list-seq list)))
    (punchlist--request
     "event.subscribe"
     `(:conversation ,(punchlist--list-name list) :view "rows"
                     ,@(and seq `(:after ,seq :epoch ,(punchlist--list-epoch list))))
     (lambda (err result)
       (cond ((not err)
              (setf (punchlist--list-subscription list) (plist-get result :subscription)
                    (punchlist--list-epoch list) (plist-get result :epoch)
                    (punchlist--list-trouble list) nil))
             ((member (plist-get err :kind) '("wrong_epoch" "gap"))
              (setf (punchlist--list-seq list) nil)
              (punchlist--subscribe list))
             ((not (equal (plist-get err :kind) "connection"))
              (setf (punchlist--list-trouble list) (plist-get err :message))
              (punchlist--tell list)))))))

(defun punchlist--pushed (method params)
  "Take the notification METHOD with PARAMS."
  (when-let ((list (seq-find (lambda (each) (equal (punchlist--list-subscription each) (plist-get params :subscription)))
                             (hash-table-values punchlist--lists))))
    (pcase method
      ("rows" (punchlist--fold list params))
      ("end" (setf (punchlist--list-subscription list) nil (punchlist--list-seq list) nil
                   (punchlist--list-trouble list) (plist-get (plist-get params :error) :message))
       (punchlist--tell list)
       (run-at-time 1 nil (lambda () (when (and punchlist--connected (not (punchlist--list-subscription list)))
                                       (punchlist--subscribe list))))))))

(defun punchlist--fold (list push)
  "Take PUSH, the news of LIST."
  (when (plist-get push :reset) (setf (punchlist--list-coming list) (make-hash-table :test 'equal)))
  (let* ((rows (or (punchlist--list-coming list) (punchlist--list-rows list)))
         (is-new (and (punchlist--list-coming list) t)) (told nil))
    (dolist (id (plist-get push :gone))
      (when (gethash id rows) (setf (punchlist--list-is-moved list) t))
      (remhash id rows))
    (dolist (row (plist-get push :rows))
      (let* ((id (plist-get row :id)) (known (gethash id rows)))
        (unless (and known (not is-new) (equal (plist-get known :rank) (plist-get row :rank))
                     (equal (plist-get known :parent) (plist-get row :parent)))
          (setf (punchlist--list-is-moved list) t))
        (when (and known (not is-new)) (push (cons known row) told))
        (puthash id row rows)
        (push id (punchlist--list-changed list))))
    (unless (plist-get push :more)
      (when is-new (setf (punchlist--list-is-moved list) t))
      (setf (punchlist--list-rows list) rows (punchlist--list-coming list) nil
            (punchlist--list-counts list) (plist-get push :counts)
            (punchlist--list-version list) (plist-get push :version)
            (punchlist--list-seq list) (plist-get push :seq)
            (punchlist--list-damaged list) (plist-get push :damaged))
      (when (punchlist--list-is-moved list)
        (setf (punchlist--list-order list)
              (mapcar (lambda (row) (plist-get row :id)) (sort (hash-table-values rows) #'punchlist--before))))
      (setf (punchlist--list-is-ready list) t)
      (punchlist--tell list)
      (setf (punchlist--list-changed list) nil (punchlist--list-is-moved list) nil)
      (punchlist--announce list told))))

(defun punchlist--before (a b)
  "Whether row A stands before row B."
  (let ((rank (plist-get a :rank)) (other (plist-get b :rank)))
    (if (equal rank other) (string< (plist-get a :id) (plist-get b :id)) (string< rank other))))

(defun punchlist--announce (list told)
  "Tell which tasks of LIST have failed, and that all is done.
TOLD are pairs of rows, before and after."
  (when punchlist-notify
    (pcase-dolist (`(,was . ,row) told)
      (when (and (equal (plist-get row :status) "failed") (not (equal (plist-get was :status) "failed"))
                 (or (eq punchlist-notify 'all) (equal (plist-get row :owner) punchlist-owner)))
        (message "punchlist: #%s failed: %s (%s)" (plist-get row :id) (punchlist--safe (plist-get row :title))
                 (punchlist--safe (or (plist-get row :fail_reason) ""))))))
  (when (and (eq punchlist-notify 'all) told (zerop (car (punchlist--open-count list)))
             (seq-some (lambda (pair) (not (member (plist-get (car pair) :status) '("completed" "failed")))) told))
    (message "punchlist: all tasks of %s are done" (punchlist--list-name list))))

(defun punchlist--open-count (list)
  "How many tasks of LIST are unfinished, and how many there are, as a pair."
  (let* ((counts (punchlist--list-counts list))
         (open (cl-loop for status in '(:pending :in_progress :paused) sum (or (plist-get counts status) 0))))
    (cons open (+ open (or (plist-get counts :completed) 0) (or (plist-get counts :failed) 0)))))

(defun punchlist--tree (list)
  "The lines of LIST: a vector of (ID . DEPTH), children below their parent."
  (let ((children (make-hash-table :test 'equal)) (rows (punchlist--list-rows list)) lines)
    (dolist (id (reverse (punchlist--list-order list)))
      (let ((parent (plist-get (gethash id rows) :parent)))
        (push id (gethash (if (and parent (gethash parent rows)) parent "") children))))
    (let ((stack (mapcar (lambda (id) (cons id 0)) (gethash "" children))))
      (while stack
        (pcase-let ((`(,id . ,depth) (pop stack)))
          (push (cons id depth) lines)
          (setq stack (append (mapcar (lambda (child) (cons child (1+ depth))) (gethash id children)) stack)))))
    (vconcat (nreverse lines))))

;;; What is shown

(defconst punchlist--unsafe
  (concat "[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u115f\u1160\u17b4\u17b5"
          "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0d\ufeff"
          "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
          "\U000e0000-\U0010ffff]")
  "Characters that steer a terminal, turn the direction of text or show nothing.")

(defun punchlist--safe (text)
  "TEXT with everything that could steer or deceive made a visible escape."
  (if (not (string-match-p punchlist--unsafe text)) text
    (replace-regexp-in-string
     punchlist--unsafe
     (lambda (one) (let ((code (aref one 0)))
                     (format (cond ((< code 256) "\\x%02x") ((< code 65536) "\\u%04x") (t "\\U%08x")) code)))
     text t t)))

(defconst punchlist--looks
  '(("pending" " " nil) ("in_progress" "~" punchlist-running) ("paused" "-" punchlist-finished)
    ("completed" "x" punchlist-finished) ("failed" "!" punchlist-failed))
  "Status, its sign and its face.")

(defvar-local punchlist--list nil "The list that this buffer shows.")
(defvar-local punchlist--lines [] "What stands in each line: (ID . DEPTH).")
(defvar-local punchlist--places nil "The line of each task, counted from 0.")
(defvar-local punchlist--is-dimmed nil "Whether the last picture is shown.")
(defvar punchlist-rendered 0 "How many lines were drawn; tests count with it.")

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
                             (and reason (not (string-empty-p reason))
                                  (concat "  " (punchlist--safe (truncate-string-to-width reason 200)))))))
    (concat (propertize text 'face face 'punchlist-id (plist-get row :id)) (propertize "\n" 'punchlist-id (plist-get row :id)))))

(defun punchlist--tell (list)
  "Bring the buffers of LIST up to date."
  (dolist (buffer (buffer-list))
    (when (eq (buffer-local-value 'punchlist--list buffer) list)
      (with-current-buffer buffer (punchlist--draw))))
  (force-mode-line-update t))

(defun punchlist--draw ()
  "Draw the lines that came, went or moved, and those of changed tasks."
  (let* ((list punchlist--list) (inhibit-read-only t) (rows (punchlist--list-rows list))
         (here (get-text-property (point) 'punchlist-id)) (column (current-column))
         (drawn (make-hash-table :test 'equal)))
    (when (punchlist--list-is-moved list)
      (let* ((old punchlist--lines) (new (punchlist--tree list)) (most (min (length old) (length new)))
             (first 0) (last 0))
        (while (and (< first most) (equal (aref old first) (aref new first))) (cl-incf first))
        (while (and (< last (- most first))
                    (equal (aref old (- (length old) last 1)) (aref new (- (length new) last 1))))
          (cl-incf last))
        (punchlist--go-to-line first)
        (delete-region (point) (progn (forward-line (- (length old) first last)) (point)))
        (cl-loop for at from first below (- (length new) last)
                 for (id . depth) = (aref new at)
                 do (puthash id t drawn) (insert (punchlist--line (gethash id rows) depth)))
        (setq punchlist--lines new punchlist--places (make-hash-table :test 'equal))
        (cl-loop for at from 0 for line across new do (puthash (car line) at punchlist--places))))
    (dolist (id (punchlist--list-changed list))
      (when-let ((at (and (not (gethash id drawn)) (gethash id punchlist--places))))
        (puthash id t drawn)
        (punchlist--go-to-line at)
        (delete-region (point) (progn (forward-line 1) (point)))
        (insert (punchlist--line (gethash id rows) (cdr (aref punchlist--lines at))))))
    (set-buffer-modified-p nil)
    (when-let ((at (and here (gethash here punchlist--places))))
      (punchlist--go-to-line at)
      (move-to-column column)
      (dolist (window (get-buffer-window-list nil nil t)) (set-window-point window (point))))
    (setq header-line-format (punchlist--header))
    (unless (eq punchlist--is-dimmed (not punchlist--connected))
      (setq punchlist--is-dimmed (not punchlist--connected))
      (if punchlist--is-dimmed (face-remap-set-base 'default '(:inherit punchlist-away)) (face-remap-reset-base 'default)))))

(defun punchlist--go-to-line (at)
  "Go to the line AT, counted from 0."
  (goto-char (point-min))
  (forward-line at))

(defun punchlist--header ()
  "What stands in the first line of the window."
  (let* ((list punchlist--list) (count (punchlist--open-count list)))
    (replace-regexp-in-string
     "%" "%%"
     (concat (format "%s  %d of %d open" (punchlist--list-name list) (car count) (cdr count))
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
  :global t
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

(defun punchlist-why ()
  "Say why the task at point can't start."
  (interactive)
  (let ((id (plist-get (punchlist--row) :id)))
    (punchlist--read "task.explain" (list :task id)
                     (lambda (result)
                       (let ((reasons (mapcar (lambda (one) (format "%s: #%s %s" (plist-get one :kind) (plist-get one :by)
                                                                    (punchlist--safe (plist-get one :title))))
                                              (plist-get result :reasons))))
                         (message "punchlist: %s" (if reasons (string-join reasons "; ") (format "nothing holds #%s" id))))))))

(defun punchlist-undo ()
  "Undo the last call, after a look at what that takes back."
  (interactive)
  (let ((list punchlist--list))
    (punchlist--read
     "list.undo" '(:preview t)
     (lambda (result)
       (let ((lines (mapcar #'punchlist--safe (plist-get result :undone))) (version (punchlist--list-version list)))
         (if (not lines) (message "punchlist: there is nothing to undo")
           (run-at-time 0 nil (lambda ()
                                (when (yes-or-no-p (concat "Undo?\n  " (string-join lines "\n  ") "\n"))
                                  (punchlist--change list "list.undo" (list :expect_version version)))))))))))

(defun punchlist-log ()
  "Show what happened to the list, the newest first."
  (interactive)
  (let ((list punchlist--list) lines)
    (cl-labels
        ((page (after)
           (with-temp-buffer
             (setq punchlist--list list)
             (punchlist--read "event.read" (list :after after) #'show)))
         (show (result)
           (dolist (one (plist-get result :events))
             (let* ((event (plist-get one :event)) (task (plist-get event :task)) (is-row (consp task)))
               (push (format "%s %5d  %-16s %-18s %s" (format-time-string "%F %T" (/ (plist-get one :at) 1000))
                             (plist-get one :version) (punchlist--safe (plist-get one :actor)) (plist-get event :type)
                             (cond (is-row (format "#%s %s" (plist-get task :id) (punchlist--safe (plist-get task :title))))
                                   (task (format "#%s %s" task (or (plist-get event :to) ""))) (t "")))
                     lines)))
           (if (plist-get result :events)
               (page (plist-get result :next))
             (with-current-buffer (get-buffer-create (format "*punchlist log: %s*" (punchlist--list-name list)))
               (let ((inhibit-read-only t))
                 (erase-buffer)
                 (insert (string-join lines "\n"))
                 (goto-char (point-min)))
               (special-mode)
               (pop-to-buffer (current-buffer))))))
      (page 0))))

(defun punchlist-visit ()
  "Go to the code that the task at point names.
That is its link of kind path, or PATH:LINE in its title or description."
  (interactive)
  (let* ((row (punchlist--row)) (root (or (punchlist--list-root punchlist--list) default-directory))
         (links (seq-filter (lambda (link) (equal (plist-get link :kind) "path")) (plist-get row :links)))
         (texts (append (mapcar (lambda (link) (plist-get link :to)) links)
                        (split-string (concat (plist-get row :title) " " (or (plist-get row :description) "")) "[][ \n\t()`,;]+" t)))
         (place (seq-some (lambda (text)
                            (when (string-match "\\`\\(.*?\\)\\(?::\\([0-9]+\\)\\)?\\(?::[0-9]+\\)?\\'" text)
                              (let ((file (expand-file-name (match-string 1 text) root)) (line (match-string 2 text)))
                                (and (not (file-remote-p file)) (file-regular-p file) (cons file line)))))
                          texts)))
    (unless place (user-error "#%s names no file that is there" (plist-get row :id)))
    (find-file-other-window (car place))
    (when (cdr place) (punchlist--go-to-line (1- (string-to-number (cdr place)))))))

(defvar-local punchlist--task nil "The task whose description this buffer holds: (LIST ID TEXT).")

(defun punchlist-describe ()
  "Edit the description of the task at point.
\\<punchlist-description-mode-map>\\[punchlist-save-description] keeps it."
  (interactive)
  (let* ((row (punchlist--row)) (list punchlist--list) (id (plist-get row :id)) (text (or (plist-get row :description) "")))
    (pop-to-buffer (format "*punchlist %s #%s*" (punchlist--list-name list) id))
    (text-mode)
    (punchlist-description-mode)
    (erase-buffer)
    (insert text)
    (set-buffer-modified-p nil)
    (setq punchlist--task (list list id text))))

(defun punchlist-save-description ()
  "Save the description.
What somebody else wrote meanwhile is shown and never overwritten."
  (interactive)
  (pcase-let* ((`(,list ,id ,base) punchlist--task) (buffer (current-buffer)) (text (buffer-string))
               (row (gethash id (punchlist--list-rows list))) (theirs (and row (or (plist-get row :description) ""))))
    (cond ((not row) (user-error "#%s was deleted; nothing was saved" id))
          ((not (equal theirs base))
           (with-current-buffer (get-buffer-create (format "*punchlist %s #%s: theirs*" (punchlist--list-name list) id))
             (erase-buffer)
             (insert theirs)
             (display-buffer (current-buffer)))
           (setq punchlist--task (list list id theirs))
           (user-error "Somebody else changed #%s: look at theirs, then save again" id))
          (t (punchlist--change list "task.edit" `(:task ,id :description ,text
                                                         :expect_version ,(punchlist--list-version list))
                                (lambda (_)
                                  (when (buffer-live-p buffer)
                                    (with-current-buffer buffer
                                      (setq punchlist--task (list list id text))
                                      (set-buffer-modified-p nil)))))))))

(defvar punchlist-description-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'punchlist-save-description)
    map)
  "Keys of a description.")
(define-minor-mode punchlist-description-mode "The description of a task." :lighter " punchlist")

(defconst punchlist--keys
  '(("RET" . punchlist-visit) ("s" . punchlist-start) ("d" . punchlist-done) ("f" . punchlist-fail) ("p" . punchlist-pause)
    ("r" . punchlist-reopen) ("c" . punchlist-claim) ("R" . punchlist-release) ("a" . punchlist-add) ("e" . punchlist-edit)
    ("E" . punchlist-describe) ("m" . punchlist-note) ("b" . punchlist-blockers) ("x" . punchlist-delete)
    ("J" . punchlist-down) ("K" . punchlist-up) ("+" . punchlist-raise) ("-" . punchlist-lower) ("w" . punchlist-why)
    ("u" . punchlist-undo) ("l" . punchlist-log) ("o" . punchlist-open) ("?" . describe-mode))
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

(defun punchlist--when-connected (done)
  "Call DONE once the daemon answers."
  (if punchlist--connected (funcall done)
    (push done punchlist--when-connected)
    (punchlist--open)
    (run-at-time 5 nil (lambda () (when (memq done punchlist--when-connected)
                                    (message "punchlist: still away: %s" punchlist--reason))))))

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
        (setf (punchlist--list-is-moved list) t)
        (punchlist--draw)
        (setf (punchlist--list-is-moved list) nil))
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
                         punchlist--line punchlist--draw)))

(provide 'punchlist)
;;; punchlist.el ends here
