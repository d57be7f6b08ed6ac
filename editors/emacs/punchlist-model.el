;;; punchlist-model.el --- Punchlist's lists, updated by pushes  -*- lexical-binding: t; -*-

;;; Commentary:

;; Escaping of text, lists folded from the pushes of the view "rows", and
;; notifications about changes by others.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'punchlist-characters)
(require 'punchlist-connection)

(defun punchlist--is-writing (sign)
  "Return whether a joiner may follow SIGN: a letter, digit, mark or emoji."
  (let ((case-fold-search nil))
    (and sign
         (if (< (aref sign 0) 256) (string-match-p punchlist--latin sign)
           (not (or (string-match-p punchlist--unsafe sign) (string-match-p punchlist--spaces sign)))))))

(defun punchlist--safe (text)
  "Escape control, bidirectional and invisible characters in TEXT.
The rule is the same as in punchlist/base/text.py."
  (if (not (or (string-match-p punchlist--unsafe text) (string-match-p punchlist--marks text))) text
    (let ((signs (mapcar #'string text)) (marks 0) before shown)
      (while signs
        (let ((sign (pop signs)))
          (setq marks (if (string-match-p punchlist--marks sign) (1+ marks) 0))
          (push (if (or (and (<= marks punchlist--max-marks) (not (string-match-p punchlist--unsafe sign)))
                        (and (punchlist--is-writing before)
                             (or (string-match-p punchlist--selectors sign)
                                 (and (string-match-p punchlist--joiners sign) (punchlist--is-writing (car signs))))))
                    sign
                  (let ((code (aref sign 0)))
                    (format (cond ((< code 256) "\\x%02x") ((< code 65536) "\\u%04x") (t "\\U%08x")) code)))
                shown)
          (setq before sign)))
      (apply #'concat (nreverse shown)))))

(cl-defstruct (punchlist--list (:constructor punchlist--new-list (name)))
  name subscription epoch seq version counts root problem damaged is-ready changed is-moved incoming changes tree
  presence-subscription present
  (rows (make-hash-table :test 'equal)) (own (make-hash-table :test 'equal)) order)

(defvar punchlist--lists (make-hash-table :test 'equal) "The followed lists, by name.")
(defvar punchlist--list-functions nil "Functions called with a changed list.")

(defun punchlist--get-list (name)
  "Return the list NAME, and start following it."
  (or (gethash name punchlist--lists)
      (let ((list (puthash name (punchlist--new-list name) punchlist--lists)))
        (punchlist--open)
        (when punchlist--connected (punchlist--subscribe list))
        list)))

(defun punchlist--change (list method params &optional done refused)
  "Change LIST with METHOD and PARAMS; call DONE with the result.
Call REFUSED with an error; if it is nil, show the error."
  (if (not punchlist--connected)
      (message "punchlist: no connection to the daemon; nothing was changed")
    (let ((key (format "emacs-%d-%x-%x" (emacs-pid) (truncate (* 1e6 (float-time))) (random (expt 2 30)))))
      (punchlist--request
       method `(:conversation ,(punchlist--list-name list) :key ,key ,@params)
       (lambda (err result)
         (if err
             (if refused (funcall refused err)
               (message "punchlist: %s" (punchlist--safe (or (plist-get err :message) (plist-get err :kind)))))
           (dolist (task (or (plist-get result :tasks) (list (plist-get result :task))))
             (puthash (plist-get task :id) (plist-get task :version) (punchlist--list-own list)))
           (when done (funcall done result))))))))

(defun punchlist--update-views (list)
  "Draw the views of LIST."
  (run-hook-with-args 'punchlist--list-functions list)
  (force-mode-line-update t))

(defun punchlist--on-connection-event (what &optional method params)
  "Handle WHAT: `connected', `away', or `pushed' with METHOD and PARAMS."
  (pcase what
    ('connected (maphash (lambda (_ list) (punchlist--subscribe list)) punchlist--lists))
    ('away (maphash (lambda (_ list)
                      (setf (punchlist--list-subscription list) nil (punchlist--list-presence-subscription list) nil
                            (punchlist--list-present list) nil)
                      (punchlist--update-views list))
                    punchlist--lists))
    ('pushed (punchlist--on-push method params))))
(add-hook 'punchlist--connection-functions #'punchlist--on-connection-event)

(defun punchlist-close ()
  "Disconnect, and forget all lists."
  (interactive)
  (setq punchlist--is-open nil punchlist--pending nil)
  (clrhash punchlist--lists)
  (punchlist--disconnect "closed"))

(defun punchlist--subscribe (list)
  "Subscribe to LIST, starting from its last position."
  (setf (punchlist--list-incoming list) nil)
  (let ((seq (punchlist--list-seq list)))
    (punchlist--request
     "event.subscribe"
     `(:conversation ,(punchlist--list-name list) :view "rows"
                     ,@(and seq `(:after ,seq :epoch ,(punchlist--list-epoch list))))
     (lambda (err result)
       (cond ((not err)
              (setf (punchlist--list-subscription list) (plist-get result :subscription)
                    (punchlist--list-epoch list) (plist-get result :epoch)
                    (punchlist--list-problem list) nil)
              (unless (punchlist--list-presence-subscription list) (punchlist--watch list)))
             ((member (plist-get err :kind) '("wrong_epoch" "gap"))
              (setf (punchlist--list-seq list) nil)
              (punchlist--subscribe list))
             ((not (equal (plist-get err :kind) "connection"))
              (setf (punchlist--list-problem list) (plist-get err :message))
              (punchlist--update-views list)))))))

(defun punchlist--watch (list)
  "Subscribe to the presence view of LIST, which an older daemon rejects."
  (punchlist--request "event.subscribe" `(:conversation ,(punchlist--list-name list) :view "presence")
                      (lambda (err result)
                        (unless err (setf (punchlist--list-presence-subscription list) (plist-get result :subscription))))))

(defun punchlist--format-others (list)
  "Return who else has LIST open, as text."
  (punchlist--safe
   (mapconcat (lambda (peer) (plist-get peer :actor))
              (seq-remove (lambda (peer) (and (equal (plist-get peer :actor) punchlist-actor)
                                              (< (plist-get peer :connections) 2)))
                          (punchlist--list-present list))
              ", ")))

(defun punchlist--on-push (method params)
  "Handle the notification METHOD with PARAMS."
  (let ((subscription (plist-get params :subscription)))
    (dolist (list (hash-table-values punchlist--lists))
      (cond ((equal subscription (punchlist--list-presence-subscription list))
             (setf (punchlist--list-present list) (plist-get params :present))
             (punchlist--update-views list))
            ((not (equal subscription (punchlist--list-subscription list))))
            ((equal method "rows") (punchlist--fold list params))
            ((equal method "end")
             (setf (punchlist--list-subscription list) nil (punchlist--list-seq list) nil
                   (punchlist--list-problem list) (plist-get (plist-get params :error) :message))
             (punchlist--update-views list)
             (run-at-time 1 nil (lambda () (when (and punchlist--connected (not (punchlist--list-subscription list)))
                                             (punchlist--subscribe list)))))))))

(defun punchlist--fold (list push)
  "Fold PUSH into LIST."
  (when (plist-get push :reset) (setf (punchlist--list-incoming list) (make-hash-table :test 'equal)))
  (let* ((rows (or (punchlist--list-incoming list) (punchlist--list-rows list)))
         (is-new (and (punchlist--list-incoming list) t)))
    (dolist (id (plist-get push :gone))
      (when (gethash id rows) (setf (punchlist--list-is-moved list) t))
      (remhash id rows))
    (dolist (row (plist-get push :rows))
      (let* ((id (plist-get row :id)) (old (gethash id rows)))
        (unless (and old (not is-new) (equal (plist-get old :rank) (plist-get row :rank))
                     (equal (plist-get old :parent) (plist-get row :parent)))
          (setf (punchlist--list-is-moved list) t))
        (when (and old (not is-new)) (push (cons old row) (punchlist--list-changes list)))
        (puthash id row rows)
        (push id (punchlist--list-changed list))))
    (unless (plist-get push :more)
      (when is-new (setf (punchlist--list-is-moved list) t))
      (setf (punchlist--list-rows list) rows (punchlist--list-incoming list) nil
            (punchlist--list-counts list) (plist-get push :counts)
            (punchlist--list-version list) (plist-get push :version)
            (punchlist--list-seq list) (plist-get push :seq)
            (punchlist--list-damaged list) (plist-get push :damaged))
      (when (punchlist--list-is-moved list)
        (setf (punchlist--list-order list)
              (mapcar (lambda (row) (plist-get row :id)) (sort (hash-table-values rows) #'punchlist--precedes))
              (punchlist--list-tree list) (punchlist--build-tree list)))
      (setf (punchlist--list-is-ready list) t)
      (punchlist--update-views list)
      (let ((changes (punchlist--list-changes list)))
        (setf (punchlist--list-changed list) nil (punchlist--list-is-moved list) nil (punchlist--list-changes list) nil)
        (unless is-new (mapc (lambda (text) (message "punchlist: %s" text)) (punchlist--find-news list changes)))))))

(defun punchlist--precedes (a b)
  "Return whether row A precedes row B."
  (let ((rank (plist-get a :rank)) (other (plist-get b :rank)))
    (if (equal rank other) (string< (plist-get a :id) (plist-get b :id)) (string< rank other))))

(defun punchlist--find-news (list changes)
  "Return notifications about a push to LIST.
CHANGES are pairs of rows, before and after.  Our own changes are left out."
  (let (news is-own (was-open nil))
    (pcase-dolist (`(,was . ,row) changes)
      (let ((status (plist-get row :status)) (before (plist-get was :status)) (id (plist-get row :id)))
        (unless (member before '("completed" "failed")) (setq was-open t))
        (cond ((eql (gethash id (punchlist--list-own list)) (plist-get row :version)) (setq is-own t))
              ((not (or (eq punchlist-notify 'all) (equal (plist-get row :owner) punchlist-owner))))
              ((and (equal status "failed") (not (equal before "failed")))
               (push (format "#%s failed: %s (%s)" id (punchlist--safe (plist-get row :title))
                             (punchlist--safe (or (plist-get row :fail_reason) "")))
                     news))
              ((and (equal status "pending") (plist-get was :open_blockers) (not (plist-get row :open_blockers)))
               (push (format "#%s can start now: %s" id (punchlist--safe (plist-get row :title))) news)))))
    (when (and was-open (not is-own) (zerop (car (punchlist--open-count list))))
      (push (format "all tasks of %s are finished" (punchlist--list-name list)) news))
    (and punchlist-notify (nreverse news))))

(defun punchlist--open-count (list)
  "Return a pair of the number of unfinished tasks in LIST and that of all tasks."
  (let* ((counts (punchlist--list-counts list))
         (open (cl-loop for status in '(:pending :in_progress :paused) sum (or (plist-get counts status) 0))))
    (cons open (+ open (or (plist-get counts :completed) 0) (or (plist-get counts :failed) 0)))))

(defun punchlist--build-tree (list)
  "Return the lines of LIST, a vector of (ID . DEPTH) with children below parents."
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

(provide 'punchlist-model)
;;; punchlist-model.el ends here
