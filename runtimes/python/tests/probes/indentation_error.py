def f():
        pass
    pass
