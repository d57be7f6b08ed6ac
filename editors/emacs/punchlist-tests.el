;;; punchlist-tests.el --- Unit tests for punchlist  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run them with `ert-run-tests-batch-and-exit', or with `ert' in Emacs.

;; They don't need a daemon.  tests/system/editors/test_emacs.py has tests that do.

;;; Code:

(require 'ert)
(require 'punchlist)

(defun punchlist-tests--row (id &rest members)
  "Return a row with ID and MEMBERS, ranked by id."
  `(:id ,id ,@members :title ,(concat "Task " id) :status "pending" :rank ,(format "%05d" (string-to-number id))))

(defun punchlist-tests--pushed (list rows &rest members)
  "Fold a push of ROWS, with MEMBERS, into LIST."
  (punchlist--fold list `(:rows ,rows :counts (:pending ,(length rows)) :version 1 :seq 1 ,@members)))

(defmacro punchlist-tests--with-list (list &rest body)
  "Run BODY with a new LIST, shown in the current buffer."
  (declare (indent 1))
  `(let ((,list (punchlist--new-list "plan")))
     (with-temp-buffer
       (punchlist-mode)
       (setq punchlist--list ,list punchlist--lines [])
       ,@body)))

(defun punchlist-tests--lines ()
  "Return the lines of the current buffer."
  (split-string (buffer-substring-no-properties (point-min) (point-max)) "\n" t))

(ert-deftest punchlist-pushes-are-folded ()
  (punchlist-tests--with-list list
    (punchlist-tests--pushed list (list (punchlist-tests--row "2")) :reset t :more t)
    (should (equal (punchlist-tests--lines) nil))
    (punchlist-tests--pushed list (list (punchlist-tests--row "1") (punchlist-tests--row "3" :parent "1")))
    (should (equal (punchlist-tests--lines) '("[ ] #1 Task 1" "  [ ] #3 Task 3" "[ ] #2 Task 2")))
    (punchlist-tests--pushed list (list (punchlist-tests--row "2" :status "failed")) :gone '("1"))
    (should (equal (punchlist-tests--lines) '("[✗] #2 Task 2" "[ ] #3 Task 3")))))

(ert-deftest punchlist-long-list-is-drawn-in-slices ()
  (punchlist-tests--with-list list
    (let ((rows (cl-loop for id from 1 to 450 collect (punchlist-tests--row (number-to-string id)))))
      (punchlist-tests--pushed list rows :reset t)
      (should (= (length (punchlist-tests--lines)) punchlist--slice))
      (punchlist-tests--pushed list (list (punchlist-tests--row "400" :title "Later")) :gone '("2"))
      (while (accept-process-output nil 0.01))
      (let ((end (+ (float-time) 30)))
        (while (and (< (length (punchlist-tests--lines)) 449) (< (float-time) end)) (accept-process-output nil 0.01)))
      (let ((lines (punchlist-tests--lines)))
        (should (= (length lines) 449))
        (should (equal (nth 1 lines) "[ ] #3 Task 3"))
        (should (equal (nth 398 lines) "[ ] #400 Later"))))))

(ert-deftest punchlist-news-omit-own-changes ()
  (let* ((list (punchlist--new-list "plan")) (punchlist-notify 'mine)
         (was (punchlist-tests--row "1" :owner punchlist-owner :open_blockers '("2") :version 1))
         (now (punchlist-tests--row "1" :owner punchlist-owner :version 2))
         (bad (punchlist-tests--row "1" :owner punchlist-owner :version 3 :status "failed" :fail_reason "no ink")))
    (setf (punchlist--list-counts list) '(:pending 1))
    (should (equal (punchlist--find-news list (list (cons was now))) '("#1 can start now: Task 1")))
    (should (equal (punchlist--find-news list (list (cons now bad))) '("#1 failed: Task 1 (no ink)")))
    (puthash "1" 3 (punchlist--list-own list))
    (should-not (punchlist--find-news list (list (cons now bad))))
    (let ((punchlist-notify nil)) (should-not (punchlist--find-news list (list (cons was now)))))))

(ert-deftest punchlist-places-in-titles-are-buttons ()
  (punchlist-tests--with-list list
    (punchlist-tests--pushed list (list (punchlist-tests--row "1" :title "Mend src/a.py:12 and b:3")) :reset t)
    (goto-char (point-min))
    (should (equal (button-label (forward-button 1)) "src/a.py:12"))
    (should (equal (button-label (forward-button 1)) "b:3"))
    (should (equal (get-text-property (point) 'punchlist-id) "1"))))

(provide 'punchlist-tests)
;;; punchlist-tests.el ends here
