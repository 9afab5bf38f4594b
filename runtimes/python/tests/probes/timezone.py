# probe: env=TZ=Asia/Kathmandu
import time

print(time.tzname, time.timezone, time.localtime(0)[:6])
