class Loud:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name, Loud is not None)


_private = Loud("private")
first = Loud("first")
second = Loud("second")
cycle = Loud("cycle")
cycle.self = cycle
