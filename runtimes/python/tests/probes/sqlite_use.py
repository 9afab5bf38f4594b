import os
import sqlite3
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "base")
    connection = sqlite3.connect(path)
    connection.execute("create table t (a, b)")
    connection.executemany("insert into t values (?, ?)", [(n, str(n)) for n in range(5)])
    connection.commit()
    other = sqlite3.connect(path)
    print(other.execute("select sum(a), group_concat(b) from t").fetchone())
    try:
        other.execute("select * from nothing")
    except sqlite3.OperationalError as error:
        print(error)
    other.close()
    connection.close()
