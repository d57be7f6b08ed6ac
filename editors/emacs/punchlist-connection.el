;;; punchlist-connection.el --- The connection of punchlist to its daemon  -*- lexical-binding: t; -*-

;;; Commentary:

;; One Unix socket, one JSON text a line, requests with callbacks, and reconnects.
;; Nothing here waits for an answer.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'seq)
(require 'subr-x)

(defgroup punchlist nil "Task lists that AI agents share." :group 'tools)

(defcustom punchlist-actor (or (getenv "PUNCHLIST_ACTOR") (user-login-name))
  "Who the history says made a change, by default as at the command line."
  :type 'string)
(defcustom punchlist-owner (concat "emacs/" (user-login-name)) "Whose claims are ours." :type 'string)
(defcustom punchlist-autostart t "Whether a daemon is started where none runs." :type 'boolean)
(defcustom punchlist-notify 'mine
  "Whose tasks are told of when others make them fail or let them start.
With `mine' our own, with `all' everybody's; with both, that a list is finished."
  :type '(choice (const mine) (const all) (const :tag "nothing" nil)))

(defconst punchlist--first-pause 0.05)
(defconst punchlist--longest-pause 2.0)

(defconst punchlist--gc-threshold (* 64 1024 1024)
  "Bytes made between two collections of garbage while a push is taken or drawn.
Each collection would cost more than the work.")

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
(defvar punchlist--connection-functions nil
  "What is called with `connected', `away', or `pushed', a method and its params.")

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
         (when (nth 2 request) (punchlist--write (nth 1 request))))
       (run-hook-with-args 'punchlist--connection-functions 'connected)
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
    (run-hook-with-args 'punchlist--connection-functions 'away)
    (when punchlist--timer (cancel-timer punchlist--timer))
    (setq punchlist--timer (and punchlist--wanted (run-at-time punchlist--pause nil #'punchlist--connect))
          punchlist--pause (min punchlist--longest-pause (* 2 punchlist--pause)))))

(defun punchlist--open ()
  "Connect, and stay connected from now on."
  (setq punchlist--wanted t)
  (punchlist--connect))

(defun punchlist--received (process bytes)
  "Take what PROCESS has sent: BYTES, in which messages end with a newline."
  (let ((from 0) (gc-cons-threshold punchlist--gc-threshold) stop messages)
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
      (run-hook-with-args 'punchlist--connection-functions 'pushed method (plist-get message :params))
    (when-let ((request (assq (plist-get message :id) punchlist--pending)))
      (setq punchlist--pending (delq request punchlist--pending))
      (if-let ((err (plist-get message :error)))
          (funcall (nth 3 request) (append (plist-get err :data) (list :message (plist-get err :message))) nil)
        (funcall (nth 3 request) nil (plist-get message :result))))))

(defun punchlist--write (text)
  "Send TEXT.
A daemon that was killed a moment ago is a lost connection, and no error."
  (when punchlist--process
    (condition-case err (process-send-string punchlist--process text)
      (error (punchlist--lost (error-message-string err))))))

(defun punchlist--send (method params done)
  "Send a request for METHOD with PARAMS now; DONE takes the error and the result."
  (let* ((id (cl-incf punchlist--next-id))
         (message `(:jsonrpc "2.0" :id ,id :method ,method :params ,params))
         (text (concat (encode-coding-string (json-serialize message) 'utf-8) "\n")))
    (push (list id text (plist-get params :key) done) punchlist--pending)
    (punchlist--write text)))

(defun punchlist--request (method params done)
  "Call METHOD with PARAMS; DONE takes the error and the result, later."
  (if punchlist--connected
      (punchlist--send method params done)
    (run-at-time 0 nil done (list :kind "connection" :message punchlist--reason) nil)))

(defun punchlist--when-connected (done)
  "Call DONE once the daemon answers."
  (if punchlist--connected (funcall done)
    (push done punchlist--when-connected)
    (punchlist--open)
    (run-at-time 5 nil (lambda () (when (memq done punchlist--when-connected)
                                    (message "punchlist: still away: %s" punchlist--reason))))))

(provide 'punchlist-connection)
;;; punchlist-connection.el ends here
