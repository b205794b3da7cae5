"""python mysql-replication as a reader of Cohort's stream: `client.py PORT file FILE OFFSET` or `client.py PORT gtid GTID`.

What it prints is described in main.rs. It ends with its connection: whoever started it starts it again at the position he has kept.
"""

import datetime
import sys

from pymysqlreplication import BinLogStreamReader, binlogstream
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

# A reader that reconnects by itself would start inside of the transaction that was cut.
binlogstream.MYSQL_EXPECTED_ERROR_CODES = []


def say(*words):
    print(*words, sep="\t", flush=True)


def as_bytes(column, value):
    if isinstance(value, bytes):
        return value
    if column == "bits":
        value = int(value, 2)
    elif isinstance(value, set):
        value = ",".join(sorted(value))
    elif isinstance(value, datetime.datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S.%f")
    elif isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        seconds, micros = divmod(abs(micros), 1_000_000)
        sign = "-" if value.days < 0 else ""
        value = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return str(value).encode()


def row(values):
    return " ".join("-" if value is None else as_bytes(name, value).hex() or "=" for name, value in values.items())


def tell(stream, event, gtid):
    if isinstance(event, WriteRowsEvent):
        for change in event.rows:
            say("insert", event.table, row(change["values"]))
    elif isinstance(event, UpdateRowsEvent):
        for change in event.rows:
            say("update", event.table, row(change["before_values"]), row(change["after_values"]))
    elif isinstance(event, DeleteRowsEvent):
        for change in event.rows:
            say("delete", event.table, row(change["values"]))
    elif isinstance(event, (XidEvent, QueryEvent)):
        say("commit", stream.log_file, stream.log_pos, gtid)


def main():
    port, kind, *start = sys.argv[1:]
    if kind == "file":
        start = {"log_file": start[0], "log_pos": int(start[1]), "resume_stream": True}
    else:
        start = {"auto_position": start[0], "is_mariadb": True}
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": int(port), "user": "root", "password": ""},
        server_id=71,
        blocking=True,
        slave_heartbeat=1,
        **start,
    )
    gtid = ""
    for event in stream:
        if isinstance(event, MariadbGtidEvent):
            gtid = event.gtid
            say("begin", gtid)
        else:
            tell(stream, event, gtid)


main()
