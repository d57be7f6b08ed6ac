"""The planted bugs: for each guard one that takes it out, and the tests that must turn red then."""

from typing import NamedTuple

ACK = "tests/crash/test_harnesses.py::test_no_order_of_events_breaks_a_rule_in_virtual_time"
CRASH = "tests/crash/test_harnesses.py::test_what_was_acknowledged_survives_kill_9_once_and_whole"
POWER = (
    "tests/crash/test_harnesses.py::test_what_was_acknowledged_survives_a_power_cut_and_without_flushes_it_would_not"
)
SYSCALL = "tests/crash/test_harnesses.py::test_a_fault_at_one_system_call_breaks_no_promise"
DAMAGE = "tests/crash/test_harnesses.py::test_spoiled_bytes_are_noticed_and_the_rest_is_served"
STUCK = "tests/crash/test_harnesses.py::test_subscribers_that_stop_reading_cost_little"
FUZZ = "tests/crash/test_harnesses.py::test_no_input_gets_an_exception_out_of"


class Mutant(NamedTuple):
    """One bug: `old`, which stands in `file` once, becomes `new`. `guard` says what is gone then."""

    guard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


_SCHEMAS = "schemas/punchlist_schemas/"
_STORE = "daemon/punchlistd/store/"
_ENGINE = "daemon/punchlistd/engine/"
_NET = "daemon/punchlistd/net/"

MUTANTS = (
    Mutant(
        "zeros are no erasure",
        _STORE + "lines.py",
        "iif({typed}, log.sum, {SPOILED})",
        "iif({typed}, log.sum, 0)",
        ("tests/daemon/store/test_reading.py",),
    ),
    Mutant(
        "a lost stretch of the log is told",
        _STORE + "reading.py",
        "                        yield lost(due, row[1] - 1)\n",
        "                        pass\n",
        ("tests/daemon/store/test_reading.py",),
    ),
    Mutant(
        "history that is cut is not taken for the whole",
        _ENGINE + "history.py",
        'raise Damaged(conversation, until, f"the events behind {after} are missing")',
        "break",
        ("tests/daemon/engine/test_history.py",),
    ),
    Mutant(
        "copies that killed programs left are removed",
        "daemon/punchlistd/leftovers.py",
        "                shutil.rmtree(path)\n",
        "                pass\n",
        ("tests/daemon/test_leftovers.py",),
    ),
    Mutant(
        "a copy that is in use is left alone",
        "daemon/punchlistd/leftovers.py",
        "        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        ("tests/daemon/test_leftovers.py",),
    ),
    Mutant(
        "an index that can't be read gives way to the log",
        _STORE + "doubt.py",
        '        if not _scanned(log, "some conversations"):\n            raise\n',
        "        raise\n",
        ("tests/daemon/store/test_rebuild.py",),
    ),
    Mutant(
        "an index that can't be read is built again",
        _ENGINE + "registry.py",
        "            await self._log.rebuild()\n",
        "            raise\n",
        ("tests/journeys/test_damage.py",),
    ),
    Mutant(
        "the tail in memory forgets what was erased",
        _ENGINE + "fanout.py",
        "        if erased:\n",
        "        if False:\n",
        ("tests/daemon/engine/test_fanout.py",),
    ),
    Mutant(
        "a used up quota is a full disk",
        _STORE + "operations.py",
        "not (code in _UNWRITTEN and self._is_full())",
        "True",
        ("tests/daemon/store/test_sqlite.py",),
    ),
    Mutant(
        "a confirmation token is good once",
        _ENGINE + "confirm.py",
        "                    del self._asked[token]\n                    return None\n",
        "                    return None\n",
        ("tests/daemon/engine/test_confirm.py",),
    ),
    Mutant(
        "a confirmation token is for what was shown",
        _ENGINE + "confirm.py",
        "asked.call == call and asked.seen == seen and",
        "asked.call == call and",
        ("tests/daemon/engine/test_confirm.py",),
    ),
    Mutant(
        "a confirmation token is of the user who was asked",
        _ENGINE + "confirm.py",
        "if asked is None or user not in (None, asked.user) or now >= asked.expires:",
        "if asked is None or now >= asked.expires:",
        ("tests/daemon/engine/test_confirm.py",),
    ),
    Mutant(
        "a model does not answer in the moment in which it asked",
        _ENGINE + "confirm.py",
        "if params.answered or process != asked.process or now >= asked.valid:",
        "if True:",
        ("tests/daemon/engine/test_confirm.py",),
    ),
    Mutant(
        "scope comes before the key, also for what the same batch has opened",
        _ENGINE + "decider.py",
        "item.outcome = refused(item.caller.user, item.params.conversation, opened.state)",
        "item.outcome = None",
        ("tests/daemon/engine/test_access.py",),
    ),
    Mutant(
        "another user's conversation is not even loaded",
        _ENGINE + "access.py",
        "if owner not in (None, user) or (owner is None and _is_reserved(user, name)):",
        "if owner is None and _is_reserved(user, name):",
        ("tests/daemon/engine/test_access.py",),
    ),
    Mutant(
        "another user's own list can't be opened",
        _ENGINE + "access.py",
        'return user is not None and id.startswith(_OF) and not id.startswith(own_id(user, ""))',
        "return False",
        ("tests/daemon/engine/test_access.py",),
    ),
    Mutant(
        "the status is that of the user",
        "daemon/punchlistd/report.py",
        "    if user is None:\n        return whole\n",
        "    if user is not None:\n        return whole\n",
        ("tests/daemon/test_report.py",),
    ),
    Mutant(
        "a tombstone tells its owner alone",
        _ENGINE + "access.py",
        "return side_of(event).owner == user",
        "return event.conversation in names",
        ("tests/daemon/engine/test_access.py",),
    ),
    Mutant(
        "commits are flushed",
        _STORE + "schema.py",
        '("synchronous", "FULL", 2)',
        '("synchronous", "NORMAL", 1)',
        ("tests/daemon/store/test_operations.py", POWER),
    ),
    Mutant(
        "a live daemon's socket is not unlinked",
        _NET + "listener.py",
        "            try:\n                sock.bind(address)\n",
        "            try:\n"
        "                with contextlib.suppress(OSError):\n"
        "                    os.unlink(self._name, dir_fd=self._directory)\n"
        "                sock.bind(address)\n",
        ("tests/daemon/net/test_listener.py",),
    ),
    Mutant(
        "the lock's file is never unlinked",
        "daemon/punchlistd/lock.py",
        '"""Let the lock go; the file stays."""\n',
        '"""Let the lock go."""\n        os.unlink(self.path)\n',
        ("tests/daemon/test_lock.py",),
    ),
    Mutant(
        "a lock on a replaced file does not count",
        "daemon/punchlistd/lock.py",
        "        if self.still_ours():\n            return True\n",
        "        return True\n",
        ("tests/daemon/test_lock.py",),
    ),
    Mutant(
        "the file that is written ahead has its name at each commit",
        _STORE + "files.py",
        "os.readlink(self._link, dir_fd=self._files) != self._name",
        "not self._name",
        ("tests/daemon/store/test_files.py",),
    ),
    Mutant(
        "names and inodes are compared before a commit",
        _STORE + "files.py",
        "for path, known in self._known.items():",
        "for path, known in {}.items():",
        ("tests/daemon/store/test_files.py", "tests/daemon/store/test_sqlite.py"),
    ),
    Mutant(
        "a conversation is a chain",
        _STORE + "record.py",
        '    return _link(previous_check, content, content[: content.find(b"\\t")]).encode() == check\n',
        "    return True\n",
        ("tests/daemon/store/test_record.py",),
    ),
    Mutant(
        "a row is compared with its checksum",
        _STORE + "lines.py",
        "    if zlib.crc32(body) != total:\n",
        "    if total is None:\n",
        (DAMAGE, "tests/daemon/store/test_reading.py"),
    ),
    Mutant(
        "the mark is kept outside the log",
        _STORE + "operations.py",
        "                self.mark.write(self.epoch, last, total)\n",
        "",
        (DAMAGE, "tests/daemon/store/test_sqlite.py"),
    ),
    Mutant(
        "a file that was cut short is refused",
        _STORE + "sqlite.py",
        "        whole.check_pages(path)\n",
        "",
        ("tests/daemon/store/test_whole.py",),
    ),
    Mutant(
        "an index that finds nothing is built again",
        _STORE + "sqlite.py",
        "        if operations.doubtful:\n            _rebuild(operations)\n",
        "        if False:\n            _rebuild(operations)\n",
        ("tests/daemon/store/test_whole.py",),
    ),
    Mutant(
        "a new log is complete before it has its name",
        _STORE + "schema.py",
        '        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()\n    publish',
        "    publish",
        (SYSCALL,),
    ),
    Mutant(
        "a failed write ends everything",
        _STORE + "operations.py",
        "& 0xFF != sqlite3.SQLITE_FULL and",
        "& 0xFF == -1 and",
        ("tests/daemon/store/test_sqlite.py", SYSCALL),
    ),
    Mutant(
        "nothing is put in the place of another file",
        _STORE + "files.py",
        "        os.link(finished, path)\n",
        '        os.replace(finished, path)\n        open(finished, "wb").close()\n',
        ("tests/daemon/store/test_files.py", "tests/daemon/store/test_backup.py"),
    ),
    Mutant(
        "a newer log is refused",
        _STORE + "schema.py",
        "    if not 0 < version <= newest:\n",
        "    if version < 0:\n",
        ("tests/daemon/store/test_schema.py",),
    ),
    Mutant(
        "what is erased is not left in a snapshot",
        _STORE + "erase.py",
        '    execute("DELETE FROM snapshots WHERE conversation = ? AND seq < ?", (number, tombstone))\n',
        "",
        ("tests/daemon/store/test_erase.py", "tests/daemon/store/test_port.py"),
    ),
    Mutant(
        "the answer comes after the commit",
        _ENGINE + "writer.py",
        "                stored = await self._append_while_publishing(batch, done)\n",
        "                asyncio.ensure_future(self._append(batch))\n"
        "                self._publish(done)\n"
        "                stored = True\n",
        (ACK,),
    ),
    Mutant(
        "the push comes after the commit",
        _ENGINE + "writer.py",
        "            await self._log.append(batch.entries)\n",
        "            self._fanout.publish(batch.lines, batch.head)\n"
        "            await self._log.append(batch.entries)\n",
        (ACK,),
    ),
    Mutant(
        "keys are known after a restart",
        _ENGINE + "decider.py",
        "opened.keys = set(await self._log.keys(name))",
        "opened.keys = set()",
        (ACK, CRASH),
    ),
    Mutant(
        "a key belongs to one call",
        _ENGINE + "repeats.py",
        "side_of(group[0]).call not in (item.call, item.asked):\n",
        "side_of(group[0]).call is None:\n",
        ("tests/daemon/engine/test_repeats.py",),
    ),
    Mutant(
        "a read waits for the commit it would show",
        _ENGINE + "reads.py",
        "        if opened is None or opened.dirty:\n",
        "        if opened is None:\n",
        ("tests/daemon/engine/test_reads.py", "tests/daemon/engine/test_writer.py"),
    ),
    Mutant(
        "nothing is queued for who does not read",
        _ENGINE + "fanout.py",
        "        if self._telling:\n",
        "        if not subscription.over:\n            return\n        if self._telling:\n",
        (ACK, STUCK),
    ),
    Mutant(
        "a connection that was closed meanwhile is not subscribed",
        _NET + "server.py",
        "        if session.is_gone:\n            return HUNG_UP\n",
        "",
        ("tests/daemon/engine/test_fanout.py",),
    ),
    Mutant(
        "a call is pushed whole",
        _ENGINE + "fanout.py",
        "                if size >= self._chunk and line.left == 0:\n",
        "                if size >= self._chunk:\n",
        (ACK,),
    ),
    Mutant(
        "what is durable but not published is not pushed twice",
        _ENGINE + "fanout.py",
        "        stored = [event for event in stored if event.seq <= self.head]\n",
        "",
        (ACK, "tests/daemon/engine/test_fanout.py"),
    ),
    Mutant(
        "a position of another log is refused",
        _ENGINE + "reads.py",
        "        if epoch is not None and epoch != self.epoch:\n",
        "        if epoch == self.epoch is None:\n",
        ("tests/daemon/engine/test_reads.py", "tests/daemon/net/test_server.py"),
    ),
    Mutant(
        "task numbers are not used again",
        "daemon/punchlistd/domain/evolve.py",
        "state.next_task = number + 1",
        "state.next_task = len(tasks) + 1",
        ("tests/daemon/domain/test_evolve.py", "tests/daemon/domain/test_properties.py"),
    ),
    Mutant(
        "a circle of blockers is refused",
        "daemon/punchlistd/domain/decide/add.py",
        "    return None if path is None else cycle(path)\n",
        "    return None\n",
        ("tests/daemon/domain/decide/test_add.py", "tests/daemon/domain/decide/test_edit.py"),
    ),
    Mutant(
        "nesting is counted before it is decoded",
        "schemas/punchlist_schemas/guard.py",
        '    if max(accumulate(memoryview(steps).cast("b")), default=0) > maximum:\n',
        "    if not steps:\n",
        ("tests/schemas/test_guard.py", "tests/schemas/test_malformed.py"),
    ),
    Mutant(
        "an endless line is refused",
        "schemas/punchlist_schemas/framing.py",
        '        if len(self._buffer) - self._buffer.endswith(b"\\r") > self._maximum:\n',
        "        if len(self._buffer) < 0:\n",
        ("tests/schemas/test_framing.py",),
    ),
    Mutant(
        "no control character reaches a terminal",
        "client/punchlist/text.py",
        "    return char.isprintable() and not any(",
        "    return code > 31 and not any(",
        (FUZZ,),
    ),
    Mutant(
        "another user is turned away",
        _NET + "session.py",
        "        if uid not in self.server.uids:\n",
        "        if uid < 0:\n",
        ("tests/daemon/net/test_session.py",),
    ),
    Mutant(
        "there is a limit to connections",
        _NET + "server.py",
        "        if len(self.sessions) >= maximum:\n",
        "        if len(self.sessions) < 0:\n",
        ("tests/daemon/net/test_server.py", "tests/daemon/net/test_session.py"),
    ),
    Mutant(
        "a dead callback ends the daemon",
        "daemon/punchlistd/guards.py",
        "                    self._first.set_result(error)\n",
        "                    pass\n",
        ("tests/daemon/test_guards.py",),
    ),
    Mutant(
        "a repeated call carries the same key",
        "client/punchlist/core.py",
        "        if isinstance(params, Mutation) and params.key is None:\n",
        "        if params is None:\n",
        ("tests/client/test_core.py", "tests/client/test_recovery.py"),
    ),
    Mutant(
        "a daemon with another lock than ours is refused",
        "client/punchlist/launch.py",
        "        if not self._means_data_dir or not inode:\n",
        "        if inode or not inode:\n",
        ("tests/client/test_launch.py",),
    ),
    Mutant(
        "a change without an answer is repeated with its key",
        "client/punchlist/cli/wire.py",
        '    key, _key = _key, ""\n',
        '    key, _key = "", ""\n',
        ("tests/client/cli/test_wire.py", "tests/client/cli/test_fast.py"),
    ),
    Mutant(
        "a forked child leaves its parent's connection alone",
        "client/punchlist/aio_link.py",
        "        if self._socket is not None:\n            self._socket.close()\n",
        "        self._transport.abort()\n",
        ("tests/client/test_forks.py",),
    ),
    Mutant(
        "a forked child holds no claim of its parent",
        "client/punchlist/work.py",
        "        self._held = self._renewing = None\n",
        "        pass\n",
        ("tests/client/test_forks.py",),
    ),
    Mutant(
        "a request that the daemon can't read is not sent",
        "client/punchlist/core.py",
        "            guard.parse(payload, self._limits.depth)\n",
        "",
        ("tests/client/test_core.py", "tests/client/test_aio.py"),
    ),
    Mutant(
        "a finalizer waits for nothing",
        "client/punchlist/work.py",
        "            renewing.get_loop().call_soon_threadsafe(_forget, renewing, self._connection, request)\n",
        "            asyncio.run_coroutine_threadsafe(self.release(), renewing.get_loop()).result(5)\n",
        ("tests/client/test_sync.py",),
    ),
    Mutant(
        "an unfinished erasure is finished at the next start",
        "daemon/punchlistd/app.py",
        "                await log.erase(name)\n",
        "                pass\n",
        ("tests/daemon/test_app.py::test_an_erasure_that_a_kill_cut_short_is_finished_at_the_next_start",),
    ),
    Mutant(
        "a title never becomes an option of the command",
        "client/punchlist/cli/runner/command.py",
        '        if filled.startswith("-"):\n',
        '        if filled.startswith("\\0"):\n',
        ("tests/client/cli/runner/test_command.py", "tests/client/cli/commands/test_run.py"),
    ),
    Mutant(
        "what a stopped command has started is killed with it",
        "client/punchlist/cli/runner/child.py",
        "        if self._kill_at is not None:\n            await self._group_gone()\n",
        "",
        ("tests/client/cli/runner/test_child.py",),
    ),
    Mutant(
        "claims outlive a machine that stood still",
        _ENGINE + "leases.py",
        "        stood_still = now - due > _STANDSTILL_S\n",
        "        stood_still = False\n",
        ("tests/daemon/engine/test_leases.py",),
    ),
    Mutant(
        "a claim ends once",
        _ENGINE + "leases.py",
        "            lease.asked = True  # it may be queued more than once\n",
        "",
        ("tests/daemon/engine/test_leases.py",),
    ),
    Mutant(
        "a kept claim is its owner's alone",
        _ENGINE + "leases.py",
        "            may = not finishes or command.actor == lease.owner or (is_holder and params.actor is None)\n",
        "            may = True\n",
        ("tests/daemon/engine/test_leases.py",),
    ),
    Mutant(
        "a worktree is one that its repository knows",
        _SCHEMAS + "repository.py",
        "    if not known or os.path.realpath(os.path.join(git, back)) != path:\n",
        "    if not known and os.path.realpath(os.path.join(git, back)) != path:\n",
        ("tests/schemas/test_repository.py",),
    ),
    Mutant(
        "a .git file claims no repository that does not point back",
        _SCHEMAS + "repository.py",
        "git if confirmed else path)",
        "git if confirmed or path else path)",
        ("tests/schemas/test_repository.py",),
    ),
    Mutant(
        "a project file is no link",
        _SCHEMAS + "project_file.py",
        "_OPEN = os.O_RDONLY | os.O_NOFOLLOW |",
        "_OPEN = os.O_RDONLY |",
        ("tests/schemas/test_project_file.py",),
    ),
    Mutant(
        "a cloned project file names no list of yours unasked",
        "client/punchlist/project.py",
        "    if version or meant.conversation == OUTSIDE:\n",
        "    if version and meant.conversation == OUTSIDE:\n",
        ("tests/client/test_project.py", "tests/client/tools/test_toolbox.py"),
    ),
    Mutant(
        "no session takes a claimed task away from another",
        "client/punchlist/tools/claims.py",
        "    if task.fence is not None and of_others(desk, [task]):\n",
        "    if task.fence is None and of_others(desk, [task]):\n",
        ("tests/client/tools/test_claims.py",),
    ),
    Mutant(
        "agents have no list outside of a project",
        "client/punchlist/tools/toolbox.py",
        "        found = project.of_directory(os.environ, seat.directory)\n",
        '        found = project.of_directory(os.environ, seat.directory) or ("default", None)\n',
        ("tests/client/tools/test_toolbox.py",),
    ),
    Mutant(
        "an idle list is cleared as it was seen",
        _ENGINE + "idle.py",
        "TurnEnd(conversation=name, expect_version=version)",
        "TurnEnd(conversation=name)",
        ("tests/daemon/engine/test_idle.py",),
    ),
    Mutant(
        "a finished list is cleared after a restart too",
        _ENGINE + "upkeep.py",
        "                    await self._registry.load(name)  # its time begins\n",
        "                    pass\n",
        ("tests/daemon/engine/test_idle.py",),
    ),
    Mutant(
        "a list that is cut at damage says so",
        _ENGINE + "registry.py",
        "        opened.cut = Damage(damaged.seq, damaged.reason)\n",
        "",
        ("tests/journeys/test_damage.py", "tests/client/cli/commands/test_reading.py"),
    ),
)
