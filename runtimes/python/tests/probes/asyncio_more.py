import asyncio
import signal
import socket


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"over a socket\n")
    print(await reader.readline())
    writer.close()
    server.close()
    loop = asyncio.get_running_loop()
    print(await loop.run_in_executor(None, sum, [1, 2]))
    caught = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, caught.set)
    signal.raise_signal(signal.SIGUSR1)
    await caught.wait()
    print("caught", socket.has_dualstack_ipv6() in (True, False))
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.01)
    except asyncio.TimeoutError:
        print("timed out")


asyncio.run(main())
