;;; punchlist-pages.el --- Punchlist's descriptions and log  -*- lexical-binding: t; -*-

;;; Commentary:

;; Buffers for a task in full, for editing a description and for reading the log.

;;; Code:

(require 'cl-lib)
(require 'diff)
(require 'format-spec)
(require 'punchlist-model)

(defvar punchlist--list)
(declare-function punchlist-undo "punchlist" (&optional version by))
(declare-function punchlist--choose-list "punchlist" (done))
(declare-function punchlist--format-members "punchlist" (row))
(declare-function punchlist--row-at-point "punchlist")
(declare-function punchlist--read-list "punchlist")

(defvar-local punchlist--task nil "The task of this description and the saved text, as (LIST ID TEXT).")

(defun punchlist-describe ()
  "Edit the description of the task at point.
\\<punchlist-description-mode-map>\\[punchlist-save-description] saves it."
  (interactive)
  (let* ((row (punchlist--row-at-point)) (list punchlist--list) (id (plist-get row :id)) (text (or (plist-get row :description) "")))
    (pop-to-buffer (format "*punchlist %s #%s*" (punchlist--list-name list) id))
    (text-mode)
    (punchlist-description-mode)
    (erase-buffer)
    (insert text)
    (set-buffer-modified-p nil)
    (setq punchlist--task (list list id text))))

(defun punchlist-save-description ()
  "Save the description.
If someone else has changed it, show the difference instead."
  (interactive)
  (pcase-let* ((`(,list ,id ,base) punchlist--task) (name (punchlist--list-name list)) (buffer (current-buffer))
               (text (buffer-substring-no-properties (point-min) (point-max))) (tries 5) (ask nil))
    (unless punchlist--connected (user-error "No connection to the daemon; nothing was saved, and your text stays"))
    (cl-labels
        ((refuse (err) (message "punchlist: %s (nothing was saved, and your text stays)"
                                (punchlist--safe (or (plist-get err :message) (plist-get err :kind)))))
         (compare (theirs)
           (when (buffer-live-p buffer)
             (with-current-buffer buffer (setq punchlist--task (list list id theirs)))
             (punchlist--show-difference buffer (format "*punchlist %s #%s: theirs*" name id) theirs)
             (message "punchlist: #%s was changed by someone else: compare, then save again" id)))
         (saved ()
           (when (buffer-live-p buffer)
             (with-current-buffer buffer
               (setq punchlist--task (list list id text))
               (when (equal text (buffer-string)) (set-buffer-modified-p nil)))))
         ;; Get the version before the description, so that the edit is rejected after any change in between.
         (save (version row)
           (let ((theirs (or (plist-get row :description) "")))
             (if (not (or (equal theirs base) (equal theirs text))) (compare theirs)
               (punchlist--change list "task.edit" `(:task ,id :description ,text :expect_version ,version)
                                  (lambda (_) (saved))
                                  (lambda (err)
                                    (if (and (equal (plist-get err :kind) "version_conflict") (> (cl-decf tries) 0))
                                        (funcall ask)
                                      (refuse err))))))))
      (setq ask
            (lambda ()
              (punchlist--request
               "conversation.get" `(:conversation ,name)
               (lambda (err list-result)
                 (if err (refuse err)
                   (punchlist--request
                    "task.get" `(:conversation ,name :task ,id)
                    (lambda (gone task-result)
                      (if gone (refuse gone)
                        (save (plist-get (plist-get list-result :conversation) :version) (plist-get task-result :task))))))))))
      (funcall ask))))

(defun punchlist--show-difference (buffer name theirs)
  "Show a diff of BUFFER and THEIRS, the text for a buffer called NAME."
  (with-current-buffer (get-buffer-create name)
    (erase-buffer)
    (insert theirs)
    (display-buffer (diff-no-select (current-buffer) buffer nil 'no-async))))

(defvar punchlist-description-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'punchlist-save-description)
    map)
  "Keys in a description.")
(define-minor-mode punchlist-description-mode "The description of a task." :lighter " punchlist")

(defun punchlist-details ()
  "Show the task at point in full: its description, result, notes and links."
  (interactive)
  (let* ((row (punchlist--row-at-point)) (list punchlist--list) (parts nil))
    (cl-flet ((add (heading text)
                (unless (string-blank-p (or text ""))
                  (push (concat (and heading (concat "## " heading "\n\n"))
                                (mapconcat #'punchlist--safe (split-string text "\n") "\n"))
                        parts))))
      (add nil (string-trim (punchlist--format-members row)))
      (add nil (plist-get row :description))
      (add "Result" (plist-get row :result_summary))
      (add "Reason" (plist-get row :fail_reason))
      (dolist (note (plist-get row :notes))
        (add (format "Note by %s, %s" (punchlist--safe (plist-get note :actor))
                     (format-time-string "%F %H:%M" (/ (plist-get note :at) 1000)))
             (plist-get note :text)))
      (add "Links" (mapconcat (lambda (link) (format "- %s: %s" (plist-get link :kind) (plist-get link :to)))
                              (plist-get row :links) "\n")))
    (with-current-buffer (get-buffer-create (format "*punchlist %s #%s: details*" (punchlist--list-name list) (plist-get row :id)))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (string-join (cons (format "# #%s %s" (plist-get row :id) (punchlist--safe (plist-get row :title)))
                                   (nreverse parts))
                             "\n\n")
                "\n")
        (goto-char (point-min)))
      (special-mode)
      (visual-line-mode)
      (pop-to-buffer (current-buffer)))))

(defun punchlist-undo-logged ()
  "Undo the change at point, by any actor, after a preview."
  (interactive)
  (pcase (get-text-property (point) 'punchlist-event)
    (`(,version ,actor ,at)
     (punchlist-undo version (format ", by %s on %s" actor (format-time-string "%A %d %B at %H:%M" at))))
    (_ (user-error "No change at point"))))

(defun punchlist--shorten (value)
  "Return VALUE of an event as a short text."
  (let ((text (if (stringp value) value (json-serialize (if (listp value) (vconcat value) value) :null-object nil))))
    (truncate-string-to-width (string-join (split-string text) " ") 60 nil nil "…")))

(defun punchlist--format-event-members (event)
  "Return the members of EVENT other than its type and task."
  (cl-loop for (key value) on event by #'cddr
           unless (memq key '(:type :task))
           collect (format "%s %s" (string-replace "_" " " (substring (symbol-name key) 1))
                           (cond ((null value) "none") ((or (stringp value) (numberp value)) (punchlist--shorten value)) (t "changed")))
           into words
           finally return (string-join words ", ")))

(defconst punchlist--sentences
  '(("ConversationOpened" . "began the list") ("ConversationConfigured" . "set %m") ("TaskAdded" . "added: %t")
    ("TaskEdited" . "edited: %m") ("NoteAdded" . "noted: %x") ("NoteRemoved" . "removed a note")
    ("TaskWoken" . "is no longer put off") ("TaskMoved" . "moved") ("StatusChanged" . "%s") ("Deleted" . "deleted")
    ("DependencyAdded" . "waits for #%b") ("DependencyRemoved" . "no longer waits for #%b") ("Claimed" . "claimed by %o")
    ("Released" . "released by %o (%r)") ("ListCleared" . "cleared the list") ("EventLost" . "lost to damage"))
  "Type of an event, and its sentence.")

(defconst punchlist--status-words
  '(("pending" . "ready again") ("in_progress" . "started") ("paused" . "paused") ("completed" . "done") ("failed" . "failed"))
  "Status, and the words for a change to it.")

(defun punchlist--format-event (event)
  "Return EVENT as a sentence."
  (let* ((task (plist-get event :task)) (id (if (consp task) (plist-get task :id) task))
         (because (or (plist-get event :fail_reason) (plist-get event :result_summary) ""))
         (status (if (plist-get event :waits_for) (format "done, and waits for a %s" (plist-get event :waits_for))
                   (alist-get (plist-get event :to) punchlist--status-words "" nil #'equal))))
    (concat
     (and id (format "#%s " id))
     (punchlist--safe
      (format-spec (alist-get (plist-get event :type) punchlist--sentences (concat (plist-get event :type) " %m") nil #'equal)
                   `((?m . ,(punchlist--format-event-members event)) (?t . ,(if (consp task) (plist-get task :title) ""))
                     (?x . ,(punchlist--shorten (or (plist-get event :text) "")))
                     (?s . ,(concat status (unless (string-blank-p because) (concat ": " (punchlist--shorten because)))))
                     (?b . ,(plist-get event :blocker)) (?o . ,(plist-get event :owner)) (?r . ,(plist-get event :reason))))))))

(defun punchlist-log ()
  "Show the history of the list, newest first.
Outside a list, choose one.  In the history, `x' undoes the change at point."
  (interactive)
  (if punchlist--list (punchlist--show-log punchlist--list)
    (punchlist--choose-list (lambda (name) (punchlist--show-log (punchlist--get-list name))))))

(defun punchlist--show-log (list)
  "Show the history of LIST, newest first, with a heading above each day."
  (let (records)
    (cl-labels
        ((page (after)
           (with-temp-buffer
             (setq punchlist--list list)
             (punchlist--read-list "event.read" (list :after after) #'add)))
         (add (result)
           (dolist (record (plist-get result :events)) (push record records))
           (if (plist-get result :events) (page (plist-get result :next)) (show)))
         (show ()
           (with-current-buffer (get-buffer-create (format "*punchlist log: %s*" (punchlist--list-name list)))
             (let ((inhibit-read-only t) (day ""))
               (erase-buffer)
               (dolist (record records)
                 (let* ((at (/ (plist-get record :at) 1000)) (date (format-time-string "%A %d %B %Y" at))
                        (actor (punchlist--safe (plist-get record :actor))))
                   (unless (equal date day) (insert (propertize (setq day date) 'face 'bold) "\n"))
                   (insert (propertize (format "%5d  %s  %-16s  %s\n" (plist-get record :version) (format-time-string "%T" at) actor
                                               (punchlist--format-event (plist-get record :event)))
                                       'punchlist-event (list (plist-get record :version) actor at)))))
               (goto-char (point-min)))
             (special-mode)
             (setq-local punchlist--list list)
             (let ((keys (make-sparse-keymap)))
               (set-keymap-parent keys special-mode-map)
               (define-key keys "x" #'punchlist-undo-logged)
               (use-local-map keys))
             (pop-to-buffer (current-buffer)))))
      (page 0))))

(provide 'punchlist-pages)
;;; punchlist-pages.el ends here
