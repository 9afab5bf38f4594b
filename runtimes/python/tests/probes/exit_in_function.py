def main():
    try:
        raise SystemExit(9)
    finally:
        print("finally")


main()
