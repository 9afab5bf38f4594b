import pickle


class Thing:
    def __init__(self, value):
        self.value = value


copy = pickle.loads(pickle.dumps(Thing(5)))
print(copy.value, type(copy), copy.__class__.__module__)
