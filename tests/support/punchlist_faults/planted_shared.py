"""The planted bugs of lists that machines share."""

from punchlist_faults.mutant import Mutant

_SHARED = "daemon/punchlistd/replication/"
_SIMULATION = ("tests/daemon/replication/test_simulation.py",)
_LANE = ("tests/daemon/replication/lanes/test_lane.py",)
_TURNS = (
    "tests/daemon/replication/lanes/test_lane.py::"
    "test_a_far_machine_has_its_turns_beside_two_that_never_stop_and_nobody_loses_many_posts",
)

_REPAIR = "tests/daemon/replication/posts/test_repair.py"

MUTANTS = (
    Mutant(
        "a repetition of what may be in is not told that nothing was written",
        _SHARED + "lanes/lane.py",
        'if rejection.kind == "unreachable" and write.params.key in self._unknown:',
        "if False:",
        _LANE,
    ),
    Mutant(
        "a post names the position that it was decided on",
        _SHARED + "posts/posting.py",
        "return await log.post(list, expected, nonce, body)",
        "return await log.post(list, await log.last(list), nonce, body)",
        _SIMULATION,
    ),
    Mutant(
        "the position that a post names is that of the state it was decided on",
        _SHARED + "lanes/lane.py",
        """        opened = await self.replica.opened()
        if opened is None:
            return 0
        draft = self._draft
        if draft is None or draft.place != opened.place or draft.steps:
            draft = self._draft = Draft(opened, self._parts.transactor, self._log.member)
""",
        """        opened = await self._parts.conversations.durable(self.conversation)
        draft = self._draft = Draft(opened, self._parts.transactor, self._log.member)
        draft.place = self.replica.place or draft.place
""",
        _SIMULATION,
    ),
    Mutant(
        "a post whose outcome is unknown is not taken for done",
        _SHARED + "posts/posting.py",
        "                    failed = unknown = error\n",
        "                    return expected + 1\n",
        _SIMULATION,
    ),
    Mutant(
        "a post whose outcome is unknown is not taken for one that is not in",
        _SHARED + "posts/posting.py",
        'raise unknown or OutcomeUnknown("The server did not answer in time.") from None\n',
        "raise Unreachable(str(unknown)) from None\n",
        (*_LANE, *_SIMULATION),
    ),
    Mutant(
        "a conflict is believed only if another post is there",
        _SHARED + "posts/posting.py",
        "            if behind[0].nonce == nonce:\n",
        "            if False:\n",
        (*_LANE, *_SIMULATION),
    ),
    Mutant(
        "a conflict that nobody confirmed is not told as nothing written",
        _SHARED + "posts/posting.py",
        '                    failed, unknown = error, OutcomeUnknown(f"{error} Nobody could say which one.")\n',
        "                    raise Unreachable(str(error)) from error\n",
        _LANE,
    ),
    Mutant(
        "what changes nothing rests on the newest state",
        _SHARED + "lanes/lane.py",
        "current = not asked or await self._log.is_current(self.conversation, place.position)",
        "current = True",
        _LANE,
    ),
    Mutant(
        "what arrives follows the state that it is applied to",
        "daemon/punchlistd/engine/writing/transaction.py",
        "opened.damage is not None or opened.place != arrival.behind",
        "opened.damage is not None",
        _LANE,
    ),
    Mutant(
        "a long call on a shared list is decided in slices",
        _SHARED + "lanes/lane.py",
        "                await in_slices(draft.deciding(item))\n",
        "                for _ in draft.deciding(item):\n                    pass\n",
        _LANE,
    ),
    Mutant(
        "a long post is recorded in slices",
        "daemon/punchlistd/engine/writing/transaction.py",
        "            if sum(len(step.events) for step in item.steps) > MOST_PARTS:\n",
        "            if False:\n",
        _LANE,
    ),
    Mutant(
        "what was worked out for a draft holds for it alone",
        "daemon/punchlistd/engine/writing/transaction.py",
        "        item.command = asked  # what was worked out holds for this state alone\n",
        "",
        _LANE,
    ),
    Mutant(
        "a call that is being decided for a post is answered when the daemon stops",
        _SHARED + "lanes/lane.py",
        "            self._end(draft, SHUTTING_DOWN)\n",
        "            pass\n",
        _LANE,
    ),
    Mutant(
        "a push is taken only behind the post that it follows",
        _SHARED + "lanes/replica.py",
        "        self._held[posted.before] = posted\n",
        "        self._held[self.place.position] = posted\n",
        _LANE,
    ),
    Mutant(
        "a post that does not follow is refused",
        _SHARED + "posts/posts.py",
        "if envelope.check != head_of(behind.check, envelope.version, bytes(envelope.groups), fresh=fresh):",
        "if False:",
        _LANE,
    ),
    Mutant(
        "who was cut off ends nobody's claim",
        _SHARED + "lanes/replica.py",
        "            self._returned()  #",
        "            pass  #",
        _LANE,
    ),
    Mutant(
        "what was not heard while cut off proves nothing",
        _SHARED + "lanes/members.py",
        "        for member in self._members.values():\n",
        "        for member in list[Member]():\n",
        _LANE,
    ),
    Mutant(
        "a machine that lives keeps its claims",
        _SHARED + "lanes/lanes.py",
        "kept = tuple(name for name in followed if self._leases.keeps(name))",
        "kept = ()",
        _LANE,
    ),
    Mutant(
        "a claim of another machine is not finished from here without its number",
        "daemon/punchlistd/engine/claims/leases.py",
        "        return self.member(claim.keeper, conversation) if claim.keeper else None",
        "        return None",
        _LANE,
    ),
    Mutant(
        "pushes that are lost are found by comparing positions",
        _SHARED + "lanes/lanes.py",
        "if lane.replica.is_behind(last):",
        "if False:",
        _LANE,
    ),
    Mutant(
        "what a space lost is told as lost",
        _SHARED + "lanes/replica.py",
        "if ends_at < self._version and (last is None or ends_at) and not is_begun_anew:",
        "if False:",
        _LANE,
    ),
    Mutant(
        "a replica goes on where its last post stands now",
        _SHARED + "lanes/replica.py",
        "            if has_check(posted.body, place.check):\n                await",
        "            if False:\n                await",
        _LANE,
    ),
    Mutant(
        "posts are put back only behind those that are the same",
        _SHARED + "posts/history.py",
        "            if not has_check(there.body, check):\n",
        "            if False:\n",
        _LANE,
    ),
    Mutant(
        "who may erase finishes what another machine deleted",
        _SHARED + "lanes/lane.py",
        "self._erasing = max(self._erasing, await self._deleted_at())",
        "pass",
        _LANE,
    ),
    Mutant(
        "the deletion of a copy is forgotten before the list is joined anew",
        "daemon/punchlistd/store/file/erase.py",
        "        _erase(log, conversation, tombstone + 1)\n",
        "        _erase(log, conversation, tombstone)\n",
        ("tests/daemon/store/file/test_erase.py",),
    ),
    Mutant(
        "what comes behind the deletion of a copy waits until its name is free",
        _SHARED + "lanes/lane.py",
        "                self.gone = True\n",
        "",
        ("tests/daemon/replication/test_sharing.py",),
    ),
    Mutant(
        "a list whose copy was erased is left no more after a kill",
        _SHARED + "sharing.py",
        "        for one in await self._erased():\n            if await self._save(self._without(one)) is None:\n",
        "        for one in ():\n            if await self._save(self._without(one)) is None:\n",
        ("tests/daemon/replication/test_sharing.py",),
    ),
    Mutant(
        "a space on PostgreSQL that was added can be checked again to put a list back",
        _SHARED + "adapters/postgres/check.py",
        '("--replicas", space.replicas > 1)',
        '("--replicas", space.replicas)',
        ("tests/daemon/replication/adapters/postgres/test_sharing_postgres.py",),
    ),
    Mutant(
        "a read waits for the version that it asks for",
        "daemon/punchlistd/engine/reading/queries.py",
        "while not isinstance(opened, Rejection) and opened.state.version < version:",
        "if False:",
        ("tests/daemon/net/test_methods.py",),
    ),
    Mutant(
        "who follows a list is told how it stands",
        _SHARED + "lanes/replica.py",
        "        self._parts.show(self.conversation)\n",
        "",
        _LANE,
    ),
    Mutant(
        "a list that is behind for a moment is shown as current",
        _SHARED + "lanes/replica.py",
        "call_later(BEHIND_S, self._show_state)",
        "call_later(0, self._show_state)",
        _LANE,
    ),
    Mutant(
        "nobody is shown how another user's list stands",
        "daemon/punchlistd/engine/watching/subscriptions.py",
        "lambda each: _shows_lists(each) and _may_see(each, state.user)",
        "_shows_lists",
        _LANE,
    ),
    Mutant(
        "how a list stands is handed out though its log did not go on",
        "client/punchlist/calls/cursor.py",
        "again = self._view.repeats or standing != self._standing",
        "again = self._view.repeats",
        ("tests/client/punchlist/calls/test_cursor.py",),
    ),
    Mutant(
        "who asked first is let in first",
        _SHARED + "lanes/turns.py",
        "waits = self._own in self._line and next(iter(self._line)) != self._own",
        "waits = False",
        ("tests/daemon/replication/lanes/test_turns.py",),
    ),
    Mutant(
        "those who are answered together post together",
        _SHARED + "lanes/lane.py",
        "while len(self._queue) < self._company:",
        "while False:",
        _LANE,
    ),
    Mutant(
        "who has less of a list puts nothing back",
        _SHARED + "sharing.py",
        "            if version > own:\n",
        "            if False:\n",
        ("tests/daemon/replication/test_sharing.py",),
    ),
    Mutant(
        "leases judge only what is published",
        _SHARED + "lanes/draft.py",
        "return not (self._claims_changed and isinstance(params, _JUDGED))",
        "return True",
        _LANE,
    ),
    Mutant(
        "a row follows the last one of its list",
        _SHARED + "adapters/postgres/log.py",
        "WHERE $2 = (SELECT coalesce(max(n), 0) FROM {table} WHERE list = $1 AND n > 0)",
        "WHERE $2::bigint >= 0",
        ("tests/daemon/replication/test_port.py",),
    ),
    Mutant(
        "a post that does not say what it follows is no post",
        _SHARED + "adapters/nats/stream.py",
        "    if before is None:\n",
        "    if False:\n",
        (_REPAIR,),
    ),
    Mutant(
        "a subject of two words is no list's",
        _SHARED + "adapters/nats/stream.py",
        ' or "." in name',
        "",
        ("tests/daemon/replication/adapters/nats/test_nats.py::test_a_post_to_another_subject_is_in_no_list",),
    ),
    Mutant(
        "a message that the client library can't decode ends no connection",
        _SHARED + "adapters/nats/link.py",
        "_readable(subject), _readable(reply)",
        "subject, reply",
        ("tests/daemon/replication/adapters/nats/test_nats.py::test_a_post_to_another_subject_is_in_no_list",),
    ),
    Mutant(
        "JSON of others that is nested too deep is refused as any other",
        _SHARED + "posts/foreign.py",
        "(ValueError, RecursionError, Refused)",
        "(ValueError,)",
        (
            "tests/daemon/replication/adapters/postgres/test_postgres.py::test_rubbish_of_others_is_left_and_what_follows_is_heard",
        ),
    ),
    Mutant(
        "integers of a post are as small as those of a call",
        _SHARED + "posts/posts.py",
        "        check_limits(posted.body, MAX_DEPTH)\n",
        "",
        (_REPAIR,),
    ),
    Mutant(
        "a reply that names no position is no word that a post is stored",
        _SHARED + "adapters/nats/stream.py",
        "    if reply.error is None and reply.seq < 1:",
        "    if False:",
        ("tests/daemon/replication/adapters/nats/test_nats.py::test_an_unreadable_reply_is_a_typed_error",),
    ),
    Mutant(
        "what may follow a lost post is not removed unasked",
        _SHARED + "posts/repair.py",
        "    return posted.before in judged and not begins_anew(posted.body)",
        "    return True",
        (_REPAIR,),
    ),
    Mutant(
        "a deletion that somebody may have followed is not removed unasked",
        _SHARED + "posts/repair.py",
        "posted.before in judged and not begins_anew(posted.body)",
        "posted.before in judged",
        (_REPAIR,),
    ),
    Mutant(
        "removing a post spares another one in its place",
        _SHARED + "adapters/postgres/log.py",
        " AND coalesce(left(post.nonce, {max_nonce}), '') = gone.nonce",
        "",
        ("tests/daemon/replication/test_port.py::test_only_the_removed_post_is_gone",),
    ),
    Mutant(
        "what is read from a primary is on its standby, too",
        _SHARED + "adapters/postgres/log.py",
        """        await connection.ask(f"SELECT {_BARRIER}")
        return found
""",
        "        return found\n",
        ("tests/daemon/replication/adapters/postgres/test_postgres.py",),
    ),
    Mutant(
        "a connection that ended over a post is no word that the post is not in",
        _SHARED + "adapters/postgres/link.py",
        """        self.end("it was cut")
        return OutcomeUnknown(""",
        """        self.end("it was cut")
        return Unreachable(""",
        ("tests/daemon/replication/test_port.py",),
    ),
    Mutant(
        "off this machine PostgreSQL is asked for TLS",
        _SHARED + "adapters/postgres/link.py",
        "if space.ca or not is_loopback(at.host) else False",
        "if space.ca else False",
        ("tests/daemon/replication/adapters/postgres/test_postgres.py",),
    ),
    Mutant(
        "whoever is refused because the server is away makes the way be tried again",
        _SHARED + "adapters/link_keeper.py",
        """            self.hurry()
            raise Unreachable(""",
        """            raise Unreachable(""",
        (
            "tests/daemon/replication/test_port.py::"
            "test_whoever_is_refused_because_the_server_is_away_makes_the_way_be_tried_again",
        ),
    ),
    Mutant(
        "what was asked while no server led is asked again",
        _SHARED + "adapters/nats/link.py",
        "timeout=None if once else ASKED_AGAIN_S",
        "timeout=None",
        (
            "tests/daemon/replication/adapters/nats/test_nats.py::test_a_question_that_is_not_answered_is_asked_again_and_a_post_is_not",
        ),
    ),
    Mutant(
        "who lost a post, or sees others in line, asks for a turn",
        _SHARED + "lanes/turns.py",
        "        return self._stood\n",
        "        return False\n",
        _TURNS,
    ),
    Mutant(
        "a turn ends when the post is heard of, not once it is followed",
        _SHARED + "lanes/lane.py",
        "        self._turns.had(poster_of(posted.nonce))",
        "        pass",
        _TURNS,
    ),
    Mutant(
        "a conflict with what was pushed is none if that is the post itself",
        _SHARED + "posts/posting.py",
        "is not None and other.nonce != nonce:\n",
        "is not None:\n",
        (*_LANE, *_SIMULATION),
    ),
)
