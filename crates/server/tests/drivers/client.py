"""Logs in over TLS, verifies the server, asks what it is encrypted with, and calls a procedure.

client.py DRIVER PORT CA
"""

import sys

driver, port, ca = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if driver == "pymysql":
    import pymysql

    connection = pymysql.connect(
        host="localhost", port=port, user="driver", password="secret",
        ssl_ca=ca, ssl_verify_cert=True, ssl_verify_identity=True,
    )
else:
    import mysql.connector

    connection = mysql.connector.connect(
        host="localhost", port=port, user="driver", password="secret", use_pure=True,
        ssl_ca=ca, ssl_verify_cert=True, ssl_verify_identity=True,
    )
cursor = connection.cursor()
cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
print("encrypted", cursor.fetchone()[1])

# Both drivers pass parameters in user variables. PyMySQL leaves it to the caller to read them.
cursor.execute("USE test")
if driver == "pymysql":
    cursor.callproc("answer", (7, 5, None))
    rows = list(cursor.fetchall())
    cursor.nextset()
    cursor.execute("SELECT @_answer_1, @_answer_2")
    out = cursor.fetchone()
else:
    out = cursor.callproc("answer", (7, 5, None))[1:]
    rows = [row for result in cursor.stored_results() for row in result.fetchall()]
print("called", rows[0][0], *out)
try:
    cursor.callproc("refuse", ())
except Exception as error:
    print("refused", error.args[0])
