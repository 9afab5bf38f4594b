# probe: env=TZ=
import datetime
import time

print(time.tzname, datetime.datetime.fromtimestamp(0).astimezone().tzname())
