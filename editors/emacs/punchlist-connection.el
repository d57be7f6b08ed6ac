;;; punchlist-connection.el --- The connection to punchlist's daemon  -*- lexical-binding: t; -*-

;;; Commentary:

;; One Unix socket, one JSON text per line, requests with callbacks, and
;; reconnects.  It never blocks.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'seq)
(require 'subr-x)

(defgroup punchlist nil "Task lists that AI agents share." :group 'tools)

(defcustom punchlist-actor (or (getenv "PUNCHLIST_ACTOR") (user-login-name))
  "Name of your changes in the history, by default the same as on the command line."
  :type 'string)
(defcustom punchlist-owner (concat "emacs/" (user-login-name)) "Owner of your claims." :type 'string)
(defcustom punchlist-autostart t "Whether to start a daemon if none runs." :type 'boolean)
(defcustom punchlist-notify 'mine
  "Which tasks to notify about when others make them fail or become ready.
With `mine', your own tasks; with `all', all tasks.  Both also notify about
finished lists."
  :type '(choice (const mine) (const all) (const :tag "nothing" nil)))

(defconst punchlist--first-pause 0.05)
(defconst punchlist--longest-pause 2.0)

(defconst punchlist--gc-threshold (* 64 1024 1024)
  "Value of `gc-cons-threshold' while a push is handled or drawn.
With the default value, garbage collection takes longer than the work itself.")

(defvar punchlist--process nil "The connection, or nil.")
(defvar punchlist--connected nil "Whether the daemon has responded on this connection.")
(defvar punchlist--reason "not connected yet" "Why there is no connection.")
(defvar punchlist--is-open nil "Whether to stay connected.")
(defvar punchlist--timer nil)
(defvar punchlist--pause punchlist--first-pause)
(defvar punchlist--started-at 0 "Time of the last start of a daemon, in seconds.")
(defvar punchlist--unread nil "Parts of an incomplete message, newest first.")
(defvar punchlist--next-id 0)
(defvar punchlist--pending nil "Requests without a response, newest first: (ID TEXT KEYED DONE).")
(defvar punchlist--connected-callbacks nil "Functions to call once connected.")
(defvar punchlist--connection-functions nil
  "Functions called with `connected', `away', or `pushed' plus a method and params.")

(defun punchlist--socket ()
  "Return the path of the daemon's socket, by the rules in docs/protocol.md."
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
  "Start a daemon, unless this is turned off or was tried in the last 10 seconds."
  (when (and punchlist-autostart (not (equal (getenv "PUNCHLIST_AUTOSTART") "0")) (executable-find "punch")
             (> (- (float-time) punchlist--started-at) 10))
    (setq punchlist--started-at (float-time))
    (make-process :name "punch" :command '("punch" "daemon" "status") :noquery t :connection-type 'pipe)))

(defun punchlist--connect ()
  "Connect, unless already connected, and retry later after a failure."
  (when (and punchlist--is-open (not punchlist--process))
    (let* ((path (punchlist--socket)) (attributes (file-attributes path)))
      (cond ((not attributes)
             (punchlist--start-daemon)
             (punchlist--disconnect (format "no daemon listens on %s" path)))
            ((not (memql (file-attribute-user-id attributes) (list (user-uid) 0)))
             (punchlist--disconnect (format "%s belongs to another user" path)))
            (t (condition-case err
                   (progn
                     (setq punchlist--unread nil
                           punchlist--process
                           (make-network-process
                            :name "punchlist" :family 'local :service path :coding 'no-conversion :noquery t
                            :filter #'punchlist--on-data :sentinel #'punchlist--on-close))
                     (punchlist--say-hello))
                 (file-error
                  (punchlist--start-daemon)
                  (punchlist--disconnect (format "no daemon listens on %s (%s)" path (error-message-string err))))))))))

(defun punchlist--say-hello ()
  "Send the hello, then send unanswered requests again and follow the lists."
  (punchlist--send
   "daemon.hello" `(:client (:name ,punchlist-actor :version "1"))
   (lambda (err _)
     (unless (equal (plist-get err :kind) "connection")
       (setq punchlist--connected t punchlist--reason nil punchlist--pause punchlist--first-pause)
       (dolist (request (reverse punchlist--pending))
         (when (nth 2 request) (punchlist--write (nth 1 request))))
       (run-hook-with-args 'punchlist--connection-functions 'connected)
       (let ((callbacks (nreverse punchlist--connected-callbacks)))
         (setq punchlist--connected-callbacks nil)
         (mapc #'funcall callbacks))))))

(defun punchlist--on-close (process _event)
  "Handle the end of the connection PROCESS."
  (when (eq process punchlist--process) (punchlist--disconnect "the daemon closed the connection")))

(defun punchlist--disconnect (reason)
  "Handle the loss of the connection, which has a REASON.
Reads fail, and changes with a key are sent again over the next connection."
  (let ((process punchlist--process) (pending punchlist--pending))
    (setq punchlist--process nil punchlist--connected nil punchlist--reason reason
          punchlist--pending (seq-filter (lambda (request) (nth 2 request)) pending))
    (when process (delete-process process))
    (dolist (request (reverse pending))
      (unless (nth 2 request) (funcall (nth 3 request) (list :kind "connection" :message reason) nil)))
    (run-hook-with-args 'punchlist--connection-functions 'away)
    (when punchlist--timer (cancel-timer punchlist--timer))
    (setq punchlist--timer (and punchlist--is-open (run-at-time punchlist--pause nil #'punchlist--connect))
          punchlist--pause (min punchlist--longest-pause (* 2 punchlist--pause)))))

(defun punchlist--open ()
  "Connect, and reconnect until `punchlist-close'."
  (setq punchlist--is-open t)
  (punchlist--connect))

(defun punchlist--on-data (process bytes)
  "Handle BYTES received from PROCESS, in which messages end with a newline."
  (let ((from 0) (gc-cons-threshold punchlist--gc-threshold) stop messages)
    (while (setq stop (string-search "\n" bytes from))
      (push (substring bytes from stop) punchlist--unread)
      (push (apply #'concat (nreverse punchlist--unread)) messages)
      (setq punchlist--unread nil from (1+ stop)))
    (push (substring bytes from) punchlist--unread)
    (dolist (text (nreverse messages))
      (when (eq process punchlist--process)
        (punchlist--on-message (punchlist--parse (decode-coding-string text 'utf-8)))))))

(defun punchlist--parse (text)
  "Parse the JSON TEXT."
  (condition-case nil
      (json-parse-string text :object-type 'plist :array-type 'list :null-object nil :false-object nil)
    (json-parse-error ; the native parser of Emacs 28 rejects NUL, which a title may contain
     (let ((json-object-type 'plist) (json-array-type 'list) (json-null nil) (json-false nil))
       (json-read-from-string text)))))

(defun punchlist--on-message (message)
  "Handle a MESSAGE from the daemon, which is a response or a push."
  (if-let ((method (plist-get message :method)))
      (run-hook-with-args 'punchlist--connection-functions 'pushed method (plist-get message :params))
    (when-let ((request (assq (plist-get message :id) punchlist--pending)))
      (setq punchlist--pending (delq request punchlist--pending))
      (if-let ((err (plist-get message :error)))
          (funcall (nth 3 request) (append (plist-get err :data) (list :message (plist-get err :message))) nil)
        (funcall (nth 3 request) nil (plist-get message :result))))))

(defun punchlist--write (text)
  "Send TEXT.
Handle an error as a lost connection, since the daemon may just have ended."
  (when punchlist--process
    (condition-case err (process-send-string punchlist--process text)
      (error (punchlist--disconnect (error-message-string err))))))

(defun punchlist--send (method params done)
  "Send METHOD with PARAMS immediately; call DONE with the error and the result."
  (let* ((id (cl-incf punchlist--next-id))
         (message `(:jsonrpc "2.0" :id ,id :method ,method :params ,params))
         (text (concat (encode-coding-string (json-serialize message) 'utf-8) "\n")))
    (push (list id text (plist-get params :key) done) punchlist--pending)
    (punchlist--write text)))

(defun punchlist--request (method params done)
  "Call METHOD with PARAMS, then DONE with the error and the result."
  (if punchlist--connected
      (punchlist--send method params done)
    (run-at-time 0 nil done (list :kind "connection" :message punchlist--reason) nil)))

(defun punchlist--when-connected (done)
  "Call DONE once connected; show a message after 5 seconds without connection."
  (if punchlist--connected (funcall done)
    (push done punchlist--connected-callbacks)
    (punchlist--open)
    (run-at-time 5 nil (lambda () (when (memq done punchlist--connected-callbacks)
                                    (message "punchlist: still not connected: %s" punchlist--reason))))))

(provide 'punchlist-connection)
;;; punchlist-connection.el ends here
