class Stop(KeyboardInterrupt):
    pass


raise Stop("now")
