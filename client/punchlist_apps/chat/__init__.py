"""Chat over a task list: a person says what they want, and what is said back is proved by the log.

`thread` keeps what was said, `turn` answers one message, `worker` takes turns one by one from a thread's queue,
`receipts` are the events that a turn made and the sentences about them, `questions` what the person has to agree to,
`rules` read a message without a model, `models` ask one. Nothing here changes a list but by the tools of `toolset`.

1. A message is appended before anything is done about it, and each answer is a message of its own; none changes.
2. The calls that are to be made are written down before the first one is made, each with its key: whoever goes on
   after a crash finds in the log which of them were made.
3. What is said about changes is made from the events of these keys.
4. What destroys or renames, or may not be meant, is done only after the person's own yes to just that.
5. A turn is a task of the thread's own serial list: one worker has it, and pausing the task stops it.
"""
