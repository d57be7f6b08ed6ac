"""Chat about a task list: reads a person's messages, changes the list, and answers from events in the log.

`thread` stores the messages, `turn` answers one of them, `worker` runs the turns of a thread one at a time. `receipts`
turns a turn's events into sentences, `questions` holds what a person must confirm, `rules` interprets messages without
a model, and `models` calls a model. Only the tools of `toolset` change lists.

1. Messages are append-only. A message is stored before it is handled, and each answer is a new message.
2. The calls of a step are stored with their keys before the first one is made, so that a worker that resumes after a
   crash finds out from the log which of them were made.
3. Statements about changes are built from the events with these keys, never by a model.
4. Deletions, renames and doubtful requests need the person to confirm exactly that request.
5. A turn is a task in the thread's serial list. One worker claims it, and pausing the task stops the turn.
"""
