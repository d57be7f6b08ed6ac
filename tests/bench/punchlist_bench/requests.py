"""Requests of the load generators, with placeholders (see wire.h), and the equivalent Redis scripts."""

from typing import Any

import msgspec

TITLE = "write the parser for the frame header"

PUT = "redis.call('XADD',KEYS[1],'*','e',ARGV[1]); return redis.call('HSET',KEYS[2],ARGV[2],ARGV[3])"
"""Redis script for a durable change: append to a stream and set a field of a hash."""

FULL_ADD = """
local title, list, at = ARGV[1], ARGV[2], redis.call('TIME')
if #title == 0 or #title > 500 or title:find('%c') or not title:find('%S') then
  return redis.error_reply('invalid title')
end
local now = at[1] * 1000 + math.floor(at[2] / 1000)
local id = tostring(redis.call('HINCRBY', KEYS[3], 'task', 1))
local version = redis.call('HINCRBY', KEYS[3], 'version', 1)
local seq = redis.call('INCR', KEYS[4])
local task = {id = id, title = title, status = 'pending', priority = 'normal', created_at = now, updated_at = now,
  status_changed_at = now, version = version}
local event = {seq = seq, conversation = list, version = version, at = now, actor = 'anonymous',
  event = {type = 'TaskAdded', task = {id = id, title = title, status = 'pending', priority = 'normal'}}}
redis.call('XADD', KEYS[1], '*', 'e', cjson.encode(event))
redis.call('HSET', KEYS[2], id, cjson.encode(task))
return cjson.encode({task = task, version = version, seq = seq})
"""
"""Redis script with most of the work of `task.add`: validate the title, assign numbers, encode the results."""

FULL_STATUS = """
local id, to, list, at = ARGV[1], ARGV[2], ARGV[3], redis.call('TIME')
local any = {pending = 1, in_progress = 1, completed = 1}
local allowed = {pending = any, in_progress = any, completed = any}
local found = redis.call('HGET', KEYS[2], id)
if not found then return redis.error_reply('not found') end
local task = cjson.decode(found)
if not (allowed[task.status] or {})[to] then return redis.error_reply('illegal transition ' .. task.status .. to) end
local now = at[1] * 1000 + math.floor(at[2] / 1000)
local version = redis.call('HINCRBY', KEYS[3], 'version', 1)
local seq = redis.call('INCR', KEYS[4])
local event = {seq = seq, conversation = list, version = version, at = now, actor = 'anonymous',
  event = {type = 'StatusChanged', task = id, from = task.status, to = to}}
task.status, task.version, task.updated_at, task.status_changed_at = to, version, now, now
redis.call('XADD', KEYS[1], '*', 'e', cjson.encode(event))
redis.call('HSET', KEYS[2], id, cjson.encode(task))
return cjson.encode({task = task, version = version, seq = seq})
"""
"""The same for `task.set_status`: find the task, check the transition, and encode as above."""

EVENT = (
    '{"seq":123456,"conversation":"durable-17","version":1234,"at":1763600000123,"actor":"anonymous",'
    '"event":{"type":"TaskAdded","task":"1234","title":"' + TITLE + ' 123456"}}'
)
"""An event of the usual length."""

TASK = (
    '{"id":"1234","title":"' + TITLE + ' 123456","status":"pending","created_at":1763600000123,'
    '"updated_at":1763600000123,"status_changed_at":1763600000123,"version":1234}'
)
"""A task of the usual length."""


def call(method: str, /, **params: Any) -> str:
    """Return a request; the generator fills in the id."""
    encoded = msgspec.json.encode(params).decode()
    return f'{{"jsonrpc":"2.0","id":{{id}},"method":"{method}","params":{encoded}}}'


def statuses(conversation: str) -> list[str]:
    """Return three calls that cycle a task through its statuses: each changes it, so none is a no-op."""
    return [
        call("task.set_status", conversation=conversation, task="{task}", status=status)
        for status in ("in_progress", "completed", "pending")
    ]


def redis(*words: str) -> str:
    """Return a Redis command in the generator's format."""
    return "\t".join(words)


def tasks(number: int) -> list[dict[str, str]]:
    """Return new tasks for `task.add_many`."""
    return [{"title": f"{TITLE} {index}"} for index in range(1, number + 1)]
