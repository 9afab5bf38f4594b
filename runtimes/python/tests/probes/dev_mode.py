# probe: options="-X dev -W error"
import json
import sys

print(sys.flags.dev_mode)


class Loud:
    def __del__(self):
        print("del")


json.kept = Loud()
json.file = open(__file__)
