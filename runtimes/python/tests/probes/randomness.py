import random
import secrets
import tempfile
import uuid

print(len({random.random() for _ in range(50)}), len(secrets.token_hex()), uuid.uuid4().version)
print(tempfile.gettempprefix(), random.Random(3).randint(1, 100))
