import concurrent.futures
import queue
import threading

local = threading.local()
jobs = queue.Queue()


def work(number):
    local.number = number
    jobs.put(number)
    return local.number * 2


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(work, range(100))))
print(jobs.qsize(), hasattr(local, "number"))
event = threading.Event()
timer = threading.Timer(0.01, event.set)
timer.start()
print(event.wait(10), threading.active_count() <= 2)


def last():
    print("a thread that is joined at the end", flush=True)


threading.Thread(target=last).start()
