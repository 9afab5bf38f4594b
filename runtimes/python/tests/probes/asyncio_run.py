import asyncio


async def main():
    process = await asyncio.create_subprocess_exec("echo", "from a child")
    print("status", await process.wait())
    print(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))


asyncio.run(main())
