;;; punchlist-pages.el --- Punchlist's descriptions and log  -*- lexical-binding: t; -*-

;;; Commentary:

;; Buffers for editing a description and for reading the log.

;;; Code:

(require 'cl-lib)
(require 'diff)
(require 'punchlist-model)

(defvar punchlist--list)
(declare-function punchlist-undo "punchlist" (&optional version))
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

(defun punchlist-undo-logged ()
  "Undo the change at point, by any actor, after a preview."
  (interactive)
  (let ((fields (split-string (buffer-substring-no-properties (line-beginning-position) (line-end-position)))))
    (punchlist-undo (string-to-number (nth 2 fields)))))

(defun punchlist-log ()
  "Show the history of the list, newest first."
  (interactive)
  (let ((list punchlist--list) lines)
    (cl-labels
        ((page (after)
           (with-temp-buffer
             (setq punchlist--list list)
             (punchlist--read-list "event.read" (list :after after) #'show)))
         (show (result)
           (dolist (record (plist-get result :events))
             (let* ((event (plist-get record :event)) (task (plist-get event :task)) (is-row (consp task)))
               (push (format "%s %5d  %-16s %-18s %s" (format-time-string "%F %T" (/ (plist-get record :at) 1000))
                             (plist-get record :version) (punchlist--safe (plist-get record :actor)) (plist-get event :type)
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
               (setq-local punchlist--list list)
               (local-set-key "u" #'punchlist-undo-logged)
               (pop-to-buffer (current-buffer))))))
      (page 0))))

(provide 'punchlist-pages)
;;; punchlist-pages.el ends here
