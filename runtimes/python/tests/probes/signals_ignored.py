# probe: ignored=INT,HUP,CHLD,PIPE blocked=USR1,USR2
import signal

for number in sorted(signal.valid_signals()):
    print(int(number), signal.getsignal(number))
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
