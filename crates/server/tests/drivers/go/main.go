// Logs in over TLS, verifies the server, and asks what it is encrypted with: client PORT CA.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
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
	return nil
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
