import weakref


class Loud:
    def __del__(self):
        print("del")


def build():
    loud = Loud()
    loud.me = loud


build()
kept = Loud()
weakref.finalize(kept, print, "finalised")
print("end")
