print("\d" == "\\d", (1) is 1)
