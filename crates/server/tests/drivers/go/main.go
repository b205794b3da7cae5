// Logs in over TLS, verifies the server, asks what it is encrypted with, and calls a procedure: client PORT CA.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
)

func run(port, ca string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	if err := mysql.RegisterTLSConfig("own", &tls.Config{RootCAs: authorities, ServerName: "localhost"}); err != nil {
		return err
	}
	db, err := sql.Open("mysql", "driver:secret@tcp(localhost:"+port+")/?tls=own")
	if err != nil {
		return err
	}
	defer db.Close()
	var name, cipher string
	if err := db.QueryRow("SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		return err
	}
	fmt.Println("encrypted", cipher)
	return call(db)
}

// Calls a procedure as text and as a prepared statement, and reads its result set and its OUT parameter.
func call(db *sql.DB) error {
	connection, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer connection.Close()
	var first, second, out int
	one := func(to *int, query string, values ...any) error {
		rows, err := connection.QueryContext(context.Background(), query, values...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return fmt.Errorf("no row: %s", query)
		}
		if err := rows.Scan(to); err != nil {
			return err
		}
		for rows.NextResultSet() {
		}
		return rows.Err()
	}
	if err := one(&first, "CALL test.answer(7, @b, @c)"); err != nil {
		return err
	}
	if err := one(&out, "SELECT @c"); err != nil {
		return err
	}
	if err := one(&second, "CALL test.answer(?, @b, @c)", 8); err != nil {
		return err
	}
	fmt.Println("called", first, out, second)
	var refusal *mysql.MySQLError
	if _, err := connection.ExecContext(context.Background(), "CALL test.refuse()"); errors.As(err, &refusal) {
		fmt.Println("refused", refusal.Number)
	}
	return nil
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
