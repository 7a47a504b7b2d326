"""A FastAGI server by panoramisk: asks, plays, waits for a digit, writes down what it heard. Arguments: host, port."""

import asyncio
import sys

from panoramisk import fast_agi


async def steer(request):
    heard = dict(request.headers)
    answer = await request.send_command("ANSWER")
    exten = await request.send_command("GET VARIABLE EXTEN")
    played = await request.send_command("STREAM FILE low \"\"")
    await request.send_command("DATABASE PUT agi waits yes")
    digit = await request.send_command("WAIT FOR DIGIT 60000")
    wrong = await request.send_command("NONSENSE")
    told = " ".join(
        [
            heard["agi_network_script"],
            answer["result"][0],
            exten["result"][1],
            played["result"][0],
            chr(int(digit["result"][0])),
            str(wrong.get("status_code", wrong.get("error"))),
        ]
    )
    await request.send_command(f'DATABASE PUT agi panoramisk "{told}"')


async def main():
    application = fast_agi.Application(loop=asyncio.get_running_loop())
    application.add_route("steer/me", steer)
    server = await asyncio.start_server(application.handler, sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
