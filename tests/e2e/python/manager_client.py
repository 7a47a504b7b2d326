"""A manager client as sites write them: logs in, asks, places a call, listens. Prints what it saw as one JSON object.

Arguments: host, port, user, secret, plain|md5|wrong.
"""

import asyncio
import hashlib
import json
import sys

from panoramisk import Manager


def plain(message):
    """A message as plain data; a list of them as a list."""
    if isinstance(message, (list, tuple)):
        return [plain(part) for part in message]
    return {key: value for key, value in message.items()} | {"content": getattr(message, "content", "")}


async def connect(host, port):
    manager = Manager(loop=asyncio.get_running_loop(), host=host, port=port)
    connected = asyncio.get_running_loop().create_future()
    manager.on_connect = lambda _manager: connected.done() or connected.set_result(None)
    manager.connect()
    await connected
    return manager


async def login(manager, user, secret, how):
    action = {"Action": "Login", "Username": user, "Secret": secret, "Events": "on"}
    if how == "wrong":
        action["Secret"] = "not-" + secret
    if how == "md5":
        challenge = await manager.send_action({"Action": "Challenge", "AuthType": "MD5"})
        key = hashlib.md5((challenge["Challenge"] + secret).encode()).hexdigest()
        action = {"Action": "Login", "Username": user, "AuthType": "MD5", "Key": key, "Events": "on"}
    return await manager.send_action(action)


async def main(host, port, user, secret, how):
    seen = {"events": []}
    manager = await connect(host, int(port))
    ended = asyncio.get_running_loop().create_future()

    def event(_manager, message):
        seen["events"].append(plain(message))
        if message.event == "Hangup" and message["Channel"].startswith("PJSIP/bob-") and not ended.done():
            ended.set_result(None)

    manager.register_event("*", event)
    seen["login"] = plain(await login(manager, user, secret, how))
    if how == "wrong":
        print(json.dumps(seen))
        return

    async def ask(name, action, **options):
        seen[name] = plain(await asyncio.wait_for(manager.send_action(action, **options), 60))

    await ask("ping", {"Action": "Ping"})
    await ask("command", {"Action": "Command", "Command": "core show version"})
    await ask("setvar", {"Action": "Setvar", "Variable": "FRUIT", "Value": "apple"})
    await ask("getvar", {"Action": "Getvar", "Variable": "FRUIT"})
    await ask("unknown", {"Action": "Frobnicate"})
    await ask(
        "originate",
        {
            "Action": "Originate",
            "Channel": "PJSIP/bob",
            "Context": "test",
            "Exten": "event",
            "Priority": "1",
            "CallerID": "Manager <7000>",
            "Variable": "COLOUR=green",
            "Async": "true",
        },
        as_list=False,
    )
    await asyncio.wait_for(ended, 60)
    await ask("channels", {"Action": "CoreShowChannels"})
    await ask("status", {"Action": "Status"})
    await ask("logoff", {"Action": "Logoff"})
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 180))
