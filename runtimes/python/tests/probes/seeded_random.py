import random

random.seed(11)
print(random.random(), random.sample(range(100), 5), random.Random("text").random())
