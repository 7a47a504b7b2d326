"""Manager clients as sites have used them for years: log in, ask, place a call, hear how it ends. Prints one JSON object.

Arguments: pyst2|asterisk-ami, host, port, user, secret.
"""

import json
import sys
import threading

WAIT = 60


def with_pyst2(host, port, user, secret):
    from asterisk.manager import Manager

    seen, ended = {"events": []}, threading.Event()
    manager = Manager()
    manager.connect(host, port)

    def event(heard, _manager):
        seen["events"].append([heard.name, dict(heard.headers)])
        if heard.name == "Hangup" and heard.headers["Channel"].startswith("PJSIP/bob-"):
            ended.set()

    for name in ("Newchannel", "Newstate", "Hangup", "UserEvent", "OriginateResponse"):
        manager.register_event(name, event)
    seen["login"] = manager.login(user, secret).headers["Response"]
    seen["ping"] = manager.ping().headers["Response"]
    said = manager.command("core show version")
    seen["version"] = [said.data, said.headers]
    manager.send_action({"Action": "Setvar", "Variable": "FRUIT", "Value": "value"})
    seen["variable"] = manager.send_action({"Action": "Getvar", "Variable": "FRUIT"}).headers["Value"]
    placed = manager.originate(
        "PJSIP/bob", "event", "test", "1", caller_id="Pyst <7001>", run_async=True, variables={"COLOUR": "green"}
    )
    seen["originate"] = placed.headers["Response"]
    seen["ended"] = ended.wait(WAIT)
    seen["logoff"] = manager.logoff().headers["Response"]
    return seen


def with_asterisk_ami(host, port, user, secret):
    from asterisk.ami import AMIClient, SimpleAction

    seen, ended = {"events": []}, threading.Event()
    client = AMIClient(address=host, port=port, timeout=WAIT)
    seen["login"] = client.login(username=user, secret=secret).response.status

    def event(event, **_):
        seen["events"].append([event.name, dict(event.keys)])
        if event.name == "Hangup" and event.keys["Channel"].startswith("PJSIP/bob-"):
            ended.set()

    client.add_event_listener(event)

    def ask(name, **fields):
        return client.send_action(SimpleAction(name, **fields)).response

    seen["ping"] = ask("Ping").status
    seen["version"] = str(ask("Command", Command="core show version"))
    ask("Setvar", Variable="FRUIT", Value="value")
    seen["variable"] = ask("Getvar", Variable="FRUIT").keys["Value"]
    seen["originate"] = ask(
        "Originate",
        Channel="PJSIP/bob",
        Context="test",
        Exten="event",
        Priority=1,
        CallerID="Pyst <7001>",
        Variable="COLOUR=green",
        Async="true",
    ).status
    seen["ended"] = ended.wait(WAIT)
    seen["logoff"] = client.logoff().response.status
    return seen


which, host, port, user, secret = sys.argv[1:]
run = {"pyst2": with_pyst2, "asterisk-ami": with_asterisk_ami}[which]
print(json.dumps(run(host, int(port), user, secret)), flush=True)
