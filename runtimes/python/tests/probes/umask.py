# probe: umask=027
import os

print(oct(os.umask(0)))
