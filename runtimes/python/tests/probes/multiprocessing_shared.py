import multiprocessing
from multiprocessing import shared_memory


def add(value, name):
    memory = shared_memory.SharedMemory(name)
    memory.buf[0] += 1
    memory.close()
    with value.get_lock():
        value.value += 1


if __name__ == "__main__":
    value = multiprocessing.Value("i", 40)
    memory = shared_memory.SharedMemory(create=True, size=8)
    processes = [multiprocessing.Process(target=add, args=(value, memory.name)) for _ in range(2)]
    for process in processes:
        process.start()
        process.join()
    print(value.value, memory.buf[0])
    memory.close()
    memory.unlink()
