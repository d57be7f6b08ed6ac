;;; punchlist-model.el --- A list of punchlist, kept by pushes  -*- lexical-binding: t; -*-

;;; Commentary:

;; Texts of others made harmless, lists by folding the pushes of view "rows", and
;; what of a push is news.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'punchlist-characters)
(require 'punchlist-connection)

(defun punchlist--is-writing (sign)
  "Whether a joiner may stand beside SIGN: a letter, a digit, a mark or a picture."
  (let ((case-fold-search nil))
    (and sign
         (if (< (aref sign 0) 256) (string-match-p punchlist--latin sign)
           (not (or (string-match-p punchlist--unsafe sign) (string-match-p punchlist--spaces sign)))))))

(defun punchlist--safe (text)
  "TEXT with everything that could steer or deceive made a visible escape.
The rule is that of punchlist/base/text.py."
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
  name subscription epoch seq version counts root trouble damaged is-ready changed is-moved coming told tree
  watching present
  (rows (make-hash-table :test 'equal)) (own (make-hash-table :test 'equal)) order)

(defvar punchlist--lists (make-hash-table :test 'equal) "The lists that are followed, by name.")
(defvar punchlist--list-functions nil "What is called with a list that was changed.")


(defun punchlist--list-of (name)
  "The list of this NAME, followed from now on."
  (or (gethash name punchlist--lists)
      (let ((list (puthash name (punchlist--new-list name) punchlist--lists)))
        (punchlist--open)
        (when punchlist--connected (punchlist--subscribe list))
        list)))

(defun punchlist--change (list method params &optional done refused)
  "Change LIST by METHOD with PARAMS; DONE takes the result.
REFUSED takes the error, which is told without it."
  (if (not punchlist--connected)
      (message "punchlist: the daemon is away; nothing was changed")
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

(defun punchlist--tell (list)
  "Bring what draws LIST up to date."
  (run-hook-with-args 'punchlist--list-functions list)
  (force-mode-line-update t))

(defun punchlist--follow (what &optional method params)
  "Take WHAT happened: `connected', `away', or `pushed' with METHOD and PARAMS."
  (pcase what
    ('connected (maphash (lambda (_ list) (punchlist--subscribe list)) punchlist--lists))
    ('away (maphash (lambda (_ list)
                      (setf (punchlist--list-subscription list) nil (punchlist--list-watching list) nil
                            (punchlist--list-present list) nil)
                      (punchlist--tell list))
                    punchlist--lists))
    ('pushed (punchlist--pushed method params))))
(add-hook 'punchlist--connection-functions #'punchlist--follow)

(defun punchlist-close ()
  "Hang up, and forget all lists."
  (interactive)
  (setq punchlist--wanted nil punchlist--pending nil)
  (clrhash punchlist--lists)
  (punchlist--lost "closed"))

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
                    (punchlist--list-trouble list) nil)
              (unless (punchlist--list-watching list) (punchlist--watch list)))
             ((member (plist-get err :kind) '("wrong_epoch" "gap"))
              (setf (punchlist--list-seq list) nil)
              (punchlist--subscribe list))
             ((not (equal (plist-get err :kind) "connection"))
              (setf (punchlist--list-trouble list) (plist-get err :message))
              (punchlist--tell list)))))))

(defun punchlist--watch (list)
  "Be told who has LIST open; an older daemon refuses that, and nobody is shown."
  (punchlist--request "event.subscribe" `(:conversation ,(punchlist--list-name list) :view "presence")
                      (lambda (err result)
                        (unless err (setf (punchlist--list-watching list) (plist-get result :subscription))))))

(defun punchlist--others (list)
  "Who else has LIST open, as a text."
  (punchlist--safe
   (mapconcat (lambda (one) (plist-get one :actor))
              (seq-remove (lambda (one) (and (equal (plist-get one :actor) punchlist-actor)
                                             (< (plist-get one :connections) 2)))
                          (punchlist--list-present list))
              ", ")))

(defun punchlist--pushed (method params)
  "Take the notification METHOD with PARAMS."
  (let ((subscription (plist-get params :subscription)))
    (dolist (list (hash-table-values punchlist--lists))
      (cond ((equal subscription (punchlist--list-watching list))
             (setf (punchlist--list-present list) (plist-get params :present))
             (punchlist--tell list))
            ((not (equal subscription (punchlist--list-subscription list))))
            ((equal method "rows") (punchlist--fold list params))
            ((equal method "end")
             (setf (punchlist--list-subscription list) nil (punchlist--list-seq list) nil
                   (punchlist--list-trouble list) (plist-get (plist-get params :error) :message))
             (punchlist--tell list)
             (run-at-time 1 nil (lambda () (when (and punchlist--connected (not (punchlist--list-subscription list)))
                                             (punchlist--subscribe list)))))))))

(defun punchlist--fold (list push)
  "Take PUSH, the news of LIST."
  (when (plist-get push :reset) (setf (punchlist--list-coming list) (make-hash-table :test 'equal)))
  (let* ((rows (or (punchlist--list-coming list) (punchlist--list-rows list)))
         (is-new (and (punchlist--list-coming list) t)))
    (dolist (id (plist-get push :gone))
      (when (gethash id rows) (setf (punchlist--list-is-moved list) t))
      (remhash id rows))
    (dolist (row (plist-get push :rows))
      (let* ((id (plist-get row :id)) (known (gethash id rows)))
        (unless (and known (not is-new) (equal (plist-get known :rank) (plist-get row :rank))
                     (equal (plist-get known :parent) (plist-get row :parent)))
          (setf (punchlist--list-is-moved list) t))
        (when (and known (not is-new)) (push (cons known row) (punchlist--list-told list)))
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
              (mapcar (lambda (row) (plist-get row :id)) (sort (hash-table-values rows) #'punchlist--before))
              (punchlist--list-tree list) (punchlist--tree list)))
      (setf (punchlist--list-is-ready list) t)
      (punchlist--tell list)
      (let ((told (punchlist--list-told list)))
        (setf (punchlist--list-changed list) nil (punchlist--list-is-moved list) nil (punchlist--list-told list) nil)
        (unless is-new (mapc (lambda (said) (message "punchlist: %s" said)) (punchlist--news list told)))))))

(defun punchlist--before (a b)
  "Whether row A stands before row B."
  (let ((rank (plist-get a :rank)) (other (plist-get b :rank)))
    (if (equal rank other) (string< (plist-get a :id) (plist-get b :id)) (string< rank other))))

(defun punchlist--news (list told)
  "The news of a push to LIST, for a person with their eyes elsewhere.
TOLD are pairs of rows, before and after; what we did ourselves is no news."
  (let (news is-own (was-open nil))
    (pcase-dolist (`(,was . ,row) told)
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

(provide 'punchlist-model)
;;; punchlist-model.el ends here
