def deeper(n):
    if n == 0:
        return 1 / 0
    return deeper(n - 1)


deeper(3)
