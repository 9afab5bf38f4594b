import json


class Loud:
    def __del__(self):
        print("del in another module")


json.kept = Loud()
