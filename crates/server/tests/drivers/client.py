"""Logs in over TLS, verifies the server, and asks what it is encrypted with: client.py DRIVER PORT CA."""

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
