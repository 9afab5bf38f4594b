print("never")
x = "ÿ"
