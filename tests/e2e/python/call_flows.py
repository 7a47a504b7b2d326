"""cacofonisk: puts calls together from events, and trips over every event that comes too early, too late or twice. Prints
what it made of the calls as one JSON object, once as many calls have ended as it was told.

Arguments: host, port, user, secret, calls.
"""

import json
import logging
import os
import sys

from cacofonisk.reporters import BaseReporter
from cacofonisk.runners.ami_runner import AmiRunner


class Complaints(logging.Handler):
    """Keeps warnings: a channel or a bridge that it has not heard of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


class Reporter(BaseReporter):
    """Keeps what cacofonisk reports."""

    def __init__(self, calls, complaints):
        self.calls, self.complaints, self.heard = calls, complaints, []

    def note(self, what, caller, others=()):
        self.heard.append([what, caller.name, sorted(other.name for other in others)])

    def on_b_dial(self, caller, targets):
        self.note("dial", caller, targets)

    def on_up(self, caller, target):
        self.note("up", caller, [target])

    def on_blind_transfer(self, caller, transferer, targets):
        self.note("blind", caller, [transferer, *targets])

    def on_attended_transfer(self, caller, transferer, target):
        self.note("attended", caller, [transferer, target])

    def on_hangup(self, caller, reason):
        self.note("hangup " + str(reason), caller)
        self.calls -= 1
        if self.calls == 0:
            print(json.dumps({"heard": self.heard, "complaints": self.complaints.said}), flush=True)
            os._exit(0)


host, port, user, secret, calls = sys.argv[1:]
complaints = Complaints()
logger = logging.getLogger("flows")
logger.addHandler(complaints)
runner = AmiRunner([f"tcp://{user}:{secret}@{host}:{port}"], Reporter(int(calls), complaints), logger=logger)
# An assertion of cacofonisk that does not hold ends the loop, not only its callback.


def broken(loop, context):
    print(json.dumps({"heard": [], "complaints": [str(context.get("exception") or context)]}), flush=True)
    os._exit(0)


runner.loop.set_exception_handler(broken)
runner.run()
