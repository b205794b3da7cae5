// Go go-mysql canal as a reader of Cohort's stream: `canal PORT file FILE OFFSET` or `canal PORT gtid GTID`.
//
// main.rs describes the output. The program exits when its connection ends; the test restarts it at the recorded position.
package main

import (
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-mysql-org/go-mysql/schema"
)

type teller struct {
	canal.DummyEventHandler
	gtid string
}

func asText(column schema.TableColumn, value any) string {
	switch column.Type {
	case schema.TYPE_ENUM:
		return column.EnumValues[value.(int64)-1]
	case schema.TYPE_SET:
		var members []string
		for at, member := range column.SetValues {
			if value.(int64)&(1<<at) != 0 {
				members = append(members, member)
			}
		}
		return strings.Join(members, ",")
	case schema.TYPE_TIME, schema.TYPE_DATETIME, schema.TYPE_TIMESTAMP:
		whole, fraction, _ := strings.Cut(value.(string), ".")
		return whole + "." + (fraction + "000000")[:6]
	}
	if bytes, isBytes := value.([]byte); isBytes {
		return string(bytes)
	}
	return fmt.Sprint(value)
}

func row(table *schema.Table, values []any) string {
	words := make([]string, len(values))
	for at, value := range values {
		words[at] = "-"
		if value != nil {
			if words[at] = hex.EncodeToString([]byte(asText(table.Columns[at], value))); words[at] == "" {
				words[at] = "="
			}
		}
	}
	return strings.Join(words, " ")
}

func (t *teller) OnRow(event *canal.RowsEvent) error {
	for at := 0; at < len(event.Rows); at++ {
		fmt.Printf("%s\t%s\t%s", event.Action, event.Table.Name, row(event.Table, event.Rows[at]))
		if event.Action == canal.UpdateAction {
			at++
			fmt.Printf("\t%s", row(event.Table, event.Rows[at]))
		}
		fmt.Println()
	}
	return nil
}

func (t *teller) OnGTID(_ *replication.EventHeader, event mysql.BinlogGTIDEvent) error {
	set, err := event.GTIDNext()
	if err == nil {
		t.gtid = set.String()
		fmt.Printf("begin\t%s\n", t.gtid)
	}
	return err
}

func (t *teller) commit(position mysql.Position) error {
	fmt.Printf("commit\t%s\t%d\t%s\n", position.Name, position.Pos, t.gtid)
	return nil
}

func (t *teller) OnXID(_ *replication.EventHeader, next mysql.Position) error {
	return t.commit(next)
}

func (t *teller) OnDDL(_ *replication.EventHeader, next mysql.Position, _ *replication.QueryEvent) error {
	return t.commit(next)
}

func try(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Flavor = "127.0.0.1:"+os.Args[1], "root", mysql.MariaDBFlavor
	config.ServerID = 72
	config.Dump.ExecutionPath = ""
	// A reader that reconnects by itself would start inside of the transaction that was cut.
	config.DisableRetrySync = true
	reader, err := canal.NewCanal(config)
	try(err)
	reader.SetEventHandler(&teller{})
	if os.Args[2] == "file" {
		offset, err := strconv.Atoi(os.Args[4])
		try(err)
		try(reader.RunFrom(mysql.Position{Name: os.Args[3], Pos: uint32(offset)}))
	} else {
		set, err := mysql.ParseGTIDSet(mysql.MariaDBFlavor, os.Args[3])
		try(err)
		try(reader.StartFromGTID(set))
	}
}
