// Logs in over TLS, verifies the server, and asks what it is encrypted with: client.js DRIVER PORT CA.
const fs = require('fs');
const [driver, port, ca] = process.argv.slice(2);
// Without an authority the server must prove with the password that the certificate is its own.
const ssl = ca === '-' ? { rejectUnauthorized: true } : { ca: fs.readFileSync(ca), rejectUnauthorized: true };
const options = { host: 'localhost', port: Number(port), user: 'driver', password: 'secret', ssl };

async function main() {
  const question = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
  if (driver === 'mysql2') {
    const connection = await require('mysql2/promise').createConnection(options);
    const [rows] = await connection.query(question);
    console.log('encrypted', rows[0].Value);
    await connection.end();
  } else {
    const connection = await require('mariadb').createConnection(options);
    const rows = await connection.query(question);
    console.log('encrypted', rows[0].Value);
    await connection.end();
  }
}

main().catch((error) => { console.error(error.message); process.exit(1); });
