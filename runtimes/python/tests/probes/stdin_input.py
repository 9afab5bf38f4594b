# probe: stdin="first\nsecond\n"
print(repr(input()))
print(repr(input("prompt> ")))
try:
    input()
except EOFError as error:
    print("end:", error)
