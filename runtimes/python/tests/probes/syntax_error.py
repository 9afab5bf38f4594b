print("never")
if True
    print("oops")
